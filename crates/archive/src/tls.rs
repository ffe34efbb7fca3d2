//! Whom we trust, read once: a connection is made on a worker, which must not wait for files.

use crate::ArchiveError;
use crate::url::Trust;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, ArchiveError> {
    // The provider is named here: other parts of the process may have chosen another as their default, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| ArchiveError::Failed(error.to_string()))?;
    let config = match trust {
        Trust::Verified(ca) => {
            let roots = roots(ca.as_deref())
                .map_err(|error| ArchiveError::Url(format!("asks for `sslmode=verify-full`, but {error}")))?;
            config.with_root_certificates(roots)
        }
        Trust::Anybody => config.dangerous().with_custom_certificate_verifier(Arc::new(Whoever(provider))),
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// The certificate authorities of a file, or, without one, those of the system.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        // Some systems have a broken certificate among their good ones.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match roots.is_empty() {
            true => {
                Err("the system trusts no certificate authority; name one with `?sslrootcert=FILE`"
                    .to_owned())
            }
            false => Ok(roots),
        };
    };
    let unusable = |error: &dyn Display| format!("`{}` cannot be used: {error}", path.display());
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))? {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() { Err(unusable(&"it holds no certificate")) } else { Ok(roots) }
}

/// Takes every certificate, as PostgreSQL's own clients do where `sslmode` is `prefer` or `require`, but only from a server that
/// has its key. What it is good for: nobody who only listens learns anything, and where the server stores passwords as SCRAM
/// does, the login is bound to the certificate, so that nobody in between can log in with it.
#[derive(Debug)]
struct Whoever(Arc<CryptoProvider>);

impl ServerCertVerifier for Whoever {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
