//! Masking, budgets, reports and refusals.

mod caching;
mod calibration;
mod calibration_shared;
mod changed_answers;
mod conversations;
mod habits;
mod hostile;
mod latency;
mod limits;
mod masks;
mod observations;
mod observing;
mod overrides;
mod refusals;
mod reports;
mod sub_agents;
