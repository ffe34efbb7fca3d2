//! The spans of a request.
//!
//! They are `tracing` spans with a target of their own, which only [`layer`] subscribes to. Without it they are disabled and cost one
//! check of a flag.

use crate::labels::CHAT;
use crate::names::attribute;
use crate::provider::{host_and_port, provider};
use crate::{Outcome, SpanLayer};
use http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::Status;
use opentelemetry::{Array, Context, StringValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use std::sync::LazyLock;
use tracing::{Span, info_span};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;

pub use opentelemetry::{KeyValue, Value};

pub(crate) const TARGET: &str = "tidegate::span";

static PROPAGATOR: LazyLock<TraceContextPropagator> = LazyLock::new(TraceContextPropagator::new);

pub(crate) fn layer(tracer: SdkTracer) -> SpanLayer {
    OpenTelemetryLayer::new(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| metadata.target() == TARGET))
        .boxed()
}

/// The SERVER span of a request, from its head to the last byte of its answer. It ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct RequestSpan(Span);

/// The parent of spans that may outlive the request, such as a fold after the answer. It does not keep the SERVER span open.
#[derive(Clone, Debug, Default)]
pub struct SpanParent(Option<Context>);

/// The span of one step of a request. It ends when this is dropped.
#[derive(Debug)]
pub struct StepSpan(Span);

/// The CLIENT span of a call to an upstream.
#[derive(Debug)]
pub struct UpstreamSpan(Span);

impl RequestSpan {
    /// Starts a span, as a child of the client's `traceparent` if there is one. `route` is the template of a well-known path; `None` for
    /// other paths, because a span name must have low cardinality.
    #[must_use]
    pub fn begin(method: &str, path: &str, route: Option<&'static str>, headers: &HeaderMap) -> RequestSpan {
        let span = info_span!(
            target: TARGET,
            parent: None,
            "request",
            otel.name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
            otel.kind = "server",
        );
        let request = RequestSpan(span);
        if request.is_enabled() {
            // This fails only for a span that has already started.
            let _ = request.0.set_parent(PROPAGATOR.extract(&HeaderExtractor(headers)));
            request.set(attribute::METHOD, method.to_owned());
            request.set(attribute::PATH, path.to_owned());
            if let Some(route) = route {
                request.set(attribute::HTTP_ROUTE, route);
            }
        }
        request
    }

    /// Whether the span is recorded. Check this before computing attributes that are expensive.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !self.0.is_disabled()
    }

    #[must_use]
    pub fn step(&self, name: &'static str) -> StepSpan {
        StepSpan(info_span!(target: TARGET, parent: &self.0, "step", otel.name = name))
    }

    /// A parent for spans that may outlive this one.
    #[must_use]
    pub fn parent(&self) -> SpanParent {
        SpanParent(self.is_enabled().then(|| self.0.context()))
    }

    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        self.0.set_attribute(key, value);
    }

    pub fn event(&self, name: &'static str, attributes: Vec<KeyValue>) {
        self.0.add_event(name, attributes);
    }

    /// Sets the final attributes. The span ends when it is dropped.
    pub fn end(&self, status: u16, outcome: Outcome, reason: Option<&'static str>) {
        if !self.is_enabled() {
            return;
        }
        self.set(attribute::STATUS, i64::from(status));
        self.set(attribute::OUTCOME, outcome.name());
        if let Some(reason) = reason {
            self.set(attribute::REASON, reason);
        }
        // A refused request is the client's error, and not one of this server.
        let is_cut = outcome == Outcome::Refused && status < 400;
        if status >= 500 || outcome == Outcome::UpstreamBroke || is_cut {
            self.set(attribute::ERROR_TYPE, reason.map_or_else(|| status.to_string(), str::to_owned));
            self.0.set_status(Status::error(""));
        }
    }

    /// Starts the span of a call to the upstream at `authority`. `model` is `None` unless it is a chat completion.
    #[must_use]
    pub fn call(&self, method: &str, model: Option<&str>, authority: &str) -> UpstreamSpan {
        call(&self.0, method, model, authority)
    }
}

impl SpanParent {
    #[must_use]
    pub fn step(&self, name: &'static str) -> StepSpan {
        let Some(parent) = &self.0 else { return StepSpan(Span::none()) };
        // A child by `tracing`'s own means would keep the SERVER span open.
        let span = info_span!(target: TARGET, parent: None, "step", otel.name = name);
        // This fails only for a span that has already started.
        let _ = span.set_parent(parent.clone());
        StepSpan(span)
    }
}

impl StepSpan {
    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        self.0.set_attribute(key, value);
    }

    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !self.0.is_disabled()
    }

    /// Starts the span of a chat completion that this step requests, such as a summarizer's.
    #[must_use]
    pub fn call(&self, model: &str, authority: &str) -> UpstreamSpan {
        call(&self.0, "POST", Some(model), authority)
    }
}

fn call(parent: &Span, method: &str, model: Option<&str>, authority: &str) -> UpstreamSpan {
    let span = info_span!(
        target: TARGET,
        parent: parent,
        "call",
        otel.name = model.map_or_else(|| method.to_owned(), |model| format!("{CHAT} {model}").trim_end().to_owned()),
        otel.kind = "client",
    );
    let call = UpstreamSpan(span);
    if call.is_enabled() {
        let (host, port) = host_and_port(authority);
        if let Some(model) = model {
            call.set(attribute::OPERATION, CHAT);
            call.set(attribute::PROVIDER, provider(authority));
            call.set(attribute::REQUEST_MODEL, model.to_owned());
        }
        call.set(attribute::SERVER_ADDRESS, host.to_owned());
        if let Some(port) = port {
            call.set(attribute::SERVER_PORT, i64::from(port));
        }
    }
    call
}

impl UpstreamSpan {
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !self.0.is_disabled()
    }

    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        self.0.set_attribute(key, value);
    }

    pub fn set_texts(&self, key: &'static str, values: &[String]) {
        let values = values.iter().map(|value| StringValue::from(value.clone())).collect();
        self.0.set_attribute(key, Value::Array(Array::String(values)));
    }

    /// Adds this span's `traceparent` to the headers that go upstream.
    pub fn inject(&self, headers: &mut HeaderMap) {
        if self.is_enabled() {
            PROPAGATOR.inject_context(&self.0.context(), &mut HeaderInjector(headers));
        }
    }

    /// Marks the call as failed, with `kind` as its `error.type`.
    pub fn fail(&self, kind: &str) {
        if self.is_enabled() {
            self.set(attribute::ERROR_TYPE, kind.to_owned());
            self.0.set_status(Status::error(""));
        }
    }
}
