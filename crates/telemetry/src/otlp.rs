//! What is exported and where: `[telemetry]`, overridden by the standard `OTEL_*` variables.

use crate::Semconv;
use std::time::Duration;

/// The settings in `[telemetry]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Otlp {
    /// The collector's address, without the path of a signal.
    pub endpoint: Option<String>,
    pub protocol: Option<Protocol>,
    pub traces: bool,
    pub metrics: bool,
    /// The interval at which metrics are exported.
    pub interval: Duration,
    pub service_name: String,
    /// The share of requests that are traced, unless the client's `traceparent` decides.
    pub sample_ratio: f64,
    /// Whose names the metrics have.
    pub semconv: Semconv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Grpc,
    Http,
}

/// Where a signal is exported to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Including the path of the signal, if it has one.
    pub(crate) endpoint: String,
    pub(crate) protocol: Protocol,
}

/// The settings for the exporters, after the variables were applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExportSettings {
    pub(crate) traces: Option<Target>,
    pub(crate) metrics: Option<Target>,
    pub(crate) interval: Duration,
    /// `None` if the SDK reads it from its variables.
    pub(crate) sample_ratio: Option<f64>,
    /// `None` if the SDK reads it from its variables.
    pub(crate) service_name: Option<String>,
    pub(crate) queue_size: usize,
    pub(crate) batch_size: usize,
    pub(crate) delay: Duration,
    pub(crate) timeout: Duration,
    pub(crate) certificate: Option<String>,
    /// Settings that could not be applied.
    pub(crate) warnings: Vec<String>,
}

/// In spans, of which a request has about ten.
const QUEUE_SIZE: usize = 4096;
const BATCH_SIZE: usize = 512;
const DELAY: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);

/// The default port of OTLP over gRPC.
const GRPC_PORT: &str = ":4317";

impl Otlp {
    pub(crate) fn resolve(&self, env: &dyn Fn(&str) -> Option<String>) -> ExportSettings {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let mut warnings = Vec::new();
        let is_disabled = env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let mut target = |signal, path, is_enabled| {
            (!is_disabled).then(|| self.target(&env, signal, path, is_enabled, &mut warnings)).flatten()
        };
        let traces = target("TRACES", "v1/traces", self.traces);
        let metrics = target("METRICS", "v1/metrics", self.metrics);
        let millis = |name: &str| env(name)?.parse().ok().map(Duration::from_millis);
        let number = |name: &str| env(name)?.parse().ok();
        let names_service = env("OTEL_SERVICE_NAME").is_some()
            || env("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        ExportSettings {
            traces,
            metrics,
            interval: millis("OTEL_METRIC_EXPORT_INTERVAL").unwrap_or(self.interval),
            sample_ratio: env("OTEL_TRACES_SAMPLER").is_none().then_some(self.sample_ratio),
            service_name: (!names_service).then(|| self.service_name.clone()),
            queue_size: number("OTEL_BSP_MAX_QUEUE_SIZE").unwrap_or(QUEUE_SIZE),
            batch_size: number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").unwrap_or(BATCH_SIZE),
            delay: millis("OTEL_BSP_SCHEDULE_DELAY").unwrap_or(DELAY),
            timeout: millis("OTEL_EXPORTER_OTLP_TIMEOUT").unwrap_or(TIMEOUT),
            certificate: env("OTEL_EXPORTER_OTLP_CERTIFICATE"),
            warnings,
        }
    }

