use std::path::PathBuf;
use thiserror::Error;

/// Why an upstream or a listener cannot be set up, although its configuration is valid in itself.
#[derive(Debug, Error)]
pub enum TransportError {
    #[error("`upstreams.{upstream}.api_key_env` names `{variable}`, which is not set")]
    MissingKey { upstream: String, variable: String },
    #[error("the key in `{variable}` for `upstreams.{upstream}` has characters that a header cannot carry")]
    UnusableKey { upstream: String, variable: String },
    #[error("cannot read `{path}`: {reason}")]
    Certificate { path: PathBuf, reason: String },
    #[error("`{authority}` of `upstreams.{upstream}` is not a host")]
    Authority { upstream: String, authority: String },
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}
