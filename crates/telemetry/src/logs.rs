use crate::{LogSink, SpanLayer, spans};
use std::io::IsTerminal;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Human,
    Json,
}

impl Format {
    /// Human if standard error is a terminal, else JSON.
    #[must_use]
    pub fn detect() -> Format {
        if std::io::stderr().is_terminal() { Format::Human } else { Format::Json }
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
        Format::Human => {
            let layer = fmt::layer().with_writer(log.clone()).with_target(false);
            layer.with_ansi(std::io::stderr().is_terminal()).boxed()
        }
        Format::Json => fmt::layer().json().flatten_event(true).with_writer(log.clone()).boxed(),
    };
    // The log does not subscribe to the spans of requests, so that they are disabled unless they are exported.
    let events = events.with_filter(filter.and(filter_fn(|metadata| metadata.target() != spans::TARGET)));
    let layers: Vec<SpanLayer> = span_layer.into_iter().chain([events.boxed()]).collect();
    Box::new(tracing_subscriber::registry().with(layers))
}
