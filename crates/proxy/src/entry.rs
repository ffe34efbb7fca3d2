//! One line in the access log for every request.

use crate::body::Progress;
use crate::gate::Gate;
use crate::reply::Refusal;
use crate::request_id::RequestId;
use http::{Method, StatusCode, Uri};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Upstream;
use tidegate_engine::Plan;
use tidegate_telemetry::{Access, Outcome};
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
    pub(crate) fn begin(
        gate: &Arc<Gate>,
        enabled: bool,
        id: RequestId,
        method: &Method,
        path: &Uri,
    ) -> Entry {
        Entry {
            gate: gate.clone(),
            enabled,
            request_id: id,
            method: method.clone(),
            path: path.path().into(),
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
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.gate.metrics.request(self.outcome, self.degraded);
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
