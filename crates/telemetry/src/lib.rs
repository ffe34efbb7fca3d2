//! Observability: public names, the log, the access log, metrics, spans, and their export over OTLP.
//!
//! Nothing here sees a prompt, a completion or a key: an [`AccessRecord`] has no field that could hold one. Spans carry content
//! only if `telemetry.content` is on.
//!
//! ```
//! use tidegate_telemetry::{AccessRecord, Format, LogSink};
//!
//! let (log, written) = LogSink::to_memory();
//! let access = AccessRecord { method: "GET", path: "/v1/models", status: 200, ..AccessRecord::default() };
//! access.write(&log, Format::Json);
//! log.flush();
//! assert!(written.text().contains(r#""path":"/v1/models","status":200"#));
//! ```

mod access;
mod access_line;
mod archive;
mod buckets;
mod conventions;
mod counters;
mod counts;
mod export;
mod exposition;
mod histograms;
mod labels;
mod load;
mod log_sink;
mod logs;
mod metrics;
pub mod names;
mod otlp;
mod outcome;
mod panics;
mod process;
mod provider;
mod reader;
mod semconv;
mod shard;
mod span_queue;
mod spans;
mod status_class;
mod stored_tally;
mod tally;
mod telemetry;

pub use access::AccessRecord;
pub use archive::{ArchiveCounts, WindowFact};
pub use labels::{Labels, OTHER_MODEL};
pub use load::Load;
pub use log_sink::{LogBuffer, LogSink};
pub use logs::{Format, Level, init};
pub use metrics::{Answered, Completion, Metrics, Summarized};
pub use otlp::{Otlp, Protocol};
pub use outcome::Outcome;
pub use panics::log_panics;
pub use provider::{known_provider, provider};
pub use semconv::Semconv;
pub use spans::{KeyValue, RequestSpan, SpanParent, StepSpan, UpstreamSpan, Value};
pub use stored_tally::{decode_tallies, encode_tallies};
pub use tally::{ModelTally, Tally};
pub use telemetry::{SpanLayer, Telemetry};

pub(crate) use outcome::OUTCOMES;
