//! The way back: the upstream's answer, byte for byte, as it arrives.

use crate::body::{Incomplete, ReplyBody};
use crate::entry::Entry;
use crate::headers;
use crate::listener::Listener;
use crate::remember::Keepsake;
use crate::reply::{FailureKind, UpstreamFailure};
use crate::report;
use crate::upstream::AnswerBody;
use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_config::Upstream;
use tidegate_telemetry::{Step, names};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The answer to the client, which goes on being relayed while it is read. `cut` ends it when the drain time is over.
pub(crate) fn relay(
    response: Response<AnswerBody>,
    own: HeaderMap,
    upstream: &Arc<Upstream>,
    cut: &CancellationToken,
    mut keepsake: Option<Keepsake>,
    mut entry: Entry,
) -> Response<ReplyBody> {
    let (mut head, body) = response.into_parts();
    headers::clean_response(&mut head.headers);
    if let Some(id) = entry.request_id.to_header() {
        // An upstream's own id is what its support asks for; it wins.
        head.headers.entry(HeaderName::from_static(names::header::REQUEST_ID)).or_insert(id);
    }
    head.headers.extend(own);
    entry.answering(head.status);
    if let Some(call) = entry.call.as_ref().filter(|_| head.status.as_u16() >= 400) {
        call.fail(head.status.as_str());
    }
    let step = entry.journey.step(names::span::RELAY);
    if let Some(reason) = keepsake.as_mut().and_then(Keepsake::failure) {
        report::put(&mut head.headers, names::header::DEGRADED, reason);
        entry.degraded = Some(reason);
    }
    let keepsake = keepsake.filter(|_| head.status.is_success());
    let mut relay = Relay {
        body,
        upstream: upstream.clone(),
        is_measured: head.headers.contains_key(CONTENT_LENGTH),
        listener: Listener::new(&head.headers, keepsake.is_some()),
        keepsake,
        held: None,
        state: State::Relaying,
        idle: None,
        is_idle: false,
        cut: cut.clone(),
        cutting: None,
        entry,
        step: Some(step),
    };
    if relay.body.is_end_stream() {
        relay.end();
    }
    Response::from_parts(head, ReplyBody::Relay { relay })
}

#[derive(Debug)]
pub(crate) struct Relay {
    body: AnswerBody,
    upstream: Arc<Upstream>,
    /// Its length is known, so that nothing can be added to it.
    is_measured: bool,
    listener: Listener,
    /// What the request leaves behind, until it is left.
    keepsake: Option<Keepsake>,
    /// The last of the answer, until what the next request needs is written.
    held: Option<Frame<Bytes>>,
    state: State,
    /// Armed at the first wait for the upstream: most answers are there at once and never need a timer.
    idle: Option<Pin<Box<Sleep>>>,
    /// Whether `idle` counts the present wait.
    is_idle: bool,
    cut: CancellationToken,
    cutting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    entry: Entry,
    /// Until the last byte of the answer.
    step: Option<Step>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Relaying,
    /// The answer broke off and nothing can be said about it: the connection ends after what was relayed so far.
    Breaking,
    /// The error event was given out; what follows is the end.
    Ended,
}

impl Relay {
    pub(crate) fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let relay = &mut *self;
        match relay.state {
            State::Relaying => {}
            State::Breaking => return Poll::Ready(Some(Err(Incomplete))),
            State::Ended => return Poll::Ready(None),
        }
        if relay.held.is_some() {
            return relay.release(cx);
        }
        match Pin::new(&mut relay.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                relay.is_idle = false;
                if let Some(data) = frame.data_ref() {
                    relay.entry.bytes_out += data.len() as u64;
                    relay.listener.hear(data);
                }
                // A client that has seen the end may ask its next question at once, through another process.
                if relay.body.is_end_stream() || relay.listener.is_done() {
                    relay.held = Some(frame);
                    return relay.release(cx);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                if let Some(keepsake) = &mut relay.keepsake {
                    ready!(keepsake.poll_settled(&relay.listener, cx));
                }
                relay.state = State::Ended;
                relay.end();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(_))) => relay.fail(FailureKind::Broken, cx),
            Poll::Pending => match relay.poll_interruption(cx) {
                Poll::Ready(kind) => relay.fail(kind, cx),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.state == State::Ended || (self.body.is_end_stream() && self.held.is_none())
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    /// Gives out the frame that was held, once what the next request needs is written.
    fn release(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        if let Some(keepsake) = &mut self.keepsake {
            ready!(keepsake.poll_settled(&self.listener, cx));
        }
        // An answer of known length is not polled again after its last byte.
        if self.body.is_end_stream() {
            self.end();
        }
        Poll::Ready(self.held.take().map(Ok))
    }

    fn end(&mut self) {
        self.entry.answered();
        self.step = None;
        self.leave();
    }

    /// Has what the request leaves behind remembered, however it ended.
    fn leave(&mut self) {
        if let Some(keepsake) = self.keepsake.take() {
            keepsake.finish(std::mem::replace(&mut self.listener, Listener::Deaf), &mut self.entry);
        }
    }

    fn poll_interruption(&mut self, cx: &mut Context<'_>) -> Poll<FailureKind> {
        let deadline = || Instant::now() + self.upstream.idle_timeout;
        let idle = self.idle.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline())));
        if !self.is_idle {
            self.is_idle = true;
            idle.as_mut().reset(deadline());
        }
        if idle.as_mut().poll(cx).is_ready() {
            return Poll::Ready(FailureKind::Idle);
        }
        let cutting = self.cutting.get_or_insert_with(|| Box::pin(self.cut.clone().cancelled_owned()));
        cutting.as_mut().poll(cx).map(|()| FailureKind::Draining)
    }

    fn fail(
        &mut self,
        kind: FailureKind,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let failure = UpstreamFailure { upstream: self.upstream.name.clone(), kind };
        self.entry.broken(failure.code());
        let Some(missing) = self.listener.missing_end().filter(|_| !self.is_measured) else {
            // An error now would make hyper throw away what it has not written yet, the head perhaps. It writes when
            // there is nothing more to read for the moment, and then asks again.
            self.state = State::Breaking;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        self.state = State::Ended;
        let mut last = missing.as_bytes().to_vec();
        last.extend_from_slice(&failure.event());
        self.entry.bytes_out += last.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(last.into()))))
    }
}

/// A client that leaves in the middle has had a turn too.
impl Drop for Relay {
    fn drop(&mut self) {
        self.leave();
    }
}
