//! The spans of a request.
//!
//! They are spans of `tracing` under one target. Nothing but [`layer`] listens to that target: where there is none, a span is a
//! look at a flag.

use crate::labels::{CHAT, provider, split, texts};
use crate::names::attribute;
use crate::{Outcome, SpanLayer};
use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::Status;
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use std::sync::LazyLock;
use tracing::{Span, info_span};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;

pub use opentelemetry::{KeyValue, Value};

pub(crate) const TARGET: &str = "tidegate::journey";

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

/// The SERVER span of a request, from its head to the last byte of its answer.
#[derive(Clone, Debug)]
pub struct Journey(Span);

/// Where a journey can still be followed from when it is over. What begins there belongs to it and does not prolong it.
#[derive(Clone, Debug, Default)]
pub struct Trail(Option<Context>);

/// One step of a journey. It ends when this is dropped, however that comes about.
#[derive(Debug)]
pub struct Step(Span);

/// The CLIENT span of a call to an upstream.
#[derive(Debug)]
pub struct Call(Span);

impl Journey {
    /// `route` is a path that many requests have, and nothing where it could be any.
    #[must_use]
    pub fn begin(method: &str, path: &str, route: Option<&'static str>, headers: &HeaderMap) -> Journey {
        let span = info_span!(
            target: TARGET,
            parent: None,
            "request",
            otel.name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
            otel.kind = "server",
        );
        let journey = Journey(span);
        if journey.is_on() {
            // It fails only for a span that has begun, and this one has not.
            let _ = journey.0.set_parent(PROPAGATOR.extract(&HeaderExtractor(headers)));
            journey.set(attribute::METHOD, method.to_owned());
            journey.set(attribute::PATH, path.to_owned());
            if let Some(route) = route {
                journey.set(attribute::HTTP_ROUTE, route);
            }
        }
        journey
    }

    /// Whether anybody hears of it. Ask before making something up for it.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.0.is_disabled()
    }

    #[must_use]
    pub fn step(&self, name: &'static str) -> Step {
        Step(info_span!(target: TARGET, parent: &self.0, "step", otel.name = name))
    }

    #[must_use]
    pub fn trail(&self) -> Trail {
        Trail(self.is_on().then(|| self.0.context()))
    }

    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        self.0.set_attribute(key, value);
    }

    pub fn event(&self, name: &'static str, attributes: Vec<KeyValue>) {
        self.0.add_event(name, attributes);
    }

    pub fn end(&self, status: u16, outcome: Outcome, reason: Option<&'static str>) {
        if !self.is_on() {
            return;
        }
        self.set(attribute::STATUS, i64::from(status));
        self.set(attribute::OUTCOME, outcome.name());
        if let Some(reason) = reason {
            self.set(attribute::REASON, reason);
        }
        // A client that was told what is wrong with its request has no failing server.
        if status >= 500 || outcome == Outcome::Broken {
            self.set(attribute::ERROR_TYPE, reason.map_or_else(|| status.to_string(), str::to_owned));
            self.0.set_status(Status::error(""));
        }
    }

    /// A call to `authority`, for a chat completion by `model` where it is one.
    #[must_use]
    pub fn call(&self, method: &str, model: Option<&str>, authority: &str) -> Call {
        call(&self.0, method, model, authority)
    }
}

impl Trail {
    #[must_use]
    pub fn step(&self, name: &'static str) -> Step {
        let Some(parent) = &self.0 else { return Step(Span::none()) };
        // A child of the other span in the eyes of `tracing` would keep that one from ending.
        let span = info_span!(target: TARGET, parent: None, "step", otel.name = name);
        // It fails only for a span that has begun, and this one has not.
        let _ = span.set_parent(parent.clone());
        Step(span)
    }
}

impl Step {
    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        self.0.set_attribute(key, value);
    }

    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.0.is_disabled()
    }

    /// A call that this step makes.
    #[must_use]
    pub fn call(&self, model: &str, authority: &str) -> Call {
        call(&self.0, "POST", Some(model), authority)
    }
}

fn call(parent: &Span, method: &str, model: Option<&str>, authority: &str) -> Call {
    let span = info_span!(
        target: TARGET,
        parent: parent,
        "call",
        otel.name = model.map_or_else(|| method.to_owned(), |model| format!("{CHAT} {model}").trim_end().to_owned()),
        otel.kind = "client",
    );
    let call = Call(span);
    if call.is_on() {
        let (host, port) = split(authority);
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

impl Call {
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.0.is_disabled()
    }

    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        self.0.set_attribute(key, value);
    }

    pub fn set_texts(&self, key: &'static str, values: &[String]) {
        self.0.set_attribute(key, texts(values));
    }

    /// Tells the upstream which trace it is part of.
    pub fn inject(&self, headers: &mut HeaderMap) {
        if self.is_on() {
            PROPAGATOR.inject_context(&self.0.context(), &mut HeaderInjector(headers));
        }
    }

    pub fn fail(&self, kind: &str) {
        if self.is_on() {
            self.set(attribute::ERROR_TYPE, kind.to_owned());
            self.0.set_status(Status::error(""));
        }
    }
}
