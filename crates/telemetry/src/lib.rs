//! What Tidegate says about itself: names, log lines, the access log, metrics, spans, and where they are sent.
//!
//! Nothing in here sees a prompt, a completion or a key: an [`Access`] record has no field that could hold one.
//!
//! ```
//! use tidegate_telemetry::{Access, Format, Lines};
//!
//! let (lines, written) = Lines::to_memory();
//! let access = Access { method: "GET", path: "/v1/models", status: 200, ..Access::default() };
//! access.write(&lines, Format::Json);
//! lines.flush();
//! assert!(written.text().contains(r#""path":"/v1/models","status":200"#));
//! ```

mod access;
mod archive;
mod counters;
mod counts;
mod export;
mod exposition;
mod histograms;
mod journey;
mod labels;
mod lines;
mod logs;
mod metrics;
pub mod names;
mod otlp;
mod overhead;
mod panics;
mod process;
mod queue;
mod reader;
mod shard;
mod tally;
mod telemetry;

pub use access::{Access, Outcome};
pub use archive::ArchiveCounts;
pub use journey::{Call, Journey, KeyValue, Step, Trail, Value};
pub use labels::{Labels, OTHER_MODEL, provider};
pub use lines::{Lines, Written};
pub use logs::{Format, Level, init};
pub use metrics::{Answered, Metrics, Summarized};
pub use otlp::{Otlp, Protocol};
pub use panics::log_panics;
pub use tally::{Tallied, Tally};
pub use telemetry::{SpanLayer, Telemetry};

pub(crate) use access::OUTCOMES;
