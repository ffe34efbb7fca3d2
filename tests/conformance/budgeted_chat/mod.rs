//! Profile `budgeted-chat`: a chat that is summarized before it outgrows its window, and refused when even that is not enough.
//!
//! The page beside this file maps the rules of the document to these tests.

mod archive;
mod assembly;
mod audit;
mod budget;
mod estimating;
mod failing;
mod pruning;
mod refusing;
mod summary;
mod talk;
mod thresholds;
