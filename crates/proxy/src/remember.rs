//! The last step: what stays of a request when it is over.

use crate::body::Progress;
use crate::gate::Gate;
use crate::reply::Refusal;
use crate::request_id::RequestId;
use http::{Method, StatusCode, Uri};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Upstream;
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
    path: Uri,
    pub(crate) started: Instant,
    pub(crate) route: Option<String>,
    pub(crate) upstream: Option<Arc<Upstream>>,
    pub(crate) received: Progress,
    pub(crate) bytes_out: u64,
    first_byte: Option<Duration>,
    status: StatusCode,
    outcome: Outcome,
    reason: Option<&'static str>,
}

/// What nginx logs for a request whose client left before it was answered.
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl Entry {
    pub(crate) fn begin(gate: &Arc<Gate>, enabled: bool, id: RequestId, method: &Method, path: &Uri) -> Entry {
        Entry {
            gate: gate.clone(),
            enabled,
            request_id: id,
            method: method.clone(),
            path: path.clone(),
            started: Instant::now(),
            route: None,
            upstream: None,
            received: Progress::start(),
            bytes_out: 0,
            first_byte: None,
            status: StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST),
            outcome: Outcome::ClientGone,
            reason: None,
        }
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
            path: self.path.path(),
            status: self.status.as_u16(),
            outcome: self.outcome,
            reason: self.reason,
            route: self.route.as_deref(),
            upstream: self.upstream.as_ref().map(|upstream| upstream.name.as_str()),
            bytes_in: self.received.bytes(),
            bytes_out: self.bytes_out,
            first_byte: self.first_byte,
            duration: self.started.elapsed(),
        };
        access.write(&self.gate.lines, self.gate.format);
    }
}
