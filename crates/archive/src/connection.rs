//! A connection to the database, with its tables in place.

use crate::ArchiveError;
use crate::insert::inserts;
use crate::record::ArchiveRecord;
use crate::schema;
use crate::tls;
use crate::url::Target;
use std::fmt;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Opens connections.
pub(crate) struct Dialer {
    config: Config,
    tls: MakeRustlsConnect,
    /// The deadline for connecting and for each write.
    timeout: Duration,
}

/// An open connection. Its I/O runs in a task that is aborted on drop; otherwise a server that never answers would keep the
/// task and its socket forever.
pub(crate) struct Connection {
    client: Client,
    driver: JoinHandle<()>,
    timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(target: &Target, timeout: Duration) -> Result<Dialer, ArchiveError> {
        Ok(Dialer { config: target.config.clone(), tls: tls::connector(&target.trust)?, timeout })
    }

    /// Connects and brings the tables up to date.
    pub(crate) async fn dial(&self) -> Result<Connection, ArchiveError> {
        let dial = async {
            let (client, io) = self.config.connect(self.tls.clone()).await?;
            // Its errors also surface in the queries that it carries.
            let driver = tokio::spawn(async move { drop(io.await) });
            let mut connection = Connection { client, driver, timeout: self.timeout };
            schema::prepare(&mut connection.client).await?;
            Ok(connection)
        };
        timeout(self.timeout, dial).await.unwrap_or(Err(ArchiveError::Timeout))
    }
}

impl Connection {
    /// Inserts the records that do not exist yet, in one transaction.
    pub(crate) async fn write(
        &mut self,
        records: impl Iterator<Item = &ArchiveRecord>,
    ) -> Result<(), ArchiveError> {
        let inserts = inserts(records);
        let millis = self.timeout.as_millis();
        // If we stop waiting, the server must abort by itself and release the row locks that our next attempt needs.
        let limits = format!(
            "SET LOCAL statement_timeout = {millis}; SET LOCAL idle_in_transaction_session_timeout = {millis}"
        );
        let client = &mut self.client;
        let write = async {
            let transaction = client.transaction().await?;
            transaction.batch_execute(&limits).await?;
            for insert in &inserts {
                transaction.execute_typed(&insert.sql(), &insert.parameters()).await?;
            }
            transaction.commit().await?;
            Ok(())
        };
        timeout(self.timeout, write).await.unwrap_or(Err(ArchiveError::Timeout))
    }

    /// Completes when the server has closed the connection.
    pub(crate) async fn closed(&mut self) {
        // Whether the task ended or panicked, the connection is gone.
        let _ = (&mut self.driver).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
