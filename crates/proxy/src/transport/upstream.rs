//! Clients for upstreams.

use crate::transport::body::SendBody;
use crate::transport::error::TransportError;
use crate::transport::http1::Http1Client;
use crate::transport::http1::error::Http1Error;
use crate::transport::response_body::ResponseBody;
use crate::transport::{BoxError, tls};
use http::header::HeaderValue;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use thiserror::Error;
use tidegate_config::{Protocol, Upstream};
use tokio::net::TcpStream;
use tower_service::Service;

/// An upstream's configuration with its secrets and certificates loaded.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) settings: Arc<Upstream>,
    /// Replaces the client's own `Authorization`.
    pub(crate) authorization: Option<HeaderValue>,
    scheme: Scheme,
    authority: Authority,
    tls: Option<tls::ClientTls>,
}

impl Prepared {
    pub(crate) fn new(settings: &Arc<Upstream>) -> Result<Prepared, TransportError> {
        let authority = settings.url.authority.parse().map_err(|_| TransportError::Authority {
            upstream: settings.name.clone(),
            authority: settings.url.authority.clone(),
        })?;
        let (scheme, tls) = if settings.url.https {
            (Scheme::HTTPS, Some(tls::client(settings.ca.as_deref())?))
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

/// The HTTP clients of one worker. Connections are never shared between workers.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    clients: Mutex<Vec<(Arc<Prepared>, Client)>>,
}

#[derive(Clone, Debug)]
enum Client {
    /// Plain HTTP/1.
    Http1(Arc<Http1Client>),
    /// TLS, with the protocol negotiated by ALPN, and plain HTTP/2.
    Hyper(Box<legacy::Client<Dialer, SendBody>>),
}

/// Why an upstream sent no response.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Http1(#[from] Http1Error),
    #[error(transparent)]
    Hyper(#[from] legacy::Error),
}

impl CallError {
    pub(crate) fn is_connect(&self) -> bool {
        match self {
            CallError::Http1(error) => matches!(error, Http1Error::Connect(_)),
            CallError::Hyper(error) => error.is_connect(),
        }
    }
}

/// How long an idle upstream connection is kept: less than common server timeouts, so that servers rarely close one just as a
/// request is sent.
const POOL_IDLE: Duration = Duration::from_secs(50);

impl Clients {
    pub(crate) fn send(
        &self,
        upstream: &Arc<Prepared>,
        request: Request<SendBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, CallError>> + use<> {
        let client = self.client(upstream);
        async move {
            match client {
                Client::Http1(client) => Ok(client.send(request).await?.map(ResponseBody::Http1)),
                Client::Hyper(client) => Ok(ResponseBody::from_hyper(client.request(request).await?)),
            }
        }
    }

    fn client(&self, upstream: &Arc<Prepared>) -> Client {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| Arc::ptr_eq(known, upstream)) {
            return client.clone();
        }
        // The configuration has changed, so clients for the upstream's old settings are no longer needed.
        clients.retain(|(known, _)| known.settings.name != upstream.settings.name);
        let client = build(upstream);
        clients.push((upstream.clone(), client.clone()));
        client
    }
}

fn build(upstream: &Prepared) -> Client {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    let settings = &upstream.settings;
    if !settings.url.https && settings.protocol != Protocol::Http2 {
        let client = Http1Client::new(tcp, settings.connect_timeout, POOL_IDLE);
        return Client::Http1(Arc::new(client));
    }
    let https = HttpsConnectorBuilder::new();
    let https = match &upstream.tls {
        Some(tls) => https.with_tls_config((*tls.config).clone()),
        // Never used, because the scheme is `http`, but the builder requires one.
        None => https.with_tls_config(tls::without_roots()),
    };
    let https = https.https_or_http();
    let https = match settings.protocol {
        Protocol::Auto => https.enable_all_versions().wrap_connector(tcp),
        Protocol::Http1 => https.enable_http1().wrap_connector(tcp),
        Protocol::Http2 => https.enable_http2().wrap_connector(tcp),
    };
    let dialer = Dialer { https, timeout: settings.connect_timeout };
    let client = legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .timer(TokioTimer::new())
        .http2_only(settings.protocol == Protocol::Http2)
        .http2_keep_alive_interval(Duration::from_secs(30))
        .build(dialer);
    Client::Hyper(Box::new(client))
}

/// Connects within one timeout for DNS, TCP and TLS together.
#[derive(Clone)]
struct Dialer {
    https: HttpsConnector<HttpConnector>,
    timeout: Duration,
}

impl Service<Uri> for Dialer {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.timeout, self.https.call(target));
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => connected,
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "connect timeout").into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::UpstreamUrl;

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
