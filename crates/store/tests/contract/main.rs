//! One suite for every store: what `Store` promises, whoever keeps it.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod claims;
mod embedded;
mod folds;
mod memory;
mod redis;
mod suite;
