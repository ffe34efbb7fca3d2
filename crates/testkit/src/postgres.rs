//! A real PostgreSQL server on loopback.

mod account;
mod process;

use std::path::{Path, PathBuf};

use account::Account;
use process::Process;
use rcgen::{CertificateParams, KeyPair};

/// A server in its own directory. Dropping it ends the process. It does not sync to disk: committed data survives a kill but not a
/// crash of the machine.
#[derive(Debug)]
pub struct PostgresServer {
    process: Process,
}

impl PostgresServer {
    pub async fn start() -> Self {
        PostgresServer::with(&[]).await
    }

    /// Starts with additional lines of configuration, such as `max_connections = 5`.
    pub async fn with(config: &[&str]) -> Self {
        PostgresServer { process: Process::start(|_, _| (), config).await }
    }

    /// Starts with a self-signed [`certificate`](Self::certificate) for `127.0.0.1` and `localhost`.
    pub async fn with_tls(config: &[&str]) -> Self {
        let identify = |directory: &Path, account: &Account| {
            let key = KeyPair::generate().expect("the system has randomness");
            let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])
                .and_then(|params| params.self_signed(&key))
                .expect("the server's parameters are valid");
            account.write(&directory.join(CERTIFICATE), &certificate.pem());
            account.write(&directory.join("server.key"), &key.serialize_pem());
        };
        let lines = [&["ssl = on"][..], config].concat();
        PostgresServer { process: Process::start(identify, &lines).await }
    }

    pub fn port(&self) -> u16 {
        self.process.port()
    }

    /// `postgres://postgres:PASSWORD@127.0.0.1:PORT/postgres`, as the superuser.
    pub fn url(&self) -> String {
        self.url_as("postgres", self.password())
    }

    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/postgres", self.port())
    }

    /// The superuser's password.
    pub fn password(&self) -> &str {
        process::PASSWORD
    }

    /// The file with the certificate of a server with TLS.
    pub fn certificate(&self) -> PathBuf {
        self.process.data().join(CERTIFICATE)
    }

    /// The output of `psql`: a line per row, columns separated by `|`, without the last line break.
    pub async fn psql(&self, sql: &str) -> String {
        self.process.psql(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    /// Stops the server and its workers: connections stay open and get no answer.
    pub fn freeze(&self) {
        self.process.freeze();
    }

    pub fn thaw(&self) {
        self.process.thaw();
    }

    /// Kills the server and its workers, like a crash.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Shuts the server down. Open transactions are rolled back.
    pub async fn stop(&self) {
        self.process.stop().await;
    }

    /// Restarts on the same port, with its data.
    pub async fn restart(&self) {
        self.process.kill();
        self.process.run().await;
    }
}

const CERTIFICATE: &str = "server.crt";
