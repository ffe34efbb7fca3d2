//! TLS configuration for upstreams and for clients.

use crate::transport::error::TransportError;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tidegate_config::ServerTls;
use tracing::warn;

/// A client configuration, and what it was built from.
#[derive(Debug)]
pub(crate) struct ClientTls {
    /// The name that the upstream's certificate must have.
    pub(crate) name: ServerName<'static>,
    pub(crate) config: Arc<ClientConfig>,
    /// The certificates of the `ca` file; `None` for the system's. Two configurations are equal if these are.
    pub(crate) roots: Option<Vec<CertificateDer<'static>>>,
}

/// Builds a configuration that trusts the certificates in the file `ca`, or the system's if it is `None`.
pub(crate) fn client(name: ServerName<'static>, ca: Option<&Path>) -> Result<ClientTls, TransportError> {
    let Some(path) = ca else {
        // Loading the system's certificates takes milliseconds and a megabyte, so it is done once.
        static SYSTEM: OnceLock<Arc<ClientConfig>> = OnceLock::new();
        let config = SYSTEM.get_or_init(|| Arc::new(trusting(system_roots()))).clone();
        return Ok(ClientTls { name, config, roots: None });
    };
    let certificates = certificates(path)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|error| unreadable(path, &error))?;
    }
    Ok(ClientTls { name, config: Arc::new(trusting(roots)), roots: Some(certificates) })
}

/// Builds the server configuration from our own certificate and key.
pub(crate) fn server(settings: &ServerTls) -> Result<Arc<ServerConfig>, TransportError> {
    let chain = certificates(&settings.cert)?;
    let key =
        PrivateKeyDer::from_pem_file(&settings.key).map_err(|error| unreadable(&settings.key, &error))?;
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        warn!("no system certificates found; set `ca` for https upstreams or install `ca-certificates`");
    }
    roots
}

fn trusting(roots: RootCertStore) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(provider());
    #[expect(clippy::expect_used, reason = "the provider and the versions are both fixed at compile time")]
    let builder = builder.with_safe_default_protocol_versions().expect("ring supports the default versions");
    builder.with_root_certificates(roots).with_no_client_auth()
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(path, &error))?;
    if certificates.is_empty() {
        return Err(unreadable(path, &"the file contains no certificate"));
    }
    Ok(certificates)
}

fn unreadable(path: &Path, reason: &dyn std::fmt::Display) -> TransportError {
    TransportError::Certificate { path: path.to_owned(), reason: reason.to_string() }
}
