//! The last step: what stays of a request when it is over.

use crate::body::Progress;
use crate::gate::Gate;
use crate::identify::{ConversationKey, Identity};
use crate::reply::Refusal;
use crate::request_id::RequestId;
use crate::rewrite::{Rewritten, calibration_key};
use http::{Method, StatusCode, Uri};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Upstream;
use tidegate_engine::{Plan, Tokens, Waypoint};
use tidegate_telemetry::{Access, Outcome};
use tidegate_tokens::Fit;
use tidegate_wire::Usage;
use tokio::time::Instant;

/// What a rewritten request leaves for the next one of its conversation, once the upstream has taken it.
#[derive(Debug)]
pub(crate) struct Keepsake {
    gate: Arc<Gate>,
    waypoint: Option<(ConversationKey, Waypoint)>,
    /// What was counted, and under which name to note how far off that was; none where our count is the model's own.
    lesson: Option<(String, Tokens)>,
}

impl Keepsake {
    pub(crate) fn new(
        gate: &Arc<Gate>,
        identity: Option<Identity>,
        rewritten: Rewritten,
        observed: bool,
    ) -> Keepsake {
        let Rewritten { plan, waypoint, model, counted, .. } = rewritten;
        let lesson = (model.fit == Fit::Nearest && !(observed && plan.before != plan.after))
            .then(|| (calibration_key(identity.as_ref(), &model), counted));
        let waypoint = identity.zip(waypoint).map(|(identity, waypoint)| (identity.key, waypoint));
        Keepsake { gate: gate.clone(), waypoint, lesson }
    }

    /// The upstream has taken the request: its decisions are repeated from now on.
    pub(crate) fn keep(&mut self) {
        if let Some((key, waypoint)) = self.waypoint.take() {
            self.gate.conversations.add(key, waypoint);
        }
    }

    /// Whether anybody wants to know what the upstream says it has counted.
    pub(crate) fn wants_usage(&self) -> bool {
        self.lesson.is_some()
    }

    pub(crate) fn learn(&mut self, usage: Usage) {
        if let Some((key, counted)) = self.lesson.take() {
            self.gate.calibration.observe(&key, counted, Tokens(usage.prompt_tokens));
        }
    }
}

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
    first_byte: Option<Duration>,
    status: StatusCode,
    outcome: Outcome,
    reason: Option<&'static str>,
    /// Tokens as sent, tokens as forwarded, messages masked.
    plan: Option<(u64, u64, usize)>,
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
            plan: None,
        }
    }

    pub(crate) fn note_plan(&mut self, plan: Option<&Plan>) {
        self.plan = plan.map(|plan| (plan.before.0, plan.after.0, plan.masked.len()));
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
        self.status = status;
        self.outcome = Outcome::Refused;
        self.reason = Some(refusal.code());
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
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
            route: self.route.as_deref(),
            upstream: self.upstream.as_ref().map(|upstream| upstream.name.as_str()),
            bytes_in: self.received.bytes(),
            bytes_out: self.bytes_out,
            tokens_before: self.plan.map(|(before, ..)| before),
            tokens_after: self.plan.map(|(_, after, _)| after),
            masked: self.plan.map(|(.., masked)| masked),
            first_byte: self.first_byte,
            duration: self.started.elapsed(),
        };
        access.write(&self.gate.lines, self.gate.format);
    }
}
