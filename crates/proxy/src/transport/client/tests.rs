use super::*;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http_body_util::BodyExt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegate_config::{Protocol, Upstream, UpstreamUrl};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

type Received = (Request<RecvStream>, SendResponse<Bytes>);

/// An HTTP/2 upstream. `serve` gets each request with its number.
async fn upstream<S, F>(max_streams: u32, serve: S) -> (SocketAddr, Arc<AtomicUsize>)
where
    S: Fn(usize, Received) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let (counted, requests) = (connections.clone(), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let (serve, requests) = (serve.clone(), requests.clone());
            tokio::spawn(async move {
                let mut builder = h2::server::Builder::new();
                let mut connection =
                    builder.max_concurrent_streams(max_streams).handshake(stream).await.unwrap();
                while let Some(Ok(received)) = connection.accept().await {
                    let number = requests.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(serve(number, received));
                }
            });
        }
    });
    (address, connections)
}

fn prepared(address: SocketAddr) -> Arc<Prepared> {
    let settings = Upstream {
        name: "default".to_owned(),
        url: UpstreamUrl { https: false, authority: address.to_string(), path: String::new() },
        api_key_env: None,
        connect_timeout: Duration::from_secs(10),
        first_byte_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(10),
        protocol: Protocol::Http2,
        ca: None,
    };
    Arc::new(Prepared::new(&Arc::new(settings)).unwrap())
}

async fn ask(client: &Client, target: &Prepared) -> Result<(u16, Bytes), CallError> {
    let body = SendBody::pieces([Bytes::from_static(b"question")]);
    let uri = target.target(&http::Uri::from_static("/v1/x"));
    let response = client.send(Request::post(uri).body(body).unwrap()).await?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await.unwrap().to_bytes()))
}

async fn body_of((request, response): Received) -> (Bytes, SendResponse<Bytes>) {
    let mut body = request.into_body();
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        text.extend_from_slice(&data.unwrap());
    }
    (text.into(), response)
}

fn answer(mut response: SendResponse<Bytes>, text: Bytes) {
    let mut stream = response.send_response(Response::new(()), false).unwrap();
    stream.send_data(text, true).unwrap();
}

#[tokio::test]
async fn requests_beyond_the_stream_limit_get_another_connection() {
    let release = Arc::new(Semaphore::new(0));
    let released = release.clone();
    let (address, connections) = upstream(2, move |number, received| {
        let released = released.clone();
        async move {
            let (text, response) = body_of(received).await;
            if number > 0 {
                released.acquire().await.unwrap().forget();
            }
            answer(response, text);
        }
    })
    .await;
    let target = prepared(address);
    let client = Client::new(&target);
    assert_eq!(ask(&client, &target).await.unwrap(), (200, Bytes::from_static(b"question")));
    // Five at once, two on each connection.
    let asking = async {
        tokio::join!(
            ask(&client, &target),
            ask(&client, &target),
            ask(&client, &target),
            ask(&client, &target),
            ask(&client, &target)
        )
    };
    let watched = async {
        while connections.load(Ordering::Relaxed) < 3 {
            tokio::task::yield_now().await;
        }
        release.add_permits(5);
    };
    let (answers, ()) = tokio::join!(asking, watched);
    for answer in [answers.0, answers.1, answers.2, answers.3, answers.4] {
        assert_eq!(answer.unwrap().0, 200);
    }
    assert_eq!(connections.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_and_any_other_reset_is_not() {
    for (reason, expected) in [(Reason::REFUSED_STREAM, Some(b"question")), (Reason::INTERNAL_ERROR, None)] {
        let (address, _) = upstream(10, move |number, received| async move {
            let (text, mut response) = body_of(received).await;
            match number {
                0 => response.send_reset(reason),
                _ => answer(response, text),
            }
        })
        .await;
        let target = prepared(address);
        let answered = ask(&Client::new(&target), &target).await;
        assert_eq!(
            answered.ok().map(|(_, text)| text.to_vec()),
            expected.map(|text| text.to_vec()),
            "{reason:?}"
        );
    }
}

#[tokio::test]
async fn an_upstream_that_refuses_every_stream_is_given_up() {
    let (address, _) = upstream(10, |_, received| async move {
        let (_, mut response) = body_of(received).await;
        response.send_reset(Reason::REFUSED_STREAM);
    })
    .await;
    let target = prepared(address);
    assert!(ask(&Client::new(&target), &target).await.is_err());
}

#[tokio::test]
async fn requests_that_wait_for_one_connection_share_its_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let target = prepared(address);
    let client = Client::new(&target);
    let (first, second) = tokio::join!(ask(&client, &target), ask(&client, &target));
    assert!(first.unwrap_err().is_connect() && second.unwrap_err().is_connect());
    assert_eq!(client.state().failures, 1);
}
