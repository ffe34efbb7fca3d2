use crate::host::shared::Gateway;
use crate::transport::client::Clients;
use crate::transport::server::Shutdown;
use std::sync::Arc;

/// What the requests of one worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) clients: Clients,
    pub(crate) shutdown: Shutdown,
    /// Whether only this machine can reach the listener.
    pub(crate) is_loopback: bool,
}
