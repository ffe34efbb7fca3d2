//! Asking the sentinels for the master.

use super::dial::{Connection, Dialer, Expect};
use super::url::Address;
use redis::{ErrorKind, RedisError, RedisResult};
use std::sync::Arc;
use tokio::task::JoinSet;

#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) addresses: Vec<Address>,
    /// The sentinels' own way in; the servers have another.
    pub(super) dialer: Dialer,
    pub(super) master: String,
}

impl Sentinels {
    /// All sentinels are asked at once, and each answer is tried: after a failover some still name the old master, and one
    /// may be frozen.
    pub(super) async fn connect(self: Arc<Self>, servers: Arc<Dialer>) -> RedisResult<Connection> {
        let mut attempts = JoinSet::new();
        for address in self.addresses.clone() {
            let (sentinels, servers) = (Arc::clone(&self), Arc::clone(&servers));
            attempts.spawn(async move {
                let master = sentinels.ask(&address).await?;
                servers.dial(&master, Expect::Master).await
            });
        }
        let mut failure = RedisError::from((ErrorKind::Client, "no sentinel could be asked"));
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok(Ok(connection)) => return Ok(connection),
                // A refusal says more than a connection that failed.
                Ok(Err(error)) if failure.kind() == ErrorKind::Client || failure.is_io_error() => {
                    failure = error
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(failure)
    }

    async fn ask(&self, sentinel: &Address) -> RedisResult<Address> {
        let connection = self.dialer.dial(sentinel, Expect::Alive).await?;
        let mut question = redis::cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(&self.master);
        let answer = connection.send(&question).await?;
        match redis::from_redis_value::<Option<(String, u16)>>(answer)? {
            Some((host, port)) => Ok(Address { host, port }),
            None => {
                let text = format!("`{}` is unknown to the sentinel {sentinel}", self.master);
                Err((ErrorKind::MasterNameNotFoundBySentinel, "no such master", text).into())
            }
        }
    }
}
