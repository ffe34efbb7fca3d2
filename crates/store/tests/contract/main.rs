//! The contract of `Store`: one suite that runs against every implementation.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod deletion;
mod embedded;
mod facts;
mod folds;
mod leases;
mod log;
mod memory;
mod redis;
mod suite;
