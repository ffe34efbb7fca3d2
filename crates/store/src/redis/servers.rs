//! Sending commands: which server, which connection, and what to do when it fails.

use super::cluster::{Cluster, Redirect, SlotMap};
use super::dial::{Connection, Dialer};
use super::endpoint::{Endpoint, Peer};
use super::error::{is_demoted, is_fatal, is_migrating, is_unknown_script};
use super::keys::Slot;
use super::lazy::Instance;
use super::script::Invocation;
use super::sentinel::Sentinels;
use super::tls;
use super::url::{Layout, Target};
use crate::StoreError;
use redis::{Cmd, Pipeline, RedisResult, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, sleep};

/// The servers behind a URL.
///
/// Each runtime has its own connections. A connection is driven by a task on the runtime that made it; sharing it would wake
/// another thread for every response, and would break it when that runtime ends.
#[derive(Debug)]
pub(super) struct Servers {
    layout: Layout,
    dialer: Arc<Dialer>,
    sentinel_dialer: Option<Dialer>,
    /// If a caller gives up on a command after at least this long, the connection is considered dead.
    dead_after: Duration,
    /// A process has a small, fixed number of runtimes, so nothing is ever removed.
    runtimes: Mutex<HashMap<Id, Endpoints>>,
}

/// The endpoints of one runtime.
#[derive(Clone, Debug)]
enum Endpoints {
    One(Arc<Endpoint>),
    Cluster(Arc<Cluster>),
}

/// The maximum number of servers that a command is sent to, following redirects and new slot maps.
const MAX_ATTEMPTS: usize = 3;

/// The pause before a conversation that is migrating to another server is tried again.
const MIGRATION_PAUSE: Duration = Duration::from_millis(20);
const MAX_MIGRATION_PAUSES: usize = 8;

impl Servers {
    /// Does not connect: a store that is down must not keep the proxy from starting.
    pub(super) fn new(target: Target, timeout: Duration) -> Result<Servers, StoreError> {
        let Target { layout, login, db, tls } = target;
        let tls = tls.as_ref().map(tls::connector).transpose()?;
        let sentinel_dialer = match &layout {
            Layout::Sentinel { login, .. } => Some(Dialer { login: login.clone(), db: 0, tls: tls.clone() }),
            Layout::Single(_) | Layout::Cluster { .. } => None,
        };
        let dialer = Arc::new(Dialer { login, db, tls });
        let dead_after = timeout / 2;
        Ok(Servers { layout, dialer, sentinel_dialer, dead_after, runtimes: Mutex::default() })
    }

    /// Runs a script by its hash, or by its source if the server does not know it.
    pub(super) async fn run(&self, invocation: &Invocation) -> RedisResult<Value> {
        match self.send(invocation.slot(), invocation.by_hash()).await {
            Err(error) if is_unknown_script(&error) => {
                self.send(invocation.slot(), &invocation.by_source()).await
            }
            outcome => outcome,
        }
    }

    /// Sends a command to the master of a slot. If the connection breaks, the command is sent once more on a new one. That is
    /// safe: our writes are idempotent, except that a waypoint may be added twice, which has the same effect as once.
    pub(super) async fn send(&self, slot: Slot, command: &Cmd) -> RedisResult<Value> {
        match self.endpoints() {
            Endpoints::One(endpoint) => self.send_to_one(&endpoint, command).await,
            Endpoints::Cluster(cluster) => self.send_to_cluster(&cluster, slot, command).await,
        }
    }

    /// Sends commands as a pipeline, which is many times faster than one by one, without retrying. Returns `None` for a cluster,
    /// where they may belong to different servers.
    pub(super) async fn send_pipeline(&self, commands: &Pipeline) -> Option<RedisResult<Vec<Value>>> {
        match self.endpoints() {
            Endpoints::One(endpoint) => Some(self.send_pipeline_to(&endpoint, commands).await),
            Endpoints::Cluster(_) => None,
        }
    }

    async fn send_pipeline_to(&self, endpoint: &Endpoint, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let connection = endpoint.connection().await?;
        let mut pending = PendingCommand::new(endpoint, &connection, None, self.dead_after);
        let outcome = connection.value.pipeline(commands).await;
        pending.is_answered = true;
        if outcome.as_ref().is_err_and(is_fatal) {
            endpoint.discard(&connection);
        }
        outcome
    }

    async fn send_to_one(&self, endpoint: &Endpoint, command: &Cmd) -> RedisResult<Value> {
        let connection = endpoint.connection().await?;
        let error = match self.send_on(endpoint, &connection, None, false, command).await {
            Err(error) if is_fatal(&error) => error,
            outcome => return outcome,
        };
        // Reconnecting to the same server would reach the same replica.
        if is_demoted(&error) && !endpoint.can_move() {
            return Err(error);
        }
        let connection = endpoint.connection().await?;
        self.send_on(endpoint, &connection, None, false, command).await
    }

