//! Profile `rolling-memory`: the summary is the state, and clients send only what is new.
//!
//! The page beside this file maps the rules of the document to these tests.

mod bounds;
mod context;
mod failing;
mod overflow;
mod processes;
mod reading;
mod remembering;
mod retrying;
mod rewriting;
mod talk;
mod triggers;
