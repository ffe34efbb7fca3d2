//! Black-box tests: the real `tidegate` binary between clients and mock upstreams.
//!
//! One module per suite, each runnable alone: `cargo test --test tidegate folding::`. [`support`] holds what several suites
//! share: the process under test, clients, and conversations to send.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod support;

mod conformance;
mod conversations;
mod explain;
mod folding;
mod history;
mod masking;
mod mcp;
mod messages;
mod overload;
mod proxy;
mod recall_tool;
mod replay;
mod responses;
mod store;
mod telemetry;
mod trimming;
