//! Real Redis servers on loopback: a single one, a cluster, and a master with replicas and sentinels.

mod cluster;
mod process;
mod sentinels;

pub use cluster::RedisCluster;
pub use sentinels::Sentinels;

use std::path::PathBuf;

use crate::loopback::free_port;
use process::{Process, Program};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// A server without persistence, in its own directory. Dropping it ends the process.
#[derive(Debug)]
pub struct RedisServer {
    process: Process,
    tls: Option<Tls>,
}

#[derive(Debug)]
struct Tls {
    port: u16,
    directory: tempfile::TempDir,
}

impl RedisServer {
    pub async fn start() -> Self {
        RedisServer::with(&[]).await
    }

    /// Starts with additional lines of configuration, such as `maxmemory 1mb`.
    pub async fn with(config: &[&str]) -> Self {
        let lines = ["save \"\"", "appendonly no", "repl-diskless-sync-delay 0"];
        let process = Process::start(Program::Server, &[&lines[..], config].concat()).await;
        RedisServer { process, tls: None }
    }

    /// Starts with a second port for TLS without client certificates.
    pub async fn with_tls(config: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let file = |name: &str, text: String| -> PathBuf {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a temporary file can be written");
            path
        };
        let mut ca = CertificateParams::new(Vec::new()).expect("no names, none invalid");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().expect("the system has randomness");
        let issuer = CertifiedIssuer::self_signed(ca, ca_key).expect("the CA's parameters are valid");
        let key = KeyPair::generate().expect("the system has randomness");
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .and_then(|params| params.signed_by(&key, &issuer))
            .expect("the server's parameters are valid");
        let port = free_port();
        let lines = [
            format!("tls-port {port}"),
            format!("tls-ca-cert-file {}", file("ca.pem", issuer.pem()).display()),
            format!("tls-cert-file {}", file("cert.pem", certificate.pem()).display()),
            format!("tls-key-file {}", file("key.pem", key.serialize_pem()).display()),
            "tls-auth-clients no".to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).chain(config.iter().copied()).collect();
        let server = RedisServer::with(&lines).await;
        RedisServer { tls: Some(Tls { port, directory }), ..server }
    }

    pub fn port(&self) -> u16 {
        self.process.port()
    }

    /// `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// `rediss://LOGIN127.0.0.1:PORT?ca=FILE`, where `login` is empty or ends with an `@`.
    pub fn tls_url(&self, login: &str) -> String {
        let tls = self.tls.as_ref().expect("the server was started with TLS");
        let ca = tls.directory.path().join("ca.pem");
        format!("rediss://{login}127.0.0.1:{}?ca={}", tls.port, ca.display())
    }

    /// The output of `redis-cli`, without the last line break.
    pub async fn cli(&self, arguments: &[&str]) -> String {
        self.process.cli(arguments).await
    }

    /// Stops the process: connections stay open and get no answer.
    pub fn freeze(&self) {
        self.process.freeze();
    }

    pub fn thaw(&self) {
        self.process.thaw();
    }

    pub fn kill(&self) {
        self.process.kill();
    }

    /// Restarts on the same port, without data.
    pub async fn restart(&self) {
        self.process.kill();
        self.process.run().await;
    }
}
