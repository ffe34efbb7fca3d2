//! Profile `agent`.

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
