//! Finds the master through sentinels.

use super::dial::{Connection, Dialer, Expect};
use super::url::Address;
use redis::{ErrorKind, RedisError, RedisResult};
use std::sync::Arc;
use tokio::task::JoinSet;

#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) addresses: Vec<Address>,
    /// For the sentinels, whose credentials differ from those of the servers.
    pub(super) dialer: Dialer,
    pub(super) master: String,
}

impl Sentinels {
    /// Asks all sentinels at once and tries each master that they name: after a failover some still name the old one, and a
    /// sentinel may be frozen.
    pub(super) async fn connect(self: Arc<Self>, servers: Arc<Dialer>) -> RedisResult<Connection> {
        let mut attempts = JoinSet::new();
        for address in self.addresses.clone() {
            let (sentinels, servers) = (Arc::clone(&self), Arc::clone(&servers));
            attempts.spawn(async move {
                let master = sentinels.master_according_to(&address).await?;
                servers.dial(&master, Expect::Master).await
            });
        }
        let mut failure = RedisError::from((ErrorKind::Client, "no sentinel responded"));
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok(Ok(connection)) => return Ok(connection),
                // An error response says more than a failed connection.
                Ok(Err(error)) if failure.kind() == ErrorKind::Client || failure.is_io_error() => {
                    failure = error
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(failure)
    }

    async fn master_according_to(&self, sentinel: &Address) -> RedisResult<Address> {
        let connection = self.dialer.dial(sentinel, Expect::Alive).await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&self.master);
        let response = connection.send(&command).await?;
        match redis::from_redis_value::<Option<(String, u16)>>(response)? {
            Some((host, port)) => Ok(Address { host, port }),
            None => {
                let text = format!("sentinel {sentinel} does not know `{}`", self.master);
                Err((ErrorKind::MasterNameNotFoundBySentinel, "no such master", text).into())
            }
        }
    }
}
