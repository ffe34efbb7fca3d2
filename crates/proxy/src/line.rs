//! Plain HTTP/1 connections to an upstream, each driven by the request that uses it.
//!
//! hyper's client keeps its connections in tasks of their own: every chunk of an answer costs a change of task and a write to
//! the client, and every idle stream some sixteen kilobytes of buffers. Here the answer's body reads the connection itself, into
//! a buffer that the worker's connections share: all that has arrived goes to the client in one write, an idle stream
//! holds little more than its socket, and an answer that nobody wants any more takes its connection down with it.
//! Upstreams with TLS or HTTP/2 are hyper's business.

use crate::body::SendBody;
use crate::line::answer::Answer;
use crate::line::head::{AnswerHead, encode, read_head};
use crate::line::upload::Sending;
use crate::upstream::CallError;
use http::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, timeout};
use tower_service::Service;

pub(crate) mod answer;
mod chunks;
mod head;
mod upload;

/// The lines of one worker to one upstream.
#[derive(Debug)]
pub(crate) struct Exchange {
    connector: HttpConnector,
    connect_timeout: Duration,
    /// The line that was used last is at the back and is used first, so that the others can grow old.
    idle: Mutex<VecDeque<Idle>>,
    keep: Duration,
}

#[derive(Debug)]
struct Idle {
    stream: TcpStream,
    since: Instant,
}

/// Why a line gave no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the connection ended too early")]
    Ended,
    #[error("this is no HTTP/1 answer")]
    Malformed,
    #[error("the request could not be sent")]
    Upload(#[source] crate::body::UploadError),
}

/// How often idle lines are looked after. It only bounds how long a line that the upstream closed keeps its descriptor:
/// whether a line is open is seen before each use.
const ROUND: Duration = Duration::from_secs(5);

impl Exchange {
    /// Must be called on the worker's runtime.
    pub(crate) fn open(connector: HttpConnector, connect_timeout: Duration, keep: Duration) -> Arc<Exchange> {
        let exchange = Arc::new(Exchange { connector, connect_timeout, idle: Mutex::default(), keep });
        let watched = Arc::downgrade(&exchange);
        tokio::spawn(async move {
            let mut rounds = interval(ROUND);
            loop {
                rounds.tick().await;
                let Some(exchange) = watched.upgrade() else { break };
                exchange.idle().retain(|idle| idle.since.elapsed() < exchange.keep && is_free(&idle.stream));
            }
        });
        exchange
    }

    pub(crate) async fn send(
        self: Arc<Exchange>,
        request: Request<SendBody>,
    ) -> Result<Response<Answer>, CallError> {
        let (head, body) = request.into_parts();
        let mut sending = Sending::new(encode(&head, &body), body);
        loop {
            let kept = self.take();
            let is_kept = kept.is_some();
            let mut stream = match kept {
                Some(stream) => stream,
                None => self.connect(head.uri.clone()).await?,
            };
            match ask(&mut stream, &mut sending).await {
                Ok(AnswerHead { head: answered, rest, framing, reuse }) => {
                    let framing = framing.for_request(&head.method, answered.status);
                    let body = Answer::new(stream, sending, framing, rest, reuse, self);
                    return Ok(Response::from_parts(answered, body));
                }
                // The upstream closed a kept line just before it was used: nothing was sent, so it can be sent again.
                Err(_) if is_kept && sending.is_untouched() => {}
                Err(error) => return Err(CallError::Line(error)),
            }
        }
    }

    async fn connect(&self, target: Uri) -> Result<TcpStream, CallError> {
        let connecting = timeout(self.connect_timeout, self.connector.clone().call(target));
        match connecting.await {
            Ok(Ok(stream)) => Ok(stream.into_inner()),
            Ok(Err(error)) => Err(CallError::Connect(error.into())),
            Err(_) => Err(CallError::Connect(io::Error::from(io::ErrorKind::TimedOut).into())),
        }
    }

    fn take(&self) -> Option<TcpStream> {
        let mut idle = self.idle();
        while let Some(Idle { stream, since }) = idle.pop_back() {
            if since.elapsed() < self.keep && is_free(&stream) {
                return Some(stream);
            }
        }
        None
    }

    fn give_back(&self, stream: TcpStream) {
        self.idle().push_back(Idle { stream, since: Instant::now() });
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a line is open and silent. An upstream that says something unasked has ended it, or is not to be trusted.
fn is_free(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Sends, and reads until the head of the answer is there. The answer may begin before everything is sent.
async fn ask(stream: &mut TcpStream, sending: &mut Sending) -> Result<AnswerHead, LineError> {
    let mut arrived = Vec::new();
    poll_fn(|cx| {
        let sent = sending.poll(stream, cx);
        loop {
            match poll_read(stream, cx, |bytes| arrived.extend_from_slice(bytes)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(LineError::Ended)),
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

thread_local! {
    /// What arrives is read into here first, so that a connection needs no buffer while nothing arrives.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; 64 * 1024].into());
}

/// Reads what has arrived, once, and gives it to `take`; the number of bytes, 0 at the end.
fn poll_read(
    stream: &mut TcpStream,
    cx: &mut Context<'_>,
    take: impl FnOnce(&[u8]),
) -> Poll<io::Result<usize>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
        take(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    })
}

#[cfg(test)]
mod tests;
