//! HTTP as it goes over the wire: listening, framing, TLS, bodies, headers, and the clients of upstreams.
//!
//! Nothing here knows about conversations.

pub(crate) mod body;
pub(crate) mod decode;
pub(crate) mod error;
pub(crate) mod framing;
pub(crate) mod headers;
mod http1;
pub(crate) mod path;
pub(crate) mod response_body;
pub(crate) mod server;
mod tls;
pub(crate) mod upstream;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
