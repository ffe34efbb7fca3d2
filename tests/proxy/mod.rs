//! The proxy between a client that sends bytes and an upstream that records bytes: HTTP, timeouts, limits, logs and the command
//! line.

mod access_log;
mod broken_answers;
mod cancel;
mod check;
mod chunked;
mod cli;
mod compressed;
mod conversation;
mod drain;
mod expect;
mod framing;
mod headers;
mod http2_upstream;
mod limits;
pub(crate) mod listening;
mod matrix;
mod odd_requests;
mod paths;
mod poisoning;
mod reload;
mod rescue;
mod routes;
mod slow_clients;
mod streaming;
mod timeouts;
mod tls;
mod transparent;
mod unmanaged;
mod upgrade;
mod windows;
