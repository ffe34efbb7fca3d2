//! A certificate authority and a server certificate, generated for each mock upstream.

use std::fmt;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) ca_pem: String,
    pub(crate) acceptor: TlsAcceptor,
}

impl Identity {
    /// For `localhost` and `127.0.0.1`, offering these protocols by ALPN in this order.
    pub(crate) fn new(protocols: &[&[u8]]) -> Self {
        let mut ca = CertificateParams::new(Vec::new()).expect("no names, none invalid");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().expect("the system has randomness");
        let issuer = CertifiedIssuer::self_signed(ca, ca_key).expect("the CA's parameters are valid");
        let key = KeyPair::generate().expect("the system has randomness");
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)
            .and_then(|params| params.signed_by(&key, &issuer))
            .expect("the server's parameters are valid");
        // An explicit provider: a process-wide default would also affect the test's own client.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("the key belongs to the certificate");
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Identity { ca_pem: issuer.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("ca_pem", &self.ca_pem).finish_non_exhaustive()
    }
}
