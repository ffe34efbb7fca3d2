//! Plain HTTP/1 connections to an upstream, each driven by the request that uses it.
//!
//! hyper's client runs each connection in its own task, so every chunk of a response costs a task switch and a write to the
//! client, and every idle stream about sixteen kilobytes of buffers. Here the response body reads the connection itself, into a
//! buffer that all connections of the worker share. Everything that has arrived goes to the client in one write, an idle stream
//! needs little more than its socket, and dropping a response closes its connection. hyper handles upstreams with TLS or HTTP/2.

use crate::transport::body::SendBody;
use crate::transport::http1::error::Http1Error;
use crate::transport::http1::head::{ResponseHead, encode, read_head};
use crate::transport::http1::pool::Pool;
use crate::transport::http1::read::poll_read;
use crate::transport::http1::response::Http1Body;
use crate::transport::http1::upload::Sending;
use http::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

mod chunks;
pub(crate) mod error;
mod head;
mod pool;
mod read;
pub(crate) mod response;
mod upload;

/// The HTTP/1 client of one worker for one upstream.
#[derive(Debug)]
pub(crate) struct Http1Client {
    connector: HttpConnector,
    connect_timeout: Duration,
    pool: Arc<Pool>,
}

impl Http1Client {
    /// Must be called on the worker's runtime.
    pub(crate) fn new(
        connector: HttpConnector,
        connect_timeout: Duration,
        max_idle: Duration,
    ) -> Http1Client {
        Http1Client { connector, connect_timeout, pool: Pool::new(max_idle) }
    }

    pub(crate) async fn send(&self, request: Request<SendBody>) -> Result<Response<Http1Body>, Http1Error> {
        let (head, body) = request.into_parts();
        let mut sending = Sending::new(encode(&head, &body), body);
        loop {
            let pooled = self.pool.take();
            let is_pooled = pooled.is_some();
            let mut stream = match pooled {
                Some(stream) => stream,
                None => self.connect(head.uri.clone()).await?,
            };
            match exchange(&mut stream, &mut sending).await {
                Ok(ResponseHead { head: received, rest, framing, reuse }) => {
                    let framing = framing.for_request(&head.method, received.status);
                    let body = Http1Body::new(stream, sending, framing, rest, reuse, self.pool.clone());
                    return Ok(Response::from_parts(received, body));
                }
                // The client's upload failed: what is left of it must not be sent as if it were whole.
                Err(error @ Http1Error::Upload(_)) => return Err(error),
                // The upstream closed the pooled connection before anything was written, so the request can be retried.
                Err(_) if is_pooled && sending.is_untouched() => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(&self, target: Uri) -> Result<TcpStream, Http1Error> {
        let connecting = timeout(self.connect_timeout, self.connector.clone().call(target));
        match connecting.await {
            Ok(Ok(stream)) => Ok(stream.into_inner()),
            Ok(Err(error)) => Err(Http1Error::Connect(error.into())),
            Err(_) => Err(Http1Error::Connect(io::Error::from(io::ErrorKind::TimedOut).into())),
        }
    }
}

/// Sends the request and reads until the response head is complete. The response may begin before everything is sent.
async fn exchange(stream: &mut TcpStream, sending: &mut Sending) -> Result<ResponseHead, Http1Error> {
    let mut arrived = Vec::new();
    poll_fn(|cx| {
        let sent = sending.poll(stream, cx);
        loop {
            match poll_read(stream, cx, |bytes| arrived.extend_from_slice(bytes)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Http1Error::Ended)),
                Poll::Ready(Ok(_)) => {
                    if let Some(head) = read_head(&arrived)? {
                        return Poll::Ready(Ok(head));
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => break,
            }
        }
        match sent {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests;
