//! Masking, budgets, reports and refusals.

mod calibration;
mod conversations;
mod hostile;
mod latency;
mod masks;
mod observations;
mod observing;
mod overrides;
mod refusals;
mod reports;
