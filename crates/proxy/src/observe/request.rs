//! Observes one request and reports it when it is over: a line in the access log, its span, its place in the metrics.

use crate::observe::request_id::RequestId;
use crate::reply::refusal::Refusal;
use crate::transport::body::Progress;
use crate::transport::framing::ActiveRequest;
use crate::transport::overload::{Charge, RequestPermit};
use http::header::{HeaderMap, RETRY_AFTER};
use http::{Method, Request, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Upstream;
use tidegate_context::Figures;
use tidegate_telemetry::names::{attribute, event};
use tidegate_telemetry::{
    AccessRecord, Completion, Format, KeyValue, Labels, LogSink, Metrics, Outcome, RequestSpan, UpstreamSpan,
};
use tokio::time::Instant;

/// Where requests are reported to.
#[derive(Debug)]
pub(crate) struct Sinks {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lines: LogSink,
    pub(crate) format: Format,
}

/// Collects what is known of one request. Dropping it reports the request, so that a client that leaves in the middle of any
/// step is reported like any other.
#[derive(Debug)]
pub(crate) struct RequestObserver {
    sinks: Arc<Sinks>,
    head: Head,
    pub(crate) span: RequestSpan,
    /// The span of the upstream call, until its answer has been read.
    pub(crate) call: Option<UpstreamSpan>,
    pub(crate) upload: Progress,
    /// The memory that the request takes.
    pub(crate) charge: Arc<Charge>,
    /// Counts the request as one in flight, of the process and of its connection.
    pub(crate) permit: Option<(RequestPermit, ActiveRequest)>,
    facts: Facts,
    ending: Ending,
}

/// What is known when the request arrives.
#[derive(Debug)]
struct Head {
    id: RequestId,
    method: Method,
    /// A copy: a slice of the head would keep its whole buffer alive for as long as an answer streams.
    path: Box<str>,
    started: Instant,
    is_logged: bool,
}

/// What the pipeline finds out.
#[derive(Debug, Default)]
struct Facts {
    route: Option<String>,
    /// The model's name and the conversation's, as the client wrote them.
    model: Option<Box<str>>,
    conversation: Option<Box<str>>,
    upstream: Option<Arc<Upstream>>,
    /// When the request was forwarded, and how long the upstream took to begin its answer.
    sent: Option<Instant>,
    latency: Option<Duration>,
    /// What a chat completion is counted under.
    labels: Option<Labels>,
    figures: Option<Figures>,
    degraded: Option<&'static str>,
    is_rescued: bool,
    /// The time between the arrival of the request and its forwarding.
    overhead_us: u64,
}

/// How the request ended, as known so far.
#[derive(Clone, Copy, Debug)]
struct Ending {
    status: StatusCode,
    outcome: Outcome,
    reason: Option<&'static str>,
    /// The code of the error that we answered with.
    refusal: Option<&'static str>,
    upstream: UpstreamAnswer,
    first_byte: Option<Duration>,
    bytes_out: u64,
}

/// The head of the upstream's answer.
#[derive(Clone, Copy, Debug, Default)]
struct UpstreamAnswer {
    status: Option<StatusCode>,
    /// The time since the request was forwarded.
    latency: Option<Duration>,
    /// How many seconds the upstream asks the client to wait.
    retry_after: Option<u64>,
}

/// What a turn record takes from the observation of its request.
#[derive(Clone, Debug)]
pub(crate) struct RequestFacts {
    pub(crate) request_id: String,
    pub(crate) status: StatusCode,
    pub(crate) outcome: Outcome,
    /// The code of our own error, or why an answer broke off.
    pub(crate) reason: Option<&'static str>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) upstream_latency: Option<Duration>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) duration: Duration,
    pub(crate) overhead_us: u64,
    pub(crate) degraded: Option<&'static str>,
}

impl RequestFacts {
    /// The same for a request that is about to be answered with this.
    pub(crate) fn with(self, refusal: &Refusal) -> RequestFacts {
        let reason = Some(refusal.code());
        RequestFacts { status: refusal.status(), outcome: refusal.outcome(), reason, ..self }
    }
}

/// The status that nginx logs for a request whose client left before it was answered.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Why a request failed whose answer has a status of success.
const ERROR_IN_ANSWER: &str = "upstream_error";

/// What requests without a route are counted under.
const NO_ROUTE: &str = "none";

impl RequestObserver {
    pub(crate) fn begin<B>(
        sinks: &Arc<Sinks>,
        is_logged: bool,
        request: &Request<B>,
        charge: Charge,
    ) -> RequestObserver {
        let (method, path) = (request.method(), request.uri().path());
        let id = RequestId::of(request.headers());
        let span = RequestSpan::begin(method.as_str(), path, well_known(path), request.headers());
        if span.is_enabled() {
            span.set(attribute::REQUEST_ID, id.as_str().to_owned());
        }
        let started = Instant::now();
        RequestObserver {
            sinks: sinks.clone(),
            head: Head { id, method: method.clone(), path: path.into(), started, is_logged },
            span,
            call: None,
            upload: Progress::start(),
            charge: Arc::new(charge),
            permit: None,
            facts: Facts::default(),
            // If nothing else is recorded, the client has left.
            ending: Ending {
                status: StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST),
                outcome: Outcome::ClientClosed,
                reason: None,
                refusal: None,
                upstream: UpstreamAnswer::default(),
                first_byte: None,
                bytes_out: 0,
            },
        }
    }

    pub(crate) fn request_id(&self) -> &RequestId {
        &self.head.id
    }

    pub(crate) fn route(&self) -> Option<&str> {
        self.facts.route.as_deref()
    }

    pub(crate) fn labels(&self) -> Option<&Labels> {
        self.facts.labels.as_ref()
    }

    pub(crate) fn degraded(&self) -> Option<&'static str> {
        self.facts.degraded
    }

    pub(crate) fn routed(&mut self, route: &str) {
        self.facts.route = Some(route.to_owned());
    }

    /// The request names this model.
    pub(crate) fn asks_for(&mut self, model: &str) {
        self.facts.model = Some(model.into());
    }

    pub(crate) fn belongs_to(&mut self, conversation: &str) {
        self.facts.conversation = Some(conversation.into());
    }

    /// Counts the request as a chat completion of this route and model.
    pub(crate) fn count_under(&mut self, labels: Labels) {
        self.facts.labels = Some(labels);
    }

    /// Records why the request was served in a degraded way.
    pub(crate) fn degrade(&mut self, reason: Option<&'static str>) {
        self.facts.degraded = reason.or(self.facts.degraded);
    }

    /// The request is ready to go out, `overhead` after it arrived.
    pub(crate) fn planned(&mut self, figures: Option<&Figures>, overhead: Duration) -> u64 {
        self.facts.figures = figures.copied();
        self.facts.overhead_us = u64::try_from(overhead.as_micros()).unwrap_or(u64::MAX);
        if let Some(labels) = &self.facts.labels {
            self.sinks.metrics.overhead(labels, overhead);
        }
        self.facts.overhead_us
    }

    pub(crate) fn sending(&mut self, upstream: &Arc<Upstream>) {
        self.facts.upstream = Some(upstream.clone());
        (self.facts.sent, self.facts.latency) = (Some(Instant::now()), None);
    }

    /// The head of the upstream's answer is there. It may be read further before it is passed on.
    pub(crate) fn head_arrived(&mut self) {
        self.facts.latency = self.facts.sent.map(|sent| sent.elapsed());
    }

    /// The upstream's answer is passed on.
    pub(crate) fn upstream_answering(&mut self, status: StatusCode, headers: &HeaderMap) {
        let latency = self.facts.latency.or(self.facts.sent.map(|sent| sent.elapsed()));
        self.ending.upstream =
            UpstreamAnswer { status: Some(status), latency, retry_after: retry_after(headers) };
        if let Some((labels, latency)) = self.facts.labels.as_ref().zip(latency) {
            self.sinks.metrics.upstream_latency(labels, latency);
        }
        self.answering(status);
    }

    /// The answer to the client has begun.
    pub(crate) fn answering(&mut self, status: StatusCode) {
        self.ending.status = status;
        self.ending.first_byte = Some(self.head.started.elapsed());
        if let Some(call) = self.call.as_ref().filter(|_| status.as_u16() >= 400) {
            call.fail(status.as_str());
        }
    }

    pub(crate) fn relayed(&mut self, bytes: usize) {
        self.ending.bytes_out += bytes as u64;
    }

    /// The request is sent again, shortened, because the upstream found it too long.
    pub(crate) fn rescued(&mut self, figures: &Figures) {
        self.facts.figures = Some(*figures);
        self.facts.is_rescued = true;
    }

    /// The answer is complete.
    pub(crate) fn answered(&mut self) {
        self.ending.outcome = self.outcome_of_answer();
    }

    /// The answer is complete, and is an error or ends with one, although its status says otherwise.
    pub(crate) fn answered_with_error(&mut self) {
        self.ending.outcome = Outcome::UpstreamError;
        self.ending.reason = Some(ERROR_IN_ANSWER);
        if let Some(call) = &self.call {
            call.fail(ERROR_IN_ANSWER);
        }
    }

    /// How the request has ended if the answer is complete by now.
    pub(crate) fn outcome_of_answer(&self) -> Outcome {
        let is_error = self.ending.upstream.status.is_some_and(|status| status.as_u16() >= 400);
        match (is_error, self.facts.is_rescued) {
            (true, _) => Outcome::UpstreamError,
            (false, true) => Outcome::Rescued,
            (false, false) => Outcome::Answered,
        }
    }

    pub(crate) fn broke(&mut self, reason: &'static str) {
        self.ending.outcome = Outcome::UpstreamBroke;
        self.ending.reason = Some(reason);
    }

    /// We have cut the answer off ourselves.
    pub(crate) fn cut(&mut self, reason: &'static str) {
        self.ending.outcome = Outcome::Refused;
        self.ending.reason = Some(reason);
    }

    pub(crate) fn refused(&mut self, refusal: &Refusal, status: StatusCode) {
        if *refusal == Refusal::ClientLeft {
            // Keeps the initial outcome: the client has left.
            return;
        }
        if matches!(refusal, Refusal::OverBudget(_)) {
            self.sinks.metrics.over_budget();
        }
        self.ending.status = status;
        self.ending.outcome = refusal.outcome();
        self.ending.reason = Some(refusal.reason());
        self.ending.refusal = Some(refusal.code());
        if let Some(call) = &self.call {
            call.fail(refusal.code());
        }
        if self.span.is_enabled() {
            let code = KeyValue::new(attribute::REASON, refusal.code());
            self.span.event(event::REFUSED, vec![code]);
        }
    }

    pub(crate) fn facts(&self) -> RequestFacts {
        RequestFacts {
            request_id: self.head.id.as_str().to_owned(),
            status: self.ending.status,
            outcome: self.ending.outcome,
            reason: self.ending.refusal.or(self.ending.reason),
            first_byte: self.ending.first_byte,
            upstream_latency: self.ending.upstream.latency,
            retry_after: self.ending.upstream.retry_after,
            duration: self.head.started.elapsed(),
            overhead_us: self.facts.overhead_us,
            degraded: self.facts.degraded,
        }
    }

    /// The `error.type` of a chat completion.
    fn error(&self) -> Option<String> {
        let Ending { status, outcome, reason, .. } = self.ending;
        match outcome {
            Outcome::Answered | Outcome::Rescued => None,
            Outcome::UpstreamError | Outcome::UpstreamBroke | Outcome::Refused => {
                Some(reason.unwrap_or(status.as_str()).to_owned())
            }
            Outcome::ClientClosed => Some(outcome.name().to_owned()),
        }
    }

    fn count(&self) {
        let Ending { outcome, refusal, upstream, first_byte, .. } = self.ending;
        let metrics = &self.sinks.metrics;
        let completion = Completion {
            outcome,
            upstream: self.facts.sent.map(|_| upstream.status.map(|status| status.as_u16())),
            refusal,
            degraded: self.facts.degraded,
        };
        if let Some(labels) = &self.facts.labels {
            metrics.completed(labels, completion);
            let first = first_byte.filter(|_| refusal.is_none());
            metrics.record_duration(labels, self.head.started.elapsed(), first, self.error());
        } else {
            metrics.request(self.facts.route.as_deref().unwrap_or(NO_ROUTE), completion);
        }
    }

    fn end_span(&self) {
        if !self.span.is_enabled() {
            return;
        }
        if let Some(upstream) = &self.facts.upstream {
            self.span.set(attribute::UPSTREAM, upstream.name.clone());
        }
        if let Some(reason) = self.facts.degraded {
            self.span.set(attribute::DEGRADED, reason);
        }
        let UpstreamAnswer { latency, retry_after, .. } = self.ending.upstream;
        let millis = latency.map(|latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX));
        for (key, figure) in [(attribute::UPSTREAM_MS, millis), (attribute::RETRY_AFTER, retry_after)] {
            if let Some(figure) = figure {
                self.span.set(key, i64::try_from(figure).unwrap_or(i64::MAX));
            }
        }
        self.span.end(self.ending.status.as_u16(), self.ending.outcome, self.ending.reason);
    }

    fn log(&self) {
        let (head, facts, ending) = (&self.head, &self.facts, &self.ending);
        let access = AccessRecord {
            request_id: head.id.as_str(),
            method: head.method.as_str(),
            path: &head.path,
            status: ending.status.as_u16(),
            outcome: ending.outcome,
            reason: ending.reason,
            degraded: facts.degraded,
            route: facts.route.as_deref(),
            upstream: facts.upstream.as_ref().map(|upstream| upstream.name.as_str()),
            model: facts.model.as_deref(),
            conversation: facts.conversation.as_deref(),
            bytes_in: self.upload.bytes(),
            bytes_out: ending.bytes_out,
            first_byte: ending.first_byte,
            upstream_latency: ending.upstream.latency,
            retry_after: ending.upstream.retry_after,
            duration: head.started.elapsed(),
            ..AccessRecord::default()
        };
        let access = match &facts.figures {
            Some(figures) => access.with_figures(figures),
            None => access,
        };
        access.write(&self.sinks.lines, self.sinks.format);
    }
}

/// The seconds of a `retry-after` header. A date is left to the client.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

/// The route template of a path that many requests have.
fn well_known(path: &str) -> Option<&'static str> {
    let is_deployment = || path.starts_with("/openai/deployments/") && path.ends_with("/chat/completions");
    match path {
        "/v1/chat/completions" => Some("/v1/chat/completions"),
        "/v1/messages" => Some("/v1/messages"),
        "/v1/responses" => Some("/v1/responses"),
        _ if is_deployment() => Some("/openai/deployments/{deployment}/chat/completions"),
        _ => None,
    }
}

impl Drop for RequestObserver {
    fn drop(&mut self) {
        self.count();
        self.end_span();
        if self.head.is_logged {
            self.log();
        }
    }
}
