//! What a client gets from Tidegate itself: refusals, and the headers that say what was done.

pub(crate) mod headers;
mod over_budget;
mod policy_code;
pub(crate) mod refusal;
pub(crate) mod upstream_failure;
