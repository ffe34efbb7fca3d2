//! Under load and under attack: everything is bounded, and whoever behaves is served.

mod attacks;
mod connections;
mod fairness;
mod http2_rules;
mod memory;
mod requests;
mod scene;
mod soak;
