//! Profile `budgeted-chat`: a chat is summarized before it outgrows its window, and refused if that is not enough.
//!
//! README.md maps the rules of the document to these tests.

mod archive;
mod assembly;
mod audit;
mod budget;
mod chat;
mod estimating;
mod failing;
mod pruning;
mod refusing;
mod summary;
mod thresholds;
