//! The one connection of a runtime to a server, or to whichever server is the master.

use super::dial::{Connection, Dialer, Expect};
use super::lazy::{Lazy, Made};
use super::sentinel::Sentinels;
use super::url::Address;
use redis::RedisResult;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Line {
    end: End,
    dialer: Arc<Dialer>,
    connection: Arc<Lazy<Connection>>,
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(super) enum End {
    Server(Address),
    Master(Arc<Sentinels>),
}

impl Line {
    pub(super) fn new(end: End, dialer: Arc<Dialer>) -> Arc<Line> {
        Arc::new(Line { end, dialer, connection: Lazy::new() })
    }

    /// The connection, made now if there is none.
    pub(super) async fn get(&self) -> RedisResult<Made<Connection>> {
        let made = self.connection.get(|| self.dial()).await?;
        if !made.value.is_closed() {
            return Ok(made);
        }
        // Closed while nobody used it, by a restart or an idle limit: no request needs to fail for that.
        self.connection.discard(&made);
        self.connection.get(|| self.dial()).await
    }

    /// The next one who needs a connection makes a new one.
    pub(super) fn discard(&self, connection: &Made<Connection>) {
        self.connection.discard(connection);
    }

    /// Whether a new connection can lead to another server.
    pub(super) fn can_move(&self) -> bool {
        matches!(self.end, End::Master(_))
    }

    fn dial(&self) -> impl Future<Output = RedisResult<Connection>> + Send + use<> {
        let (end, dialer) = (self.end.clone(), Arc::clone(&self.dialer));
        async move {
            match end {
                End::Server(address) => dialer.dial(&address, Expect::Alive).await,
                End::Master(sentinels) => sentinels.connect(dialer).await,
            }
        }
    }
}
