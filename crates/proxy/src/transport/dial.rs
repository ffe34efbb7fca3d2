//! Opens connections to an upstream.

use crate::transport::resolve::Resolver;
use crate::transport::stream::Stream;
use crate::transport::upstream::Prepared;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Protocol;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    Http2,
}

/// What a new connection may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// What the upstream's `protocol` says.
    Configured,
    Http1,
}

/// Why there is no connection. It is shared by all requests that waited for it.
pub(crate) type DialError = Arc<dyn Error + Send + Sync>;

pub(super) struct Dialer {
    target: Uri,
    tcp: HttpConnector<Resolver>,
    tls: Option<Tls>,
    protocol: Protocol,
    /// For DNS, TCP and TLS together.
    timeout: Duration,
}

struct Tls {
    name: ServerName<'static>,
    configured: TlsConnector,
    http1: TlsConnector,
}

const H2: &[u8] = b"h2";
const HTTP_11: &[u8] = b"http/1.1";

impl Dialer {
    pub(super) fn new(upstream: &Prepared) -> Dialer {
        let mut tcp = HttpConnector::new_with_resolver(Resolver::new());
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let protocol = upstream.settings.protocol;
        let offered: &[&[u8]] = match protocol {
            Protocol::Auto => &[H2, HTTP_11],
            Protocol::Http1 => &[HTTP_11],
            Protocol::Http2 => &[H2],
        };
        let tls = upstream.tls.as_ref().map(|tls| Tls {
            name: tls.name.clone(),
            configured: offering(&tls.config, offered),
            http1: offering(&tls.config, &[HTTP_11]),
        });
        let timeout = upstream.settings.connect_timeout;
        Dialer { target: upstream.target(&Uri::default()), tcp, tls, protocol, timeout }
    }

    /// What connections speak, if that is not negotiated.
    pub(super) fn fixed(&self) -> Option<Spoken> {
        match (self.protocol, &self.tls) {
            (Protocol::Http2, _) => Some(Spoken::Http2),
            (Protocol::Http1, _) | (Protocol::Auto, None) => Some(Spoken::Http1),
            (Protocol::Auto, Some(_)) => None,
        }
    }

    pub(super) async fn dial(&self, offer: Offer) -> Result<(Stream, Spoken), DialError> {
        match timeout(self.timeout, self.connect(offer)).await {
            Ok(connected) => connected,
            Err(_) => Err(Arc::new(io::Error::new(io::ErrorKind::TimedOut, "connect timeout"))),
        }
    }

    async fn connect(&self, offer: Offer) -> Result<(Stream, Spoken), DialError> {
        let dialed = self.tcp.clone().call(self.target.clone()).await;
        let tcp: TcpStream = dialed.map_err(|error| Arc::new(error) as DialError)?.into_inner();
        let assumed = match offer {
            Offer::Configured => self.fixed().unwrap_or(Spoken::Http1),
            Offer::Http1 => Spoken::Http1,
        };
        let Some(tls) = &self.tls else { return Ok((Stream::Plain(tcp), assumed)) };
        let connector = match offer {
            Offer::Configured => &tls.configured,
            Offer::Http1 => &tls.http1,
        };
        let stream = connector.connect(tls.name.clone(), tcp).await;
        let stream = Box::new(stream.map_err(|error| Arc::new(error) as DialError)?);
        let spoken = match stream.get_ref().1.alpn_protocol() {
            Some(H2) => Spoken::Http2,
            Some(_) => Spoken::Http1,
            // The upstream does not negotiate.
            None => assumed,
        };
        Ok((Stream::Tls(stream), spoken))
    }
}

/// A connector that offers these protocols. Its sessions are resumed by every other that was made from the same configuration.
fn offering(config: &ClientConfig, protocols: &[&[u8]]) -> TlsConnector {
    let mut config = config.clone();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config).into()
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("target", &self.target).finish_non_exhaustive()
    }
}
