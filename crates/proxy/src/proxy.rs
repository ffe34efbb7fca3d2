use crate::host::shared::Gateway;
use crate::host::worker::Worker;
use crate::transport::client::Clients;
use crate::transport::server::{Server, StartError};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// A running proxy.
#[derive(Debug)]
pub struct Proxy(Server);

impl Proxy {
    /// Starts accepting on `listener`, with the workers and limits of the current configuration.
    pub fn start(gateway: &Arc<Gateway>, listener: TcpListener) -> Result<Proxy, StartError> {
        let settings = gateway.settings();
        let is_loopback = listener.local_addr()?.ip().is_loopback();
        let worker = |shutdown: &_| Worker {
            gateway: gateway.clone(),
            clients: Clients::default(),
            shutdown: Clone::clone(shutdown),
            is_loopback,
        };
        Server::start(&settings.server, &gateway.overload, listener, worker).map(Proxy)
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Stops accepting, waits up to `drain` for requests in progress, then ends the rest with an error.
    pub async fn shut_down(self, drain: Duration) {
        self.0.shut_down(drain).await;
    }
}
