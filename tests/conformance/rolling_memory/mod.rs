//! Profile `rolling-memory`: the summary is the state, and clients send only new messages.
//!
//! README.md maps the rules of the document to these tests.

mod bounds;
mod context;
mod failing;
mod overflow;
mod processes;
mod reading;
mod remembering;
mod retrying;
mod rewriting;
mod triggers;
mod turns;