    async fn send_to_cluster(&self, cluster: &Arc<Cluster>, slot: Slot, command: &Cmd) -> RedisResult<Value> {
        let mut redirect = None;
        let mut outcome = Ok(Value::Nil);
        let (mut attempts, mut pauses) = (0, 0);
        while attempts < MAX_ATTEMPTS {
            attempts += 1;
            let map = cluster.map().await?;
            let master = || map.value.master(slot).cloned().inspect_err(|_| cluster.discard(&map));
            let (address, is_asking) = match redirect.take() {
                Some(Redirect::Moved(address)) => (address, false),
                Some(Redirect::Ask(address)) => (address, true),
                None => (master()?, false),
            };
            let endpoint = cluster.endpoint(&address);
            outcome = match endpoint.connection().await {
                Ok(connection) => {
                    self.send_on(&endpoint, &connection, Some((cluster, &map)), is_asking, command).await
                }
                Err(error) => Err(error),
            };
            let Err(error) = &outcome else { break };
            redirect = Redirect::of(error, &address);
            match &redirect {
                Some(Redirect::Ask(_)) => {}
                Some(Redirect::Moved(_)) => cluster.discard(&map),
                None if is_fatal(error) => cluster.discard(&map),
                // Some keys of the conversation are here and some where the slot is migrating to. That is brief.
                None if is_migrating(error) && pauses < MAX_MIGRATION_PAUSES => {
                    sleep(MIGRATION_PAUSE).await;
                    (attempts, pauses) = (0, pauses + 1);
                }
                None => break,
            }
        }
        outcome
    }

    async fn send_on(
        &self,
        endpoint: &Endpoint,
        connection: &Instance<Connection>,
        map: Option<(&Cluster, &Instance<Arc<SlotMap>>)>,
        is_asking: bool,
        command: &Cmd,
    ) -> RedisResult<Value> {
        let mut pending = PendingCommand::new(endpoint, connection, map, self.dead_after);
        let outcome = match is_asking {
            true => connection.value.send_asking(command).await,
            false => connection.value.send(command).await,
        };
        pending.is_answered = true;
        if outcome.as_ref().is_err_and(is_fatal) {
            endpoint.discard(connection);
        }
        outcome
    }

    fn endpoints(&self) -> Endpoints {
        let mut runtimes = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        runtimes.entry(Handle::current().id()).or_insert_with(|| self.new_endpoints()).clone()
    }

    fn new_endpoints(&self) -> Endpoints {
        let dialer = Arc::clone(&self.dialer);
        match &self.layout {
            Layout::Single(address) => Endpoints::One(Endpoint::new(Peer::Server(address.clone()), dialer)),
            Layout::Sentinel { sentinels, login: _, master } => {
                let dialer_of_sentinels =
                    self.sentinel_dialer.clone().unwrap_or_else(|| Dialer::clone(&dialer));
                let sentinels = Sentinels {
                    addresses: sentinels.clone(),
                    dialer: dialer_of_sentinels,
                    master: master.clone(),
                };
                Endpoints::One(Endpoint::new(Peer::Master(Arc::new(sentinels)), dialer))
            }
            Layout::Cluster { seeds } => Endpoints::Cluster(Cluster::new(seeds.clone(), dialer)),
        }
    }
}

/// A command that waits for its response.
///
/// Callers have a deadline and drop this when it passes. The server may then be frozen: its connection stays open, but
/// everything sent on it would queue behind the unanswered command. So the connection is discarded, and with it the slot map of
/// a cluster, which may have elected a new master.
struct PendingCommand<'a> {
    endpoint: &'a Endpoint,
    connection: &'a Instance<Connection>,
    map: Option<(&'a Cluster, &'a Instance<Arc<SlotMap>>)>,
    since: Instant,
    dead_after: Duration,
    is_answered: bool,
}

impl<'a> PendingCommand<'a> {
    fn new(
        endpoint: &'a Endpoint,
        connection: &'a Instance<Connection>,
        map: Option<(&'a Cluster, &'a Instance<Arc<SlotMap>>)>,
        dead_after: Duration,
    ) -> PendingCommand<'a> {
        PendingCommand { endpoint, connection, map, since: Instant::now(), dead_after, is_answered: false }
    }
}

impl Drop for PendingCommand<'_> {
    fn drop(&mut self) {
        // A client that disconnects also drops this, usually earlier. That says nothing about the server.
        if self.is_answered || self.since.elapsed() < self.dead_after {
            return;
        }
        self.endpoint.discard(self.connection);
        if let Some((cluster, map)) = self.map {
            cluster.discard(map);
        }
    }
}
