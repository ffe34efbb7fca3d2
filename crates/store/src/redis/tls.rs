//! Whom we trust, read once: a connection is made on a worker, which must not wait for files.

use super::url::TlsFiles;
use crate::StoreError;
use crate::roots::{certificates, roots, unusable};
use rustls::ClientConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// There is no way to turn verification off: the certificate authority of one's own servers can be named instead.
pub(super) fn connector(files: &TlsFiles) -> Result<TlsConnector, StoreError> {
    let roots = roots(files.ca.as_deref(), "ca").map_err(StoreError::Failed)?;
    // The provider is named here: other parts of the process may have chosen another as their default, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Failed(error.to_string()))?
        .with_root_certificates(roots);
    let config = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => {
            let refused = |error: String| StoreError::Failed(error);
            let private =
                PrivateKeyDer::from_pem_file(key).map_err(|error| refused(unusable(key, &error)))?;
            config
                .with_client_auth_cert(certificates(cert).map_err(refused)?, private)
                .map_err(|error| refused(unusable(key, &error)))?
        }
        _ => config.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