    fn target(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        signal: &str,
        path: &str,
        is_enabled: bool,
        warnings: &mut Vec<String>,
    ) -> Option<Target> {
        let variable = format!("OTEL_{signal}_EXPORTER");
        let exporter = env(&variable);
        let is_requested = match exporter.as_deref().map(str::trim) {
            None => false,
            Some("otlp") => true,
            Some("none") => return None,
            // `/metrics` is always served.
            Some("prometheus") if signal == "METRICS" => return None,
            Some(other) => {
                warnings.push(format!(
                    "`{variable}` is `{other}`, but must be `otlp` or `none`; this signal is not exported"
                ));
                return None;
            }
        };
        let own = env(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
        let shared = env("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| self.endpoint.clone());
        let has_endpoint = own.is_some() || shared.is_some();
        if !(is_requested || is_enabled && has_endpoint) {
            return None;
        }
        let protocol = env(&format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"))
            .or_else(|| env("OTEL_EXPORTER_OTLP_PROTOCOL"));
        let protocol = protocol.map(|name| match name.trim() {
            "grpc" => Protocol::Grpc,
            "http/protobuf" => Protocol::Http,
            other => {
                warnings.push(format!(
                    "unsupported OTLP protocol `{other}`; expected `grpc` or `http/protobuf`; using `http/protobuf`"
                ));
                Protocol::Http
            }
        });
        let given = own.as_deref().or(shared.as_deref()).unwrap_or_default();
        let by_port =
            || if given.trim_end_matches('/').ends_with(GRPC_PORT) { Protocol::Grpc } else { Protocol::Http };
        let protocol = protocol.or(self.protocol).unwrap_or_else(by_port);
        let endpoint = match (own, shared, protocol) {
            // The specification adds no path to a signal's own endpoint.
            (Some(own), _, _) => own,
            (None, Some(shared), Protocol::Grpc) => shared,
            (None, Some(shared), Protocol::Http) => format!("{}/{path}", shared.trim_end_matches('/')),
            (None, None, Protocol::Grpc) => "http://localhost:4317".to_owned(),
            (None, None, Protocol::Http) => format!("http://localhost:4318/{path}"),
        };
        Some(Target { endpoint, protocol })
    }
}

impl Default for Otlp {
    fn default() -> Otlp {
        Otlp {
            endpoint: None,
            protocol: None,
            traces: true,
            metrics: true,
            interval: Duration::from_secs(60),
            service_name: "tidegate".to_owned(),
            sample_ratio: 1.0,
            semconv: Semconv::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(otlp: &Otlp, variables: &[(&str, &str)]) -> ExportSettings {
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        otlp.resolve(&env)
    }

    fn target(endpoint: &str, protocol: Protocol) -> Option<Target> {
        Some(Target { endpoint: endpoint.to_owned(), protocol })
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint() {
        let settings = resolved(&Otlp::default(), &[]);
        assert_eq!((settings.traces, settings.metrics), (None, None));
    }

    #[test]
    fn only_http_adds_the_path_of_a_signal_to_the_shared_endpoint() {
        let http = resolved(&Otlp::default(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")]);
        assert_eq!(http.traces, target("http://c:4318/v1/traces", Protocol::Http));
        assert_eq!(http.metrics, target("http://c:4318/v1/metrics", Protocol::Http));
        let grpc = resolved(&Otlp { endpoint: Some("http://c:4317".to_owned()), ..Otlp::default() }, &[]);
        assert_eq!(grpc.traces, target("http://c:4317", Protocol::Grpc));
    }

    #[test]
    fn variables_override_the_file() {
        let file = Otlp { endpoint: Some("http://file:4317".to_owned()), ..Otlp::default() };
        let mixed = resolved(
            &file,
            &[
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:9/x"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_METRICS_EXPORTER", "none"),
                ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
                ("OTEL_BSP_MAX_QUEUE_SIZE", "7"),
                ("OTEL_SERVICE_NAME", "mine"),
            ],
        );
        assert_eq!((mixed.traces, mixed.metrics), (target("http://own:9/x", Protocol::Http), None));
        assert_eq!(
            (mixed.interval, mixed.queue_size, mixed.service_name),
            (Duration::from_millis(1500), 7, None)
        );
        let off = resolved(&file, &[("OTEL_SDK_DISABLED", "TRUE")]);
        assert_eq!((off.traces, off.metrics), (None, None));
    }

    #[test]
    fn unsupported_values_are_warned_about() {
        let odd = resolved(&Otlp::default(), &[("OTEL_TRACES_EXPORTER", "zipkin")]);
        assert_eq!(odd.traces, None);
        assert!(odd.warnings[0].contains("zipkin"), "{:?}", odd.warnings);
        let json = resolved(
            &Otlp::default(),
            &[("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")],
        );
        assert_eq!(json.traces, target("http://localhost:4318/v1/traces", Protocol::Http));
        assert_eq!(json.warnings.len(), 1);
    }
}
