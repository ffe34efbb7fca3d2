//! What Tidegate says about itself: names, log lines, the access log.
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
mod lines;
mod logs;
mod metrics;
pub mod names;
mod panics;

pub use access::{Access, Outcome};
pub use lines::{Lines, Written};
pub use logs::{Format, Level, init};
pub use metrics::{ArchiveCounts, Metrics, Planned, archive_text};
pub use panics::log_panics;
