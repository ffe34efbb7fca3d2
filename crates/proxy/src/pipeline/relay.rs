//! Relays the upstream's answer to the client, byte for byte, as it arrives.

use crate::observe::request::RequestObserver;
use crate::pipeline::answer_reader::AnswerReader;
use crate::pipeline::remember::PendingTurn;
use crate::reply::headers::put;
use crate::reply::upstream_failure::{FailureKind, UpstreamFailure};
use crate::transport::headers;
use crate::transport::response_body::ResponseBody;
use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_config::Upstream;
use tidegate_store::Degraded;
use tidegate_telemetry::{StepSpan, names};
use tidegate_wire::Dialect;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Returns the response for the client; its body relays the upstream's as it is polled. `cut` ends it when the drain time is over.
pub(crate) fn relay(
    response: Response<ResponseBody>,
    dialect: Dialect,
    own: HeaderMap,
    upstream: &Arc<Upstream>,
    cut: &CancellationToken,
    mut turn: Option<PendingTurn>,
    mut observer: RequestObserver,
) -> Response<Relay> {
    let (mut head, body) = response.into_parts();
    headers::clean_response(&mut head.headers);
    if let Some(id) = observer.request_id().to_header() {
        // The upstream's own id wins: its support asks for it.
        head.headers.entry(HeaderName::from_static(names::header::REQUEST_ID)).or_insert(id);
    }
    head.headers.extend(own);
    observer.upstream_answering(head.status, &head.headers);
    if turn.as_ref().is_none_or(|turn| !turn.keeps_request()) {
        observer.charge.shrink_to(STREAMING);
    }
    let step = observer.span.step(names::span::RELAY);
    if let Some(reason) = turn.as_mut().and_then(PendingTurn::failure).map(Degraded::reason) {
        put(&mut head.headers, names::header::DEGRADED, reason);
        observer.degrade(Some(reason));
    }
    // An error is passed on unread.
    let is_read = turn.is_some() && head.status.is_success();
    if let Some(turn) = turn.as_mut().filter(|_| !is_read) {
        turn.not_answered();
    }
    let mut relay = Relay {
        body,
        upstream: upstream.clone(),
        is_measured: head.headers.contains_key(CONTENT_LENGTH),
        dialect,
        reader: AnswerReader::new(dialect, &head.headers, is_read),
        turn,
        held: None,
        state: State::Relaying,
        idle: None,
        is_idle: false,
        cut: cut.clone(),
        cutting: None,
        observer,
        unpaid: 0,
        step: Some(step),
    };
    if relay.body.is_end_stream() {
        relay.end();
    }
    Response::from_parts(head, relay)
}

/// How much of an answer is relayed before memory is taken for our copy, so that not every event of a stream counts on a shared counter.
const PAY_STEP: usize = 16 * 1024;

/// The longest answer of which a copy is kept.
const MAX_KEPT: u64 = 4 << 20;

/// What a request takes while its answer streams: buffers, and what is remembered of it.
const STREAMING: u64 = 16 * 1024;

/// Ends a connection in the middle of an answer, so that the client cannot take it for complete.
#[derive(Debug, thiserror::Error)]
#[error("the upstream's answer is incomplete")]
pub(crate) struct Incomplete;

#[derive(Debug)]
pub(crate) struct Relay {
    body: ResponseBody,
    upstream: Arc<Upstream>,
    /// The length is announced, so nothing can be added.
    is_measured: bool,
    /// The shape of an error event of ours.
    dialect: Dialect,
    reader: AnswerReader,
    /// Until the turn is handed over to be remembered.
    turn: Option<PendingTurn>,
    /// The last frame, until what the next request needs is stored.
    held: Option<Frame<Bytes>>,
    state: State,
    /// Armed at the first wait for the upstream: most answers arrive at once and never need a timer.
    idle: Option<Pin<Box<Sleep>>>,
    /// Whether `idle` counts the present wait.
    is_idle: bool,
    cut: CancellationToken,
    cutting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    observer: RequestObserver,
    /// What the reader has kept since memory was last taken for it.
    unpaid: usize,
    /// Until the last byte of the answer.
    step: Option<StepSpan>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Relaying,
    /// The answer broke off and no error can be sent: the connection ends after what was relayed so far.
    Breaking,
    /// The error event has been sent; the end follows.
    Ended,
}

impl Body for Relay {
    type Data = Bytes;
    type Error = Incomplete;

    fn poll_frame(
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
                    relay.observer.relayed(data.len());
                    relay.reader.feed(data);
                    relay.unpaid += data.len();
                    if relay.unpaid >= PAY_STEP {
                        relay.pay();
                    }
                }
                // A client that has seen the end may send its next request at once, to another process.
                if relay.body.is_end_stream() || relay.reader.is_done() {
                    relay.held = Some(frame);
                    return relay.release(cx);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                if let Err(kind) = ready!(relay.poll_settled(cx)) {
                    return relay.fail(kind, cx);
                }
                relay.state = State::Ended;
                relay.delivered();
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

    fn is_end_stream(&self) -> bool {
        self.state == State::Ended || (self.body.is_end_stream() && self.held.is_none())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Relay {
    /// Releases the held frame once what the next request needs is stored.
    fn release(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        if let Err(kind) = ready!(self.poll_settled(cx)) {
            self.held = None;
            return self.fail(kind, cx);
        }
        self.delivered();
        // An answer of known length is not polled again after its last byte.
        if self.body.is_end_stream() {
            self.end();
        }
        Poll::Ready(self.held.take().map(Ok))
    }

    fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FailureKind>> {
        match &mut self.turn {
            Some(turn) => turn.poll_settled(&self.reader, &mut self.observer, cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn delivered(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.delivered();
        }
    }

    /// Takes memory for the copy of the answer. It cannot be refused any more, but the next request can.
    fn pay(&mut self) {
        let unpaid = std::mem::take(&mut self.unpaid);
        if self.turn.is_some() && self.reader.passed() < MAX_KEPT {
            self.observer.charge.grow_regardless(unpaid as u64);
        }
    }

    fn end(&mut self) {
        match self.reader.is_failed() {
            true => self.observer.answered_with_error(),
            false => self.observer.answered(),
        }
        self.step = None;
        self.leave();
    }

    /// Hands the turn over to be remembered, however the request ended.
    fn leave(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.finish(std::mem::take(&mut self.reader), &mut self.observer);
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
        match kind.is_upstreams() {
            true => self.observer.broke(failure.reason()),
            false => self.observer.cut(failure.reason()),
        }
        let Some(missing) = self.reader.missing_end().filter(|_| !self.is_measured) else {
            // An error now would make hyper discard what it has not written yet, perhaps even the head. It writes when there is
            // nothing more to read, and then polls again.
            self.state = State::Breaking;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        self.state = State::Ended;
        // If the last frame was held back, the client may have received a part of an event.
        let missing = if matches!(kind, FailureKind::Conflict | FailureKind::Deleted | FailureKind::Unsaved) {
            "\n\n"
        } else {
            missing
        };
        let mut last = missing.as_bytes().to_vec();
        last.extend_from_slice(&failure.event(self.dialect));
        self.observer.relayed(last.len());
        Poll::Ready(Some(Ok(Frame::data(last.into()))))
    }
}

/// A turn counts even if its client left in the middle.
impl Drop for Relay {
    fn drop(&mut self) {
        self.leave();
    }
}
