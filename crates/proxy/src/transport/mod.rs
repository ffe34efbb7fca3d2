//! HTTP as it goes over the wire: listening, framing, TLS, bodies, headers, and the clients of upstreams.
//!
//! Nothing here knows about conversations.

pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod decode;
mod dial;
pub(crate) mod driven;
pub(crate) mod error;
pub(crate) mod framing;
pub(crate) mod headers;
mod http1;
mod http2;
pub(crate) mod origin;
pub(crate) mod overload;
pub(crate) mod paced;
pub(crate) mod path;
pub(crate) mod peek;
pub(crate) mod probe;
mod refused;
mod resolve;
pub(crate) mod response_body;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod stream_decode;
pub(crate) mod tls;
pub(crate) mod tunnel;
pub(crate) mod upstream;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
