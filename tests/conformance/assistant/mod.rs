//! Profile `assistant`: pinned notes, a summary and recent messages, each with a limit of its own.
//!
//! README.md beside this file says which test stands for which rule.

mod configuration;
mod consolidation;
mod dedupe;
mod desk;
mod fallback;
mod history;
mod notes;
mod summary;
mod telemetry;
mod tokens;
mod total;
mod untouched;
