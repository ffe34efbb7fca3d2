//! The guard below hyper passes on nothing that a strict reading of HTTP/1 would cut differently.
//!
//! The first byte is the length of the reads, the rest is what a client sends.

#![no_main]

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tidegate_proxy::fuzzing::guard;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

mod http1_model;

use http1_model::{Message, messages};

const MAX_HEAD: usize = 1024;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
const REFUSED: &str = "REFUSED";

fuzz_target!(|input: &[u8]| {
    let Some((&length, sent)) = input.split_first() else { return };
    let length = usize::from(length).max(1);
    let whole = pass(sent, usize::MAX);
    let cut = pass(sent, length);
    check_passed(sent, &whole);
    check_passed(sent, &cut);
    assert_eq!(whole.refused, cut.refused, "the verdict depends on how the bytes arrive");
    assert_eq!(whole.broken, cut.broken, "the verdict depends on how the bytes arrive");
    if !whole.broken {
        assert_eq!(whole.bytes, cut.bytes, "the bytes depend on how they arrive");
    }
    if !sent.starts_with(PREFACE) {
        let model = messages(sent);
        let served = serve(sent, length);
        assert!(model.starts_with(&served), "hyper got {served:?}, the client sent {model:?}");
    }
});

/// What came through the guard.
struct Passed {
    bytes: Vec<u8>,
    refused: bool,
    broken: bool,
}

fn pass(sent: &[u8], length: usize) -> Passed {
    let (mut guarded, refused) = guard(Client { sent, length }, MAX_HEAD);
    let mut context = Context::from_waker(Waker::noop());
    let mut bytes = Vec::new();
    let mut broken = false;
    loop {
        let mut space = [0; 512];
        let mut buf = ReadBuf::new(&mut space);
        match Pin::new(&mut guarded).poll_read(&mut context, &mut buf) {
            Poll::Ready(Ok(())) if buf.filled().is_empty() => break,
            Poll::Ready(Ok(())) => bytes.extend_from_slice(buf.filled()),
            Poll::Ready(Err(_)) => {
                broken = true;
                break;
            }
            // Behind a refused request nothing more is read.
            Poll::Pending => break,
        }
    }
    Passed { bytes, refused: refused(), broken }
}

/// Everything up to a refusal is the client's own, and what is held back is not a whole head.
fn check_passed(sent: &[u8], passed: &Passed) {
    if passed.refused {
        let own = passed.bytes.windows(REFUSED.len()).rposition(|window| window == REFUSED.as_bytes());
        let own = own.expect("a refusal is passed on as a request of our own");
        assert!(sent.starts_with(&passed.bytes[..own]));
        return;
    }
    assert!(sent.starts_with(&passed.bytes));
    if !passed.broken {
        let mut held = &sent[passed.bytes.len()..];
        while let Some(rest) = held.strip_prefix(b"\r\n") {
            held = rest;
        }
        assert!(!held.windows(4).any(|window| window == b"\r\n\r\n"), "a whole head was held back");
    }
}

/// The requests that a hyper server behind the guard reads to their end.
fn serve(sent: &[u8], length: usize) -> Vec<Message> {
    let served = RefCell::new(Vec::new());
    let (guarded, refused) = guard(Client { sent, length }, MAX_HEAD);
    let service = service_fn(|request: Request<Incoming>| {
        let (served, refused) = (&served, &refused);
        async move {
            let method = request.method().to_string();
            let ours = method == REFUSED && refused();
            if let Ok(body) = request.into_body().collect().await
                && !ours
            {
                served.borrow_mut().push(Message { method, body: body.to_bytes().to_vec() });
            }
            let mut response = Response::new(Empty::<Bytes>::new());
            // A success would turn CONNECT into a tunnel.
            *response.status_mut() = StatusCode::NOT_FOUND;
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection =
        Box::pin(http1::Builder::new().half_close(true).serve_connection(TokioIo::new(guarded), service));
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    while woken.0.swap(false, Ordering::Relaxed) && connection.as_mut().poll(&mut context).is_pending() {}
    drop(connection);
    served.into_inner()
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends its bytes in reads of a fixed length, closes, and accepts every answer.
struct Client<'a> {
    sent: &'a [u8],
    length: usize,
}

impl AsyncRead for Client<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = self.length.min(self.sent.len()).min(buf.remaining());
        let (now, later) = self.sent.split_at(count);
        buf.put_slice(now);
        self.sent = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
