//! The journey of a request through Tidegate.
//!
//! [`journey`] lists the steps, each in a file of its own: [`receive`], [`route`], [`identify`], [`forward`], [`relay`] and
//! [`remember`]. Everything else serves one of them: [`framing`] judges HTTP/1 below hyper, [`upstream`] is the pooled
//! client, [`reply`] is every answer of our own, [`server`] listens and runs one worker a core.
//!
//! This crate never parses a configuration, never writes to a terminal, and never decides what to edit.

mod body;
mod decode;
mod forward;
mod framing;
mod gate;
mod headers;
mod identify;
mod journey;
mod path;
mod receive;
mod relay;
mod remember;
mod reply;
mod request_id;
mod route;
mod server;
mod tls;
mod upstream;

pub use gate::{Gate, SetupError};
pub use server::{Proxy, StartError};
