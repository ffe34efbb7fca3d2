//! Profile `assistant`: pinned memory, a summary and recent messages, each with its own limit.
//!
//! README.md maps the rules of the document to these tests.

mod configuration;
mod consolidation;
mod dedupe;
mod fallback;
mod harness;
mod history;
mod memory;
mod summary;
mod telemetry;
mod tokens;
mod total;
mod untouched;
