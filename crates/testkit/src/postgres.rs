//! A real PostgreSQL server on loopback.

mod account;
mod process;

use std::path::{Path, PathBuf};

use account::Account;
use process::Process;
use rcgen::{CertificateParams, KeyPair};

/// One server with a directory of its own, ended when dropped. It does not wait for the disk, so that it forgets when the
/// machine crashes; it does not when it is killed.
#[derive(Debug)]
pub struct PostgresServer {
    process: Process,
}

impl PostgresServer {
    pub async fn start() -> Self {
        PostgresServer::with(&[]).await
    }

    /// With further lines of a configuration file, such as `max_connections = 5`.
    pub async fn with(config: &[&str]) -> Self {
        PostgresServer { process: Process::start(|_, _| (), config).await }
    }

    /// With a certificate for `127.0.0.1` and `localhost` that nobody but itself vouches for: see
    /// [`certificate`](Self::certificate).
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

    /// The superuser's.
    pub fn password(&self) -> &str {
        process::PASSWORD
    }

    /// The file with the certificate of a server that has one.
    pub fn certificate(&self) -> PathBuf {
        self.process.data().join(CERTIFICATE)
    }

    /// What `psql` prints: a line for each row, columns divided by `|`, without the last line break.
    pub async fn psql(&self, sql: &str) -> String {
        self.process.psql(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    /// Stops it where it is, with all that work for it: connections stay open and get no answer.
    pub fn freeze(&self) {
        self.process.freeze();
    }

    pub fn thaw(&self) {
        self.process.thaw();
    }

    /// Ends it and all that work for it where they are, as a crash does.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Ends it as an administrator does: open transactions are rolled back.
    pub async fn stop(&self) {
        self.process.stop().await;
    }

    /// On the same port, with what it held.
    pub async fn restart(&self) {
        self.process.kill();
        self.process.run().await;
    }
}

const CERTIFICATE: &str = "server.crt";
