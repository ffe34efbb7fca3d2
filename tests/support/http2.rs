//! An HTTP/2 client, by prior knowledge or over a connection that negotiated HTTP/2.

use super::within;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

#[derive(Clone)]
pub(crate) struct Http2Client {
    sender: SendRequest<Full<Bytes>>,
}

impl Http2Client {
    pub(crate) async fn connect(address: SocketAddr) -> Http2Client {
        Http2Client::over(TcpStream::connect(address).await.unwrap()).await
    }

    /// A client that takes so many bytes of each response before it reads.
    pub(crate) async fn with_window(address: SocketAddr, bytes: u32) -> Http2Client {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut builder = Builder::new(TokioExecutor::new());
        Http2Client::begin(builder.initial_stream_window_size(bytes), stream).await
    }

    pub(crate) async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Http2Client {
        Http2Client::begin(&Builder::new(TokioExecutor::new()), stream).await
    }

    async fn begin(
        builder: &Builder<TokioExecutor>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Http2Client {
        let handshake = builder.handshake(TokioIo::new(stream));
        let (sender, connection) = within("the HTTP/2 handshake", handshake).await.unwrap();
        tokio::spawn(connection);
        Http2Client { sender }
    }

    /// Sends a request and waits for the head of the response. Dropping the future or the response resets the stream.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> hyper::Result<Response<Incoming>> {
        self.send_with(method, path, &[], body).await
    }

    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> hyper::Result<Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(format!("http://tidegate.test{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body.to_owned())).unwrap();
        let mut sender = self.sender.clone();
        within("the connection accepts a request", sender.ready()).await?;
        within("the response begins", sender.send_request(request)).await
    }
}

/// The next data frame of the body, as text.
pub(crate) async fn next_text(body: &mut Incoming) -> Option<String> {
    let frame = within("the response continues", body.frame()).await?;
    let data = frame.expect("the stream is complete").into_data().expect("data before trailers");
    Some(String::from_utf8(data.to_vec()).unwrap())
}

pub(crate) async fn whole_text(response: Response<Incoming>) -> String {
    let body =
        within("the response ends", response.into_body().collect()).await.expect("the stream is complete");
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}
