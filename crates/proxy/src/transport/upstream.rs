//! What is known of an upstream before it is called.

use crate::transport::error::TransportError;
use crate::transport::path::canonical;
use crate::transport::tls;
use http::Uri;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use rustls_pki_types::ServerName;
use std::sync::Arc;
use tidegate_config::Upstream;

/// An upstream's configuration with its secrets and certificates loaded.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) settings: Arc<Upstream>,
    /// Replaces the client's own key.
    pub(crate) key: Option<ApiKey>,
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
        Ok(Prepared { key: api_key(&settings)?, settings, scheme, authority, tls })
    }

    /// Whether connections made for one can be used for the other.
    pub(crate) fn same_as(&self, other: &Prepared) -> bool {
        let roots = |prepared: &Prepared| prepared.tls.as_ref().map(|tls| tls.roots.clone());
        self.settings == other.settings && self.key == other.key && roots(self) == roots(other)
    }

    /// The header with our own key for a request to this path, if we have one.
    pub(crate) fn own_key(&self, path: &str) -> Option<(HeaderName, HeaderValue)> {
        self.key.as_ref().map(|key| key.header(host(&self.authority), path))
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

/// An API key, in the ways in which upstreams want it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApiKey {
    pub(crate) bearer: HeaderValue,
    plain: HeaderValue,
}

/// The headers in which clients send keys. Where we send one of our own, none of theirs goes beside it.
pub(crate) const KEY_HEADERS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

impl ApiKey {
    /// Returns the header for a request to this host: Anthropic's API and Azure have their own, and everybody else takes `Authorization`,
    /// as Anthropic does for chat completions.
    pub(crate) fn header(&self, host: &str, path: &str) -> (HeaderName, HeaderValue) {
        let is_below = |domain: &str| {
            let above = host.len().checked_sub(domain.len()).and_then(|at| host.split_at_checked(at));
            above.is_some_and(|(above, end)| {
                end.eq_ignore_ascii_case(domain) && (above.is_empty() || above.ends_with('.'))
            })
        };
        let path = canonical(path).unwrap_or_default();
        let is_messages = path.contains("/v1/messages/")
            || ["/v1/messages", "/anthropic/messages"].iter().any(|end| path.ends_with(end))
            || (is_below("anthropic.com") && !path.ends_with("/chat/completions"));
        let [authorization, anthropic, azure, _] = KEY_HEADERS;
        if is_messages {
            (anthropic, self.plain.clone())
        } else if AZURE.iter().any(|domain| is_below(domain)) {
            (azure, self.plain.clone())
        } else {
            (authorization, self.bearer.clone())
        }
    }
}

const AZURE: [&str; 3] = ["openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"];

fn api_key(upstream: &Upstream) -> Result<Option<ApiKey>, TransportError> {
    let Some(variable) = &upstream.api_key_env else { return Ok(None) };
    let (name, variable) = (upstream.name.clone(), variable.clone());
    let key = bearer(&variable).and_then(|bearer| Ok(ApiKey { bearer, plain: plain(&variable)? }));
    key.map(Some).map_err(|error| match error {
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
    secret(variable, "Bearer ")
}

fn plain(variable: &str) -> Result<HeaderValue, BearerError> {
    secret(variable, "")
}

fn secret(variable: &str, scheme: &str) -> Result<HeaderValue, BearerError> {
    let key = std::env::var(variable).map_err(|_| BearerError::NotSet)?;
    let written = format!("{scheme}{}", key.trim());
    let mut value = HeaderValue::from_str(&written).map_err(|_| BearerError::Invalid)?;
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
    fn a_key_is_sent_in_the_header_that_the_upstream_wants() {
        let key = ApiKey { bearer: "Bearer k".parse().unwrap(), plain: "k".parse().unwrap() };
        for (host, path, header, value) in [
            ("api.openai.com", "/v1/chat/completions", "authorization", "Bearer k"),
            ("api.anthropic.com", "/v1/messages", "x-api-key", "k"),
            ("API.Anthropic.com", "/v1/messages/count_tokens", "x-api-key", "k"),
            ("api.anthropic.com", "/v1/models", "x-api-key", "k"),
            ("api.anthropic.com", "/v1/chat/completions", "authorization", "Bearer k"),
            ("gateway.example", "/proxy/v1/messages/", "x-api-key", "k"),
            ("gateway.example", "/v1/threads/t/messages", "authorization", "Bearer k"),
            ("acme.openai.azure.com", "/openai/deployments/d/chat/completions", "api-key", "k"),
            ("acme.cognitiveservices.azure.com", "/openai/v1/responses", "api-key", "k"),
            ("acme.services.ai.azure.com", "/anthropic/v1/messages", "x-api-key", "k"),
            ("notanthropic.com", "/v1/models", "authorization", "Bearer k"),
            ("openai.azure.com.example", "/v1/models", "authorization", "Bearer k"),
        ] {
            let sent = key.header(host, path);
            assert_eq!((sent.0.as_str(), sent.1.to_str().unwrap()), (header, value), "{host}{path}");
        }
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
