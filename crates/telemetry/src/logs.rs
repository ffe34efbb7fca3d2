use crate::{LogSink, SpanLayer, spans};
use std::io::IsTerminal;
use std::time::SystemTime;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Human,
    /// For people, with colours and without the date.
    Terminal,
    Json,
}

impl Format {
    /// For people if standard error is a terminal, else JSON.
    #[must_use]
    pub fn detect() -> Format {
        if std::io::stderr().is_terminal() { Format::for_people() } else { Format::Json }
    }

    /// With colours if standard error is a terminal and `NO_COLOR` does not forbid them.
    #[must_use]
    pub fn for_people() -> Format {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stderr().is_terminal() && !is_plain { Format::Terminal } else { Format::Human }
    }
}

pub use tracing::Level;

/// Installs the process's subscriber: log events go to `log`, spans to `span_layer`. `RUST_LOG` refines the level.
pub fn init(
    log: &LogSink,
    format: Format,
    level: Level,
    span_layer: Option<SpanLayer>,
) -> Result<(), TryInitError> {
    let filter =
        EnvFilter::builder().with_default_directive(LevelFilter::from_level(level).into()).from_env_lossy();
    // hyper and h2 log every frame at `debug`, which is not what `level = "debug"` is for.
    let quiet = ["h2", "hyper", "hyper_util", "rustls", "tower", "mio"];
    let filter = quiet.iter().fold(filter, |filter, target| match format!("{target}=info").parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    });
    subscriber(log, format, filter, span_layer).try_init()
}

pub(crate) fn subscriber(
    log: &LogSink,
    format: Format,
    filter: EnvFilter,
    span_layer: Option<SpanLayer>,
) -> Box<dyn Subscriber + Send + Sync + 'static> {
    let events = match format {
        Format::Human | Format::Terminal => {
            let layer = fmt::layer().with_writer(log.clone()).with_target(false).with_timer(Clock(format));
            layer.with_ansi(format == Format::Terminal).boxed()
        }
        Format::Json => fmt::layer().json().flatten_event(true).with_writer(log.clone()).boxed(),
    };
    // The log does not subscribe to the spans of requests, so that they are disabled unless they are exported.
    let events = events.with_filter(filter.and(filter_fn(|metadata| metadata.target() != spans::TARGET)));
    let layers: Vec<SpanLayer> = span_layer.into_iter().chain([events.boxed()]).collect();
    Box::new(tracing_subscriber::registry().with(layers))
}

/// The time in lines for people, in UTC: to the second, and on a terminal without the date.
pub(crate) fn time(format: Format) -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    match format {
        Format::Terminal => time[DATE_LENGTH..].trim_end_matches('Z').to_owned(),
        Format::Human | Format::Json => time,
    }
}

/// The length of `2026-11-18T`.
const DATE_LENGTH: usize = 11;

struct Clock(Format);

impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.write_str(&time(self.0))
    }
}
