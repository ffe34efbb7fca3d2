//! Profile `agent`. README.md maps the rules of the document to these tests.

mod budget;
mod examples;
mod limits;
mod masking;
mod persistence;
mod plateau;
mod run;
mod strategies;
mod summaries;
mod telemetry;
