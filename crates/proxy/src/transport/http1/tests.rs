use super::*;
use bytes::Bytes;
use http::Request;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn next(answer: &mut Http1Body) -> Option<Bytes> {
    let frame = poll_fn(|cx| answer.poll_frame(cx)).await;
    frame.map(|frame| frame.unwrap().into_data().unwrap())
}

async fn send(pool: &Http1Pool, address: SocketAddr, request: Request<SendBody>) -> Response<Http1Body> {
    let stream = match pool.take() {
        Some(stream) => stream,
        None => Stream::Plain(TcpStream::connect(address).await.unwrap()),
    };
    let (head, body) = request.into_parts();
    pool.request(head, body).send(stream).await.unwrap()
}

#[tokio::test]
async fn a_connection_is_reused_and_closed_when_its_response_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let first = read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n";
        stream.write_all(head).await.unwrap();
        (first, stream.read(&mut [0; 1]).await.unwrap())
    });
    let pool = Http1Pool::new(Duration::from_secs(60));
    let ask = async || {
        let request = Request::get(format!("http://{address}/v1?x=1")).body(SendBody::pieces([])).unwrap();
        send(&pool, address, request).await
    };
    let mut answer = ask().await.into_body();
    assert_eq!(next(&mut answer).await.as_deref(), Some(&b"ok"[..]));
    drop(answer);
    let mut answer = ask().await.into_body();
    assert_eq!(
        next(&mut answer).await.as_deref(),
        Some(&b"ab"[..]),
        "bytes that arrive together are passed on together"
    );
    drop(answer);
    let (head, left) = upstream.await.unwrap();
    assert!(head.starts_with("GET /v1?x=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {address}\r\n")), "{head}");
    assert_eq!(left, 0, "the connection outlived the dropped response");
}

#[tokio::test]
async fn a_request_is_still_sent_while_its_response_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // More than the socket buffers hold, so that the response begins before everything is sent.
    let large = Bytes::from(vec![b'x'; 32 * 1024 * 1024]);
    let length = large.len();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut (&mut from).take(length as u64), &mut to).await.unwrap()
    });
    let pool = Http1Pool::new(Duration::from_secs(60));
    let request = Request::post(format!("http://{address}/")).body(SendBody::pieces([large])).unwrap();
    let mut answer = send(&pool, address, request).await.into_body();
    let mut received = 0;
    while let Some(data) = next(&mut answer).await {
        received += data.len();
    }
    assert_eq!((received, upstream.await.unwrap()), (length, length as u64));
}
