use crate::choice::choices;
use crate::section::Section;
use crate::tree::Node;
use crate::value::{self, InvalidValue};
use std::time::Duration;

/// Where spans and metrics are sent. The standard `OTEL_*` variables override everything but `content`.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The collector's address; `None` to send nothing.
    pub endpoint: Option<String>,
    /// `None` to choose by the endpoint's port.
    pub protocol: Option<OtlpProtocol>,
    pub traces: bool,
    pub metrics: bool,
    /// How often metrics are sent.
    pub interval: Duration,
    pub service_name: String,
    /// The share of requests that are traced, unless the client's `traceparent` decides.
    pub sample_ratio: f64,
    /// Which names of OpenTelemetry's conventions for generative models are used.
    pub semconv: Semconv,
    /// Whether spans contain prompts and completions.
    pub content: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    Grpc,
    Http,
}

choices!(OtlpProtocol { "grpc" => Grpc, "http/protobuf" => Http });

/// The generation of the conventions: they renamed most of their metrics in autumn 2026.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Semconv {
    Old,
    New,
    Both,
}

choices!(Semconv { "old" => Old, "new" => New, "both" => Both });

impl Telemetry {
    pub(crate) fn read(section: &mut Section<'_>) -> Telemetry {
        Telemetry {
            endpoint: section.optional("endpoint", endpoint),
            protocol: section.optional("protocol", value::choice),
            traces: section.flag("traces", true),
            metrics: section.flag("metrics", true),
            interval: section.duration("interval", Duration::from_secs(60)),
            service_name: section.text("service_name", "tidegate", value::text),
            sample_ratio: section.fraction("sample_ratio", 1.0),
            semconv: section.choice("semconv", Semconv::Both),
            content: section.flag("content", false),
        }
    }
}

fn endpoint(node: &Node) -> Result<String, InvalidValue> {
    let text = value::text(node)?;
    let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') => Ok(text),
        Some(_) | None => Err(InvalidValue::new(
            "must be the URL of an OTLP collector",
            "for example, `http://localhost:4317`, without a path for traces or metrics",
        )),
    }
}
