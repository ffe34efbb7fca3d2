//! One connection, ready to be written to.

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

/// How to get in.
pub(crate) struct Dialer {
    config: Config,
    tls: MakeRustlsConnect,
    /// The deadline of everything that the server is asked for.
    timeout: Duration,
}

/// Its work is done by a task, which ends with it: a server that never answers would keep it and its socket for ever.
pub(crate) struct Connection {
    client: Client,
    driver: JoinHandle<()>,
    timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(target: &Target, timeout: Duration) -> Result<Dialer, ArchiveError> {
        Ok(Dialer { config: target.config.clone(), tls: tls::connector(&target.trust)?, timeout })
    }

    /// A connection to a database whose tables are as they should be.
    pub(crate) async fn dial(&self) -> Result<Connection, ArchiveError> {
        let dial = async {
            let (client, wire) = self.config.connect(self.tls.clone()).await?;
            // Its failures are those of the questions that it carries.
            let driver = tokio::spawn(async move { drop(wire.await) });
            let mut connection = Connection { client, driver, timeout: self.timeout };
            schema::prepare(&mut connection.client).await?;
            Ok(connection)
        };
        timeout(self.timeout, dial).await.unwrap_or(Err(ArchiveError::Timeout))
    }
}

impl Connection {
    /// Adds those that are not there yet: all of them or none.
    pub(crate) async fn write(
        &mut self,
        records: impl Iterator<Item = &ArchiveRecord>,
    ) -> Result<(), ArchiveError> {
        let inserts = inserts(records);
        let millis = self.timeout.as_millis();
        // A server whose answer we did not wait for ends by itself, and lets go of the rows that our next attempt needs.
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

    /// Ready when the other side has gone.
    pub(crate) async fn closed(&mut self) {
        // However it ended, it has.
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
