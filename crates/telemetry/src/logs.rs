use crate::{Lines, SpanLayer, journey};
use std::io::IsTerminal;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Human,
    Json,
}

impl Format {
    /// Human where a person looks on, JSON where a machine collects.
    #[must_use]
    pub fn detect() -> Format {
        if std::io::stderr().is_terminal() { Format::Human } else { Format::Json }
    }
}

pub use tracing::Level;

/// Sends the process's log events to `lines`, and its spans to `spans`. `RUST_LOG` refines the level where it is set.
pub fn init(
    lines: &Lines,
    format: Format,
    level: Level,
    spans: Option<SpanLayer>,
) -> Result<(), TryInitError> {
    let filter =
        EnvFilter::builder().with_default_directive(LevelFilter::from_level(level).into()).from_env_lossy();
    // hyper and h2 tell of every frame below this; nobody asks for that by `level = "debug"`.
    let quiet = ["h2", "hyper", "hyper_util", "rustls", "tower", "mio"];
    let filter = quiet.iter().fold(filter, |filter, target| match format!("{target}=info").parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    });
    subscriber(lines, format, filter, spans).try_init()
}

pub(crate) fn subscriber(
    lines: &Lines,
    format: Format,
    filter: EnvFilter,
    spans: Option<SpanLayer>,
) -> Box<dyn Subscriber + Send + Sync + 'static> {
    let told = match format {
        Format::Human => {
            let layer = fmt::layer().with_writer(lines.clone()).with_target(false);
            layer.with_ansi(std::io::stderr().is_terminal()).boxed()
        }
        Format::Json => fmt::layer().json().flatten_event(true).with_writer(lines.clone()).boxed(),
    };
    // The spans of requests are not for the log: where nobody else hears of them, they do not come into being.
    let told = told.with_filter(filter.and(filter_fn(|metadata| metadata.target() != journey::TARGET)));
    let layers: Vec<SpanLayer> = spans.into_iter().chain([told.boxed()]).collect();
    Box::new(tracing_subscriber::registry().with(layers))
}
