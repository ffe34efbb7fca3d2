use std::path::PathBuf;
use thiserror::Error;

/// Why an upstream or a listener cannot be set up from a valid configuration.
#[derive(Debug, Error)]
pub enum TransportError {
    #[error("`upstreams.{upstream}.api_key_env` names `{variable}`, which is not set")]
    MissingKey { upstream: String, variable: String },
    #[error(
        "the key in `{variable}` for `upstreams.{upstream}` contains characters that are not allowed in a header"
    )]
    UnusableKey { upstream: String, variable: String },
    #[error("cannot read `{path}`: {reason}")]
    Certificate { path: PathBuf, reason: String },
    #[error("`upstreams.{upstream}.url` has an invalid host `{authority}`")]
    Authority { upstream: String, authority: String },
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}
