//! TLS to the database. The certificates are read once, when the archive is opened: connections are made on async workers,
//! which must not wait for files.

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
    // The provider is named explicitly: the process may have installed another default, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| ArchiveError::Failed(error.to_string()))?;
    let config = match trust {
        Trust::Verified(ca) => {
            let roots = roots(ca.as_deref())
                .map_err(|error| ArchiveError::Url(format!("requires `sslmode=verify-full`, but {error}")))?;
            config.with_root_certificates(roots)
        }
        Trust::AnyCertificate => {
            config.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// Loads the certificate authorities in a file, or those of the system if there is none.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        // Some systems ship a broken certificate among the good ones, so parse errors are ignored.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match roots.is_empty() {
            true => {
                Err("the system trusts no certificate authority; name one with `?sslrootcert=FILE`"
                    .to_owned())
            }
            false => Ok(roots),
        };
    };
    let unusable = |error: &dyn Display| format!("cannot use `{}`: {error}", path.display());
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))? {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() { Err(unusable(&"it holds no certificate")) } else { Ok(roots) }
}

/// Accepts any certificate whose private key the server holds, as libpq does with `sslmode=prefer` and `require`. This defeats
/// passive eavesdroppers. With SCRAM passwords the login is also bound to the certificate, so that a machine in the middle
/// cannot reuse it.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
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
