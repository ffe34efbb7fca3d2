//! Plain HTTP/1 connections to an upstream, each driven by the request that uses it.
//!
//! A client that keeps its connections in tasks of their own hands an answer over chunk by chunk, with a change of task
//! and a write to the client for each. Here the answer's body reads the connection itself: all chunks that have arrived
//! go to the client in one write, none waits for another task, and an answer that nobody wants any more takes its
//! connection down with it.

use crate::body::SendBody;
use crate::upstream::CallError;
use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, timeout};
use tower_service::Service;

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
    line: Box<Line>,
    since: Instant,
}

/// A connection and the handle with which requests are put on it.
#[derive(Debug)]
struct Line {
    sender: SendRequest<Sent>,
    /// Absent once it has ended.
    connection: Option<Connection<TokioIo<TcpStream>, Sent>>,
}

/// Boxed, because hyper makes room for thirty-two requests at once for each connection.
type Sent = Box<SendBody>;

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
                exchange
                    .idle()
                    .retain_mut(|idle| idle.since.elapsed() < exchange.keep && idle.line.is_free());
            }
        });
        exchange
    }

    pub(crate) async fn send(
        self: Arc<Exchange>,
        request: Request<SendBody>,
    ) -> Result<Response<Answer>, CallError> {
        let mut request = request.map(Box::new);
        let target = request.uri().clone();
        request.headers_mut().insert(HOST, host(&target));
        *request.uri_mut() = target.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
        loop {
            let kept = self.take();
            let is_kept = kept.is_some();
            let mut line = match kept {
                Some(line) => line,
                None => self.connect(target.clone()).await?,
            };
            match line.ask(request).await {
                Ok(response) => {
                    return Ok(response.map(|body| Answer { body, line: Some(line), exchange: self }));
                }
                // The upstream closed a kept line just before it was used: nothing was sent, so it can be sent again.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if is_kept => request = unsent,
                    Some(_) | None => return Err(CallError::Line(error.into_error())),
                },
            }
        }
    }

    async fn connect(&self, target: Uri) -> Result<Box<Line>, CallError> {
        let connecting = timeout(self.connect_timeout, self.connector.clone().call(target));
        let stream = match connecting.await {
            Ok(connected) => connected.map_err(|error| CallError::Connect(error.into()))?,
            Err(_) => return Err(CallError::Connect(io::Error::from(io::ErrorKind::TimedOut).into())),
        };
        let (sender, connection) = http1::handshake(stream).await.map_err(CallError::Line)?;
        Ok(Box::new(Line { sender, connection: Some(connection) }))
    }

    fn take(&self) -> Option<Box<Line>> {
        let mut idle = self.idle();
        while let Some(Idle { mut line, since }) = idle.pop_back() {
            if since.elapsed() < self.keep && line.is_free() {
                return Some(line);
            }
        }
        None
    }

    fn give_back(&self, mut line: Box<Line>) {
        if line.is_free() {
            self.idle().push_back(Idle { line, since: Instant::now() });
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    async fn ask(
        &mut self,
        request: Request<Sent>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Sent>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            drive(&mut self.connection, cx);
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// Whether the last exchange on it is over and it is still open.
    fn is_free(&mut self) -> bool {
        // Nobody waits for an idle line: its end is seen here the next time.
        drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Moves bytes in both directions. What goes wrong is told by the answer or by its body; a connection that has ended is
/// dropped, which hands a request that it had not begun to send back to its sender.
fn drive(connection: &mut Option<Connection<TokioIo<TcpStream>, Sent>>, cx: &mut Context<'_>) {
    if let Some(open) = connection
        && Pin::new(open).poll(cx).is_ready()
    {
        *connection = None;
    }
}

fn host(target: &Uri) -> HeaderValue {
    let host = target.host().unwrap_or_default();
    let value = match target.port_u16() {
        Some(port) if port != 80 => HeaderValue::try_from(format!("{host}:{port}")),
        Some(_) | None => HeaderValue::from_str(host),
    };
    // The host of a valid address is a valid header value.
    value.unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The body of an answer, which reads its line as it is polled.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Incoming,
    line: Option<Box<Line>>,
    exchange: Arc<Exchange>,
}

impl Answer {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_pending()
            && let Some(line) = &mut self.line
        {
            drive(&mut line.connection, cx);
            polled = Pin::new(&mut self.body).poll_frame(cx);
        }
        if let Poll::Ready(None) = polled
            && let Some(line) = self.line.take()
        {
            self.exchange.give_back(line);
        }
        polled
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    /// An answer of known length is not polled again after its last byte.
    fn drop(&mut self) {
        if self.body.is_end_stream()
            && let Some(line) = self.line.take()
        {
            self.exchange.give_back(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn read_head(stream: &mut TcpStream) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    async fn next(answer: &mut Answer) -> Option<Bytes> {
        let frame = poll_fn(|cx| answer.poll_frame(cx)).await;
        frame.map(|frame| frame.unwrap().into_data().unwrap())
    }

    #[tokio::test]
    async fn a_line_is_used_again_and_ends_with_an_unwanted_answer() {
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
        let minute = Duration::from_secs(60);
        let exchange = Exchange::open(HttpConnector::new(), minute, minute);
        let ask = || {
            let request =
                Request::get(format!("http://{address}/v1?x=1")).body(SendBody::pieces([])).unwrap();
            exchange.clone().send(request)
        };
        let mut answer = ask().await.unwrap().into_body();
        assert_eq!(next(&mut answer).await.as_deref(), Some(&b"ok"[..]));
        drop(answer);
        let mut answer = ask().await.unwrap().into_body();
        assert_eq!(next(&mut answer).await.as_deref(), Some(&b"a"[..]));
        assert_eq!(next(&mut answer).await.as_deref(), Some(&b"b"[..]));
        drop(answer);
        let (head, left) = upstream.await.unwrap();
        assert!(head.starts_with("GET /v1?x=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("host: {address}\r\n")), "{head}");
        assert_eq!(left, 0, "the line outlived the answer that nobody wanted");
    }
}
