//! What is known of an upstream before it is called.

use crate::transport::error::TransportError;
use crate::transport::tls;
use http::Uri;
use http::header::HeaderValue;
use http::uri::{Authority, PathAndQuery, Scheme};
use rustls_pki_types::ServerName;
use std::sync::Arc;
use tidegate_config::Upstream;

/// An upstream's configuration with its secrets and certificates loaded.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) settings: Arc<Upstream>,
    /// Replaces the client's own `Authorization`.
    pub(crate) authorization: Option<HeaderValue>,
    scheme: Scheme,
    authority: Authority,
    pub(super) tls: Option<tls::ClientTls>,
}

impl Prepared {
    pub(crate) fn new(settings: &Arc<Upstream>) -> Result<Prepared, TransportError> {
        let invalid = || TransportError::Authority {
            upstream: settings.name.clone(),
            authority: settings.url.authority.clone(),
        };
        let authority: Authority = settings.url.authority.parse().map_err(|_| invalid())?;
        let (scheme, tls) = if settings.url.https {
            let host = host(&authority);
            let name = ServerName::try_from(host.to_owned()).map_err(|_| invalid())?;
            (Scheme::HTTPS, Some(tls::client(name, settings.ca.as_deref())?))
        } else {
            (Scheme::HTTP, None)
        };
        let settings = settings.clone();
        Ok(Prepared { authorization: authorization(&settings)?, settings, scheme, authority, tls })
    }

    /// Whether connections made for one can be used for the other.
    pub(crate) fn same_as(&self, other: &Prepared) -> bool {
        let roots = |prepared: &Prepared| prepared.tls.as_ref().map(|tls| tls.roots.clone());
        self.settings == other.settings
            && self.authorization == other.authorization
            && roots(self) == roots(other)
    }

    /// Returns the upstream's URI for a request. Only the path and query of `asked` are used, never its authority.
    pub(crate) fn target(&self, asked: &Uri) -> Uri {
        let asked = asked.path_and_query().map_or("/", PathAndQuery::as_str);
        let base = self.settings.url.path.as_str();
        // Operators write both `https://host/v1` and `https://host`. The client's path has the `/v1` either way.
        let base = base
            .strip_suffix("/v1")
            .filter(|_| asked == "/v1" || asked.starts_with("/v1/") || asked.starts_with("/v1?"))
            .unwrap_or(base);
        let joined = if base.is_empty() { asked.to_owned() } else { format!("{base}{asked}") };
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        // Both parts are valid paths, so joining them cannot fail. `/` is only a fallback.
        parts.path_and_query = Some(joined.parse().unwrap_or_else(|_| PathAndQuery::from_static("/")));
        Uri::from_parts(parts).unwrap_or_default()
    }
}

/// The name or address in an authority, without its port and the brackets of IPv6.
fn host(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn authorization(upstream: &Upstream) -> Result<Option<HeaderValue>, TransportError> {
    let Some(variable) = &upstream.api_key_env else { return Ok(None) };
    let (name, variable) = (upstream.name.clone(), variable.clone());
    bearer(&variable).map(Some).map_err(|error| match error {
        BearerError::NotSet => TransportError::MissingKey { upstream: name, variable },
        BearerError::Invalid => TransportError::UnusableKey { upstream: name, variable },
    })
}

/// Why an environment variable is no usable API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BearerError {
    NotSet,
    /// It contains characters that are not allowed in a header.
    Invalid,
}

/// Returns the `Authorization` value for the API key in an environment variable.
pub(crate) fn bearer(variable: &str) -> Result<HeaderValue, BearerError> {
    let key = std::env::var(variable).map_err(|_| BearerError::NotSet)?;
    let mut value =
        HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| BearerError::Invalid)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_config::{Protocol, UpstreamUrl};

    fn target(base: &str, asked: &str) -> String {
        let url = UpstreamUrl { https: false, authority: "up:1".to_owned(), path: base.to_owned() };
        let settings = Upstream {
            name: "default".to_owned(),
            url,
            api_key_env: None,
            connect_timeout: Duration::from_secs(1),
            first_byte_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(1),
            protocol: Protocol::Auto,
            ca: None,
        };
        Prepared::new(&Arc::new(settings)).unwrap().target(&asked.parse().unwrap()).to_string()
    }

    #[test]
    fn the_authority_is_always_the_upstreams() {
        assert_eq!(target("", "/v1/models?x=1"), "http://up:1/v1/models?x=1");
        assert_eq!(target("", "http://evil.example/v1/models"), "http://up:1/v1/models");
        assert_eq!(target("", "/%63hat//x"), "http://up:1/%63hat//x");
    }

    #[test]
    fn a_base_path_is_prepended_to_the_clients_path() {
        assert_eq!(target("/api", "/v1/models"), "http://up:1/api/v1/models");
        assert_eq!(target("/v1", "/v1/models"), "http://up:1/v1/models");
        assert_eq!(target("/api/v1", "/v1/chat/completions"), "http://up:1/api/v1/chat/completions");
        assert_eq!(target("/v1", "/chat/completions"), "http://up:1/v1/chat/completions");
        assert_eq!(target("/v1", "/v1beta/models"), "http://up:1/v1/v1beta/models");
    }
}
