//! TLS to Redis. The certificates are read once, when the store is opened: connections are made on async workers, which must
//! not wait for files.

use super::url::TlsFiles;
use crate::StoreError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Verification cannot be turned off. Operators with a private certificate authority name it with `ca`.
pub(super) fn connector(files: &TlsFiles) -> Result<TlsConnector, StoreError> {
    let roots = match &files.ca {
        Some(path) => roots_in(path)?,
        None => system_roots()?,
    };
    // The provider is named explicitly: the process may have installed another default, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Failed(error.to_string()))?
        .with_root_certificates(roots);
    let config = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => {
            let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
            config
                .with_client_auth_cert(certificates(cert)?, private)
                .map_err(|error| unusable(key, &error))?
        }
        _ => config.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots_in(path: &Path) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, &error))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    // Some systems ship a broken certificate among the good ones, so parse errors are ignored.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let text = "the system trusts no certificate authority; name one with `?ca=FILE`";
        return Err(StoreError::Failed(text.to_owned()));
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?;
    let all = read.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(path, &error))?;
    if all.is_empty() { Err(unusable(path, &"it holds no certificate")) } else { Ok(all) }
}

fn unusable(path: &Path, error: &dyn Display) -> StoreError {
    StoreError::Failed(format!("cannot use `{}`: {error}", path.display()))
}
