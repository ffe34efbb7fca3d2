//! The life of a request through Tidegate.
//!
//! Four layers and a pipeline, each of which imports only from those before it (`tests/layers.rs` checks that):
//!
//! | folder | what it is |
//! | --- | --- |
//! | `transport` | HTTP on the wire: listening, framing, TLS, bodies, headers, upstream clients. Knows nothing of conversations |
//! | `reply` | refusals (status, code, text) and the response headers that say what was done |
//! | `observe` | the access log, metrics and spans of a request |
//! | `host` | hosts the turns of `tidegate-context`: store, summarizers, background work, what all workers share |
//! | `pipeline` | the steps of a request, one file each; `pipeline/mod.rs` lists them in order |
//!
//! A [`Gateway`] holds what all requests share; a [`Proxy`] is a running server in front of it.
//!
//! This crate never parses a configuration, never writes to a terminal, and never decides what to edit: the engine does.

mod host;
mod observe;
mod pipeline;
mod proxy;
mod reply;
mod transport;

pub use host::cache_sizes::CacheSizes;
pub use host::identity::Secret;
pub use host::shared::Gateway;
pub use host::snapshot::SetupError;
pub use host::windows::{LEARNT_WINDOWS, LearntWindow, Source};
pub use proxy::Proxy;
pub use transport::error::TransportError;
pub use transport::probe::probe;
pub use transport::server::StartError;

/// Hooks for the fuzz targets in `tests/fuzz`.
#[cfg(fuzzing)]
pub mod fuzzing {
    use crate::transport::framing::{Guard, Limits, SharedState};
    use tokio::io::{AsyncRead, AsyncWrite};

    /// Wraps a connection as the server does. The function returns whether a request has been refused.
    pub fn guard<S>(stream: S, max_head: usize) -> (impl AsyncRead + AsyncWrite + Unpin, impl Fn() -> bool)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let state = SharedState::default();
        let limits = Limits {
            max_head,
            head_timeout: std::time::Duration::MAX,
            write_timeout: std::time::Duration::MAX,
        };
        (Guard::new(stream, limits, state.clone()), move || state.violation().is_some())
    }
}
