//! HTTP/2 connections to an upstream, shared by the requests of one worker.
//!
//! A connection has its own task, which reads and writes frames. Everything else happens in the task of the request.

use crate::transport::body::SendBody;
use crate::transport::http1::MAX_INTERIM;
use crate::transport::http2::error::Http2Error;
use crate::transport::http2::lease::{MAX_STREAMS, Shared};
use crate::transport::http2::response::Http2Body;
use crate::transport::http2::upload::Sending;
use crate::transport::stream::Stream;
use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture};
use h2::{Ping, PingPong};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, Version};
use http_body::Body;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tracing::debug;

pub(crate) mod error;
mod lease;
pub(crate) mod response;
mod upload;

pub(super) use lease::Lease;

/// The HTTP/2 connections of one worker to one upstream.
#[derive(Debug)]
pub(super) struct Http2Pool {
    connections: Mutex<Vec<Arc<Shared>>>,
    max_idle: Duration,
}

/// How much of a response may wait for its client. More would help only beyond 5 MB/s over 50 ms.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Enough for every stream, so that clients that read slowly do not stop the others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
const MAX_HEADER_LIST: u32 = 256 * 1024;

/// How often a connection with requests is checked, and how long the upstream has to react.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

impl Http2Pool {
    pub(super) fn new(max_idle: Duration) -> Arc<Http2Pool> {
        Arc::new(Http2Pool { connections: Mutex::default(), max_idle })
    }

    /// Returns a stream of an open connection, if one has any left.
    pub(super) fn lease(&self) -> Option<Lease> {
        let mut connections = self.connections();
        connections.retain(|connection| connection.takes_requests(self.max_idle));
        connections.iter().find_map(Shared::lease)
    }

    /// Starts a connection. Must be called on the worker's runtime.
    pub(super) async fn open(self: &Arc<Self>, stream: Stream) -> Result<Lease, Http2Error> {
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEADER_LIST)
            .enable_push(false);
        let (sender, mut connection) = builder.handshake(stream).await.map_err(Http2Error::NotSent)?;
        let pings = connection.ping_pong();
        let shared = Shared::new(sender);
        tokio::spawn(drive(connection, pings, Arc::downgrade(&shared), Arc::downgrade(self)));
        let lease = Lease::new(&shared);
        self.connections().push(shared);
        Ok(lease)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Arc<Shared>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a connection until it ends, is idle for too long, or is found dead.
async fn drive(
    connection: Connection<Stream, Bytes>,
    pings: Option<PingPong>,
    shared: Weak<Shared>,
    pool: Weak<Http2Pool>,
) {
    let max_idle = pool.upgrade().map_or(Duration::ZERO, |pool| pool.max_idle);
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            debug!(%error, "HTTP/2 connection ended");
        },
        why = watch(pings, &shared, max_idle) => debug!("HTTP/2 connection {why}"),
    }
    if let Some(shared) = shared.upgrade() {
        shared.close();
    }
    if let Some(pool) = pool.upgrade() {
        pool.connections().retain(|connection| !std::ptr::eq(Arc::as_ptr(connection), shared.as_ptr()));
    }
}

/// Returns when the upstream no longer reacts, or the connection has had no request for too long. Then it gets none any more: the pool
/// would keep it open until the next request, which may never come.
async fn watch(mut pings: Option<PingPong>, shared: &Weak<Shared>, max_idle: Duration) -> &'static str {
    loop {
        sleep(PING_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return pending().await };
        if let Some(idle) = shared.idle() {
            if idle > max_idle {
                shared.close();
                return "is idle";
            }
            continue;
        }
        drop(shared);
        if let Some(pings) = &mut pings
            && !matches!(timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await, Ok(Ok(_)))
        {
            return "does not react";
        }
    }
}

/// Sends the request and returns when the response head is complete, which may be before everything is sent. Nothing has been taken from
/// a body that is left in its place.
pub(super) async fn send(
    lease: Lease,
    head: &Parts,
    body: &mut Option<SendBody>,
) -> Result<Response<Http2Body>, Http2Error> {
    let response = exchange(&lease, head, body).await;
    if response.as_ref().is_err_and(Http2Error::ends_connection) {
        lease.close_connection();
    }
    let (response, sending) = response?;
    Ok(Http2Body::new(response, sending, lease))
}

async fn exchange(
    lease: &Lease,
    head: &Parts,
    body: &mut Option<SendBody>,
) -> Result<(Response<h2::RecvStream>, Option<Sending>), Http2Error> {
    let mut sender = lease.sender();
    poll_fn(|cx| sender.poll_ready(cx)).await.map_err(Http2Error::NotSent)?;
    let length = body.as_ref().and_then(|body| body.size_hint().exact());
    let is_empty = body.as_ref().is_none_or(SendBody::is_end_stream);
    let sent = sender.send_request(encode(head, length), is_empty);
    let (mut response, stream) = sent.map_err(Http2Error::NotSent)?;
    let body = if is_empty { None } else { body.take() };
    let mut upload = Upload { lease, sending: body.map(|body| Sending::new(stream, body)) };
    let mut interim = 0;
    let response = poll_fn(|cx| {
        if let Some(Poll::Ready(sent)) = upload.sending.as_mut().map(|sending| sending.poll(cx)) {
            upload.sending = None;
            sent?;
        }
        poll_response(&mut response, &mut interim, cx)
    });
    let response = response.await?;
    Ok((response, upload.sending.take()))
}

/// An upload whose response has not begun.
struct Upload<'a> {
    lease: &'a Lease,
    sending: Option<Sending>,
}

impl Drop for Upload<'_> {
    /// If nobody waits any longer for an upstream that does not read, its connection must not stop the next request as well.
    fn drop(&mut self) {
        if self.sending.as_ref().is_some_and(Sending::is_stalled) {
            self.lease.close_connection();
        }
    }
}

fn poll_response(
    response: &mut ResponseFuture,
    interim: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<Result<Response<h2::RecvStream>, Http2Error>> {
    while let Poll::Ready(Some(Ok(_))) = response.poll_informational(cx) {
        *interim += 1;
        if *interim > MAX_INTERIM {
            return Poll::Ready(Err(Http2Error::TooManyInterim));
        }
    }
    Pin::new(response).poll(cx).map_err(Http2Error::Stream)
}

/// The request as HTTP/2 sends it.
fn encode(head: &Parts, length: Option<u64>) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = head.headers.clone();
    let length = length.filter(|length| *length > 0 || head.method == Method::POST);
    if let Some(length) = length {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn a_connection_that_is_idle_for_too_long_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let (greet, greeted) = tokio::sync::oneshot::channel();
        let upstream = tokio::spawn(async move {
            let mut connection = h2::server::handshake(server).await.unwrap();
            greet.send(()).unwrap();
            while let Some(Ok(_)) = connection.accept().await {}
        });
        let pool = Http2Pool::new(Duration::from_secs(50));
        let lease = pool.open(Stream::Plain(client)).await.unwrap();
        greeted.await.unwrap();
        drop(lease);
        tokio::time::pause();
        tokio::time::advance(PING_INTERVAL).await;
        tokio::time::resume();
        tokio::task::yield_now().await;
        assert!(pool.lease().is_some(), "it may still be used");
        tokio::time::pause();
        // The upstream has closed nothing, and nobody asks for a stream any more.
        tokio::time::advance(Duration::from_secs(51)).await;
        tokio::time::advance(PING_INTERVAL).await;
        tokio::time::resume();
        timeout(Duration::from_secs(60), upstream).await.unwrap().unwrap();
        assert!(pool.connections().is_empty());
    }
}
