//! Whom we trust, read once: a connection is made on a worker, which must not wait for files.

use super::ArchiveError;
use super::url::Trust;
use crate::roots::roots;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, ArchiveError> {
    // The provider is named here: other parts of the process may have chosen another as their default, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| ArchiveError::Failed(error.to_string()))?;
    let config = match trust {
        Trust::Verified(ca) => {
            let roots = roots(ca.as_deref(), "sslrootcert")
                .map_err(|error| ArchiveError::Url(format!("asks for `sslmode=verify-full`, but {error}")))?;
            config.with_root_certificates(roots)
        }
        Trust::Anybody => config.dangerous().with_custom_certificate_verifier(Arc::new(Whoever(provider))),
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
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
