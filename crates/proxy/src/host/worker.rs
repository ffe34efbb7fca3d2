use crate::host::shared::Gate;
use crate::transport::server::Shutdown;
use crate::transport::upstream::Clients;
use std::sync::Arc;

/// What the requests of one worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) gate: Arc<Gate>,
    pub(crate) clients: Clients,
    pub(crate) shutdown: Shutdown,
}
