//! HTTP/1 connections to an upstream, each driven by the request that uses it.
//!
//! hyper's client runs each connection in its own task, so every chunk of a response costs a task switch and a write to the
//! client, and every idle stream about sixteen kilobytes of buffers. Here the response body reads the connection itself, into a
//! buffer that all connections of the worker share. Everything that has arrived goes to the client in one write, an idle stream
//! needs little more than its socket, and dropping a response closes its connection.

use crate::transport::body::SendBody;
use crate::transport::http1::error::Http1Error;
pub(super) use crate::transport::http1::head::MAX_INTERIM;
use crate::transport::http1::head::{HeadReader, ResponseHead, encode};
use crate::transport::http1::pool::Pool;
use crate::transport::http1::read::poll_read;
use crate::transport::http1::response::Http1Body;
use crate::transport::http1::upload::Sending;
use crate::transport::stream::Stream;
use http::header::UPGRADE;
use http::request::Parts;
use http::{Method, Response};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

mod chunks;
pub(crate) mod error;
mod head;
mod pool;
mod read;
pub(crate) mod response;
mod upload;

/// The HTTP/1 connections of one worker to one upstream.
#[derive(Debug)]
pub(super) struct Http1Pool {
    pool: Arc<Pool>,
}

/// A request that is sent over one connection, or over another if the first turns out to be closed.
#[derive(Debug)]
pub(super) struct Http1Request {
    method: Method,
    may_upgrade: bool,
    /// Absent once a response has begun.
    sending: Option<Sending>,
    pool: Arc<Pool>,
}

impl Http1Pool {
    /// Must be called on the worker's runtime.
    pub(super) fn new(max_idle: Duration) -> Http1Pool {
        Http1Pool { pool: Pool::new(max_idle) }
    }

    /// Returns an idle connection that the upstream has not closed.
    pub(super) fn take(&self) -> Option<Stream> {
        self.pool.take()
    }

    pub(super) fn request(&self, head: Parts, body: SendBody) -> Http1Request {
        let may_upgrade = head.headers.contains_key(UPGRADE);
        let sending = Some(Sending::new(encode(&head, &body), body));
        Http1Request { method: head.method, may_upgrade, sending, pool: self.pool.clone() }
    }
}

impl Http1Request {
    /// Whether nothing of the request was written, so that it can be sent over another connection.
    pub(super) fn is_untouched(&self) -> bool {
        self.sending.as_ref().is_some_and(Sending::is_untouched)
    }

    pub(super) async fn send(&mut self, mut stream: Stream) -> Result<Response<Http1Body>, Http1Error> {
        let sending = self.sending.as_mut().ok_or(Http1Error::Ended)?;
        let ResponseHead { head, rest, framing, reuse, keep_alive } =
            exchange(&mut stream, sending, self.may_upgrade).await?;
        if let Some(keep_alive) = keep_alive {
            self.pool.suit(keep_alive);
        }
        let framing = framing.for_request(&self.method, head.status);
        let sending = self.sending.take().filter(|sending| !sending.is_done());
        let body = Http1Body::new(stream, sending, framing, rest, reuse, self.pool.clone());
        Ok(Response::from_parts(head, body))
    }
}

/// Sends the request and reads until the response head is complete. The response may begin before everything is sent.
async fn exchange(
    stream: &mut Stream,
    sending: &mut Sending,
    may_upgrade: bool,
) -> Result<ResponseHead, Http1Error> {
    let mut reader = HeadReader::new(may_upgrade);
    poll_fn(|cx| {
        let sent = sending.poll(stream, cx);
        loop {
            match poll_read(stream, cx, |bytes| reader.add(bytes)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Http1Error::Ended)),
                Poll::Ready(Ok(_)) => {
                    if let Some(head) = reader.read()? {
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
