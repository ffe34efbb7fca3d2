//! Where telemetry is sent: `[telemetry]` and the standard variables, which win.

use std::time::Duration;

/// What `[telemetry]` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Otlp {
    /// The collector's address, without a signal's path; none if nothing is sent.
    pub endpoint: Option<String>,
    pub protocol: Option<Protocol>,
    pub traces: bool,
    pub metrics: bool,
    /// How often metrics are sent.
    pub interval: Duration,
    pub service_name: String,
    /// The share of requests that are traced, where the client does not say.
    pub sample_ratio: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Grpc,
    Http,
}

/// Where one signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The whole address.
    pub(crate) endpoint: String,
    pub(crate) protocol: Protocol,
}

/// Where everything goes, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) traces: Option<Target>,
    pub(crate) metrics: Option<Target>,
    pub(crate) interval: Duration,
    /// None where the variables of the SDK say how.
    pub(crate) sample_ratio: Option<f64>,
    /// None where the variables of the SDK say who.
    pub(crate) service_name: Option<String>,
    pub(crate) room: usize,
    pub(crate) batch: usize,
    pub(crate) delay: Duration,
    pub(crate) timeout: Duration,
    pub(crate) certificate: Option<String>,
    /// What was asked for and is not done.
    pub(crate) warnings: Vec<String>,
}

/// A request has about ten spans.
const ROOM: usize = 4096;
const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);

/// The port at which collectors speak gRPC.
const GRPC_PORT: &str = ":4317";

impl Otlp {
    pub(crate) fn plan(&self, env: &dyn Fn(&str) -> Option<String>) -> Plan {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let mut warnings = Vec::new();
        let is_disabled = env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let mut target = |signal, path, wanted| {
            (!is_disabled).then(|| self.target(&env, signal, path, wanted, &mut warnings)).flatten()
        };
        let traces = target("TRACES", "v1/traces", self.traces);
        let metrics = target("METRICS", "v1/metrics", self.metrics);
        let millis = |name: &str| env(name)?.parse().ok().map(Duration::from_millis);
        let number = |name: &str| env(name)?.parse().ok();
        let names_service = env("OTEL_SERVICE_NAME").is_some()
            || env("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        Plan {
            traces,
            metrics,
            interval: millis("OTEL_METRIC_EXPORT_INTERVAL").unwrap_or(self.interval),
            sample_ratio: env("OTEL_TRACES_SAMPLER").is_none().then_some(self.sample_ratio),
            service_name: (!names_service).then(|| self.service_name.clone()),
            room: number("OTEL_BSP_MAX_QUEUE_SIZE").unwrap_or(ROOM),
            batch: number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").unwrap_or(BATCH),
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
        wanted: bool,
        warnings: &mut Vec<String>,
    ) -> Option<Target> {
        let named = format!("OTEL_{signal}_EXPORTER");
        let exporter = env(&named);
        let is_asked = match exporter.as_deref().map(str::trim) {
            None => false,
            Some("otlp") => true,
            Some("none") => return None,
            // The page at /metrics is always there.
            Some("prometheus") if signal == "METRICS" => return None,
            Some(other) => {
                warnings.push(format!(
                    "`{named}` is `{other}`, but there are only `otlp` and `none`: nothing is sent"
                ));
                return None;
            }
        };
        let own = env(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
        let shared = env("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| self.endpoint.clone());
        if own.is_none() && shared.is_none() && !is_asked || !wanted && !is_asked {
            return None;
        }
        let asked = env(&format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"))
            .or_else(|| env("OTEL_EXPORTER_OTLP_PROTOCOL"));
        let asked = asked.map(|name| match name.trim() {
            "grpc" => Protocol::Grpc,
            "http/protobuf" => Protocol::Http,
            other => {
                warnings.push(format!("OTLP over `{other}` is not spoken: `http/protobuf` is, and `grpc`"));
                Protocol::Http
            }
        });
        let given = own.as_deref().or(shared.as_deref()).unwrap_or_default();
        // Whoever names the port of one protocol means that protocol.
        let by_port =
            || if given.trim_end_matches('/').ends_with(GRPC_PORT) { Protocol::Grpc } else { Protocol::Http };
        let protocol = asked.or(self.protocol).unwrap_or_else(by_port);
        let endpoint = match (own, shared, protocol) {
            // A signal's own address is taken as it is.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(otlp: &Otlp, variables: &[(&str, &str)]) -> Plan {
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        otlp.plan(&env)
    }

    fn target(endpoint: &str, protocol: Protocol) -> Option<Target> {
        Some(Target { endpoint: endpoint.to_owned(), protocol })
    }

    #[test]
    fn nothing_is_sent_unless_somebody_says_where() {
        let plan = plan(&Otlp::default(), &[]);
        assert_eq!((plan.traces, plan.metrics), (None, None));
    }

    #[test]
    fn a_shared_address_gets_the_signals_paths_over_http_alone() {
        let http = plan(&Otlp::default(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")]);
        assert_eq!(http.traces, target("http://c:4318/v1/traces", Protocol::Http));
        assert_eq!(http.metrics, target("http://c:4318/v1/metrics", Protocol::Http));
        let grpc = plan(&Otlp { endpoint: Some("http://c:4317".to_owned()), ..Otlp::default() }, &[]);
        assert_eq!(grpc.traces, target("http://c:4317", Protocol::Grpc));
    }

    #[test]
    fn variables_win_over_the_file() {
        let file = Otlp { endpoint: Some("http://file:4317".to_owned()), ..Otlp::default() };
        let mixed = plan(
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
        assert_eq!((mixed.interval, mixed.room, mixed.service_name), (Duration::from_millis(1500), 7, None));
        let off = plan(&file, &[("OTEL_SDK_DISABLED", "TRUE")]);
        assert_eq!((off.traces, off.metrics), (None, None));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let odd = plan(&Otlp::default(), &[("OTEL_TRACES_EXPORTER", "zipkin")]);
        assert_eq!(odd.traces, None);
        assert!(odd.warnings[0].contains("zipkin"), "{:?}", odd.warnings);
        let json = plan(
            &Otlp::default(),
            &[("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")],
        );
        assert_eq!(json.traces, target("http://localhost:4318/v1/traces", Protocol::Http));
        assert_eq!(json.warnings.len(), 1);
    }
}
