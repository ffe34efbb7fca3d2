//! Forwards a prepared request, and keeps its turn until the answer begins.

use crate::host::worker::Worker;
use crate::observe::request::RequestObserver;
use crate::pipeline::forward::forward;
use crate::pipeline::remember::PendingTurn;
use crate::reply::refusal::Refusal;
use crate::transport::body::SendBody;
use crate::transport::response_body::ResponseBody;
use crate::transport::upstream::Prepared;
use http::Response;
use http::header::HeaderMap;
use http::request::Parts;
use std::sync::Arc;
use tidegate_config::Upstream;
use tidegate_telemetry::RequestSpan;
use tidegate_telemetry::names::span;

/// A request that the upstream has begun to answer.
pub(crate) struct Forwarded {
    pub(crate) response: Response<ResponseBody>,
    /// Headers of our own for the response.
    pub(crate) headers: HeaderMap,
    pub(crate) upstream: Arc<Upstream>,
    /// What to remember when the answer is over.
    pub(crate) turn: Option<PendingTurn>,
}

pub(crate) async fn send(
    worker: &Arc<Worker>,
    upstream: &Arc<Prepared>,
    mut head: Parts,
    body: SendBody,
    observer: &mut RequestObserver,
    headers: HeaderMap,
    turn: Option<PendingTurn>,
) -> Result<Forwarded, Refusal> {
    observer.sending(&upstream.settings);
    let (spans, authority) = (&observer.span, &upstream.settings.url.authority);
    let call = observer.call.get_or_insert_with(|| spans.call(head.method.as_str(), None, authority));
    call.inject(&mut head.headers);
    let mut unanswered = Unanswered { turn, observer };
    let (cut, span) = (&worker.shutdown.cut, unanswered.observer.span.clone());
    let forwarding = forward(&worker.clients, upstream, head, body, &unanswered.observer.upload, cut);
    let response = match in_step(&span, span::FORWARD, forwarding).await {
        Ok(response) => response,
        Err(refusal) => {
            unanswered.fail(&refusal);
            return Err(refusal);
        }
    };
    unanswered.observer.head_arrived();
    let turn = unanswered.turn.take();
    Ok(Forwarded { response, headers, upstream: upstream.settings.clone(), turn })
}

/// A request whose answer has not begun. If the client leaves now, this is dropped, and its turn is recorded all the same.
pub(crate) struct Unanswered<'a> {
    pub(crate) turn: Option<PendingTurn>,
    pub(crate) observer: &'a mut RequestObserver,
}

impl Unanswered<'_> {
    /// There will be no answer.
    pub(crate) fn fail(&mut self, refusal: &Refusal) {
        if let Some(turn) = self.turn.take() {
            turn.abandon(self.observer.facts().with(refusal), !refusal.is_upstreams_own() && self.is_sent());
        }
    }

    fn is_sent(&self) -> bool {
        self.observer.upload.is_sent()
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.abandon(self.observer.facts(), self.is_sent());
        }
    }
}

/// Runs a step inside a span of its name.
pub(crate) async fn in_step<T>(spans: &RequestSpan, name: &'static str, step: impl Future<Output = T>) -> T {
    let _span = spans.step(name);
    step.await
}
