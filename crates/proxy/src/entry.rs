//! What every request says of itself in the end: a line in the access log, its span, its place in the counts.

use crate::body::Progress;
use crate::gate::Gate;
use crate::reply::Refusal;
use crate::request_id::RequestId;
use http::{Method, Request, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Upstream;
use tidegate_engine::Plan;
use tidegate_telemetry::names::{attribute, event};
use tidegate_telemetry::{Access, Call, Journey, KeyValue, Labels, Outcome};
use tokio::time::Instant;

/// What is told of one request. It is written when it is dropped, so that there is one line for every request, also for
/// one whose client left in the middle of any step.
#[derive(Debug)]
pub(crate) struct Entry {
    gate: Arc<Gate>,
    enabled: bool,
    pub(crate) request_id: RequestId,
    method: Method,
    /// A copy: a slice of the head would keep the whole buffer in which it arrived for as long as an answer streams.
    path: Box<str>,
    pub(crate) started: Instant,
    pub(crate) route: Option<String>,
    pub(crate) upstream: Option<Arc<Upstream>>,
    pub(crate) received: Progress,
    pub(crate) bytes_out: u64,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) status: StatusCode,
    pub(crate) outcome: Outcome,
    reason: Option<&'static str>,
    /// What the client had to wait for us before its request went out.
    pub(crate) overhead_us: u64,
    pub(crate) degraded: Option<&'static str>,
    plan: Option<Figures>,
    pub(crate) journey: Journey,
    /// The call to the upstream, until its answer has been heard.
    pub(crate) call: Option<Call>,
    /// What a chat completion is counted under.
    pub(crate) labels: Option<Labels>,
}

/// What the line says of the plan: tokens as sent and as forwarded, messages by what became of them.
#[derive(Clone, Copy, Debug)]
struct Figures {
    before: u64,
    after: u64,
    masked: usize,
    folded: usize,
    dropped: usize,
    stop_hint: Option<u32>,
}

/// What nginx logs for a request whose client left before it was answered.
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl Entry {
    pub(crate) fn begin<B>(gate: &Arc<Gate>, enabled: bool, id: RequestId, request: &Request<B>) -> Entry {
        let (method, path) = (request.method(), request.uri().path());
        let journey = Journey::begin(method.as_str(), path, well_known(path), request.headers());
        if journey.is_on() {
            journey.set(attribute::REQUEST_ID, id.as_str().to_owned());
        }
        Entry {
            gate: gate.clone(),
            enabled,
            request_id: id,
            method: method.clone(),
            path: path.into(),
            started: Instant::now(),
            route: None,
            upstream: None,
            received: Progress::start(),
            bytes_out: 0,
            first_byte: None,
            status: StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST),
            outcome: Outcome::ClientGone,
            reason: None,
            overhead_us: 0,
            degraded: None,
            plan: None,
            journey,
            call: None,
            labels: None,
        }
    }

    pub(crate) fn note_plan(&mut self, plan: &Plan, stop_hint: Option<u32>) {
        self.plan = Some(Figures {
            before: plan.before.0,
            after: plan.after.0,
            masked: plan.masked.len(),
            folded: plan.folded.as_ref().map_or(0, |folded| folded.removed.len()),
            dropped: plan.dropped.len(),
            stop_hint,
        });
    }

    /// The upstream's answer has begun.
    pub(crate) fn answering(&mut self, status: StatusCode) {
        self.status = status;
        self.first_byte = Some(self.started.elapsed());
    }

    pub(crate) fn answered(&mut self) {
        self.outcome = Outcome::Answered;
    }

    pub(crate) fn broken(&mut self, reason: &'static str) {
        self.outcome = Outcome::Broken;
        self.reason = Some(reason);
    }

    pub(crate) fn refused(&mut self, refusal: &Refusal, status: StatusCode) {
        if *refusal == Refusal::ClientLeft {
            // Nobody saw the answer: the entry stays what every entry begins as.
            return;
        }
        if matches!(refusal, Refusal::OverBudget(_)) {
            self.gate.metrics.overflowed();
        }
        self.status = status;
        self.outcome = Outcome::Refused;
        self.reason = Some(refusal.code());
        if let Some(call) = &self.call {
            call.fail(refusal.code());
        }
        if self.journey.is_on() {
            let code = KeyValue::new(attribute::REASON, refusal.code());
            self.journey.event(event::REFUSED, vec![code]);
        }
    }

    /// What went wrong with a chat completion, in the words of the conventions.
    fn error(&self) -> Option<String> {
        match self.outcome {
            Outcome::Answered if self.status.as_u16() < 400 => None,
            Outcome::Answered => Some(self.status.as_str().to_owned()),
            Outcome::Refused | Outcome::Broken => Some(self.reason.unwrap_or("unknown").to_owned()),
            Outcome::ClientGone => Some(self.outcome.name().to_owned()),
        }
    }
}

/// The paths that many requests have.
fn well_known(path: &str) -> Option<&'static str> {
    let is_deployment = || path.starts_with("/openai/deployments/") && path.ends_with("/chat/completions");
    match path {
        "/v1/chat/completions" => Some("/v1/chat/completions"),
        _ if is_deployment() => Some("/openai/deployments/{deployment}/chat/completions"),
        _ => None,
    }
}

/// What requests without a route are counted under.
const NO_ROUTE: &str = "none";

impl Drop for Entry {
    fn drop(&mut self) {
        let refusal = self.reason.filter(|_| self.outcome == Outcome::Refused);
        let metrics = &self.gate.metrics;
        if let Some(labels) = &self.labels {
            metrics.completed(labels, self.outcome, refusal, self.degraded);
            let first = self.first_byte.filter(|_| self.outcome != Outcome::Refused);
            metrics.operated(labels, self.started.elapsed(), first, self.error());
        } else {
            let route = self.route.as_deref().unwrap_or(NO_ROUTE);
            metrics.request(route, self.outcome, refusal, self.degraded);
        }
        if self.journey.is_on() {
            if let Some(upstream) = &self.upstream {
                self.journey.set(attribute::UPSTREAM, upstream.name.clone());
            }
            if let Some(reason) = self.degraded {
                self.journey.set(attribute::DEGRADED, reason);
            }
            self.journey.end(self.status.as_u16(), self.outcome, self.reason);
        }
        if !self.enabled {
            return;
        }
        let access = Access {
            request_id: self.request_id.as_str(),
            method: self.method.as_str(),
            path: &self.path,
            status: self.status.as_u16(),
            outcome: self.outcome,
            reason: self.reason,
            degraded: self.degraded,
            route: self.route.as_deref(),
            upstream: self.upstream.as_ref().map(|upstream| upstream.name.as_str()),
            bytes_in: self.received.bytes(),
            bytes_out: self.bytes_out,
            tokens_before: self.plan.map(|plan| plan.before),
            tokens_after: self.plan.map(|plan| plan.after),
            masked: self.plan.map(|plan| plan.masked),
            folded: self.plan.map(|plan| plan.folded).filter(|count| *count > 0),
            dropped: self.plan.map(|plan| plan.dropped).filter(|count| *count > 0),
            stop_hint: self.plan.and_then(|plan| plan.stop_hint),
            first_byte: self.first_byte,
            duration: self.started.elapsed(),
        };
        access.write(&self.gate.lines, self.gate.format);
    }
}
