//! A server, or whichever server is the master, and the connection of a runtime to it.

use super::dial::{Connection, Dialer, Expect};
use super::lazy::{Instance, Lazy};
use super::sentinel::Sentinels;
use super::url::Address;
use redis::RedisResult;
use std::sync::Arc;

/// A peer and the connection to it, which is made on demand.
#[derive(Debug)]
pub(super) struct Endpoint {
    peer: Peer,
    dialer: Arc<Dialer>,
    connection: Arc<Lazy<Connection>>,
}

/// The server at the other end.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    Server(Address),
    /// The server that the sentinels name.
    Master(Arc<Sentinels>),
}

impl Endpoint {
    pub(super) fn new(peer: Peer, dialer: Arc<Dialer>) -> Arc<Endpoint> {
        Arc::new(Endpoint { peer, dialer, connection: Lazy::new() })
    }

    /// Returns the connection. Connects if there is none.
    pub(super) async fn connection(&self) -> RedisResult<Instance<Connection>> {
        let connection = self.connection.get(|| self.dial()).await?;
        if !connection.value.is_closed() {
            return Ok(connection);
        }
        // Closed while idle, by a restart or an idle timeout. No request needs to fail for that.
        self.connection.discard(&connection);
        self.connection.get(|| self.dial()).await
    }

    /// Drops a bad connection, so that the next caller makes a new one.
    pub(super) fn discard(&self, connection: &Instance<Connection>) {
        self.connection.discard(connection);
    }

    /// Whether reconnecting may reach another server.
    pub(super) fn can_move(&self) -> bool {
        matches!(self.peer, Peer::Master(_))
    }

    fn dial(&self) -> impl Future<Output = RedisResult<Connection>> + Send + use<> {
        let (peer, dialer) = (self.peer.clone(), Arc::clone(&self.dialer));
        async move {
            match peer {
                Peer::Server(address) => dialer.dial(&address, Expect::Alive).await,
                Peer::Master(sentinels) => sentinels.connect(dialer).await,
            }
        }
    }
}
