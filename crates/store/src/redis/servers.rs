//! Which server gets a command, on which connection, and what happens when that connection fails.

use super::cluster::{Cluster, Redirect, SlotMap};
use super::dial::{Connection, Dialer};
use super::error::{is_demoted, is_fatal, is_torn, is_unknown_script};
use super::keys::Slot;
use super::lazy::Made;
use super::line::{End, Line};
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
/// Each runtime has connections of its own: the task that works for a connection runs on the runtime that made it, so that
/// any other would have to wake a thread for every answer, and would lose its connection with that runtime.
#[derive(Debug)]
pub(super) struct Servers {
    layout: Layout,
    dialer: Arc<Dialer>,
    sentinel_dialer: Option<Dialer>,
    /// Whoever gives up after this long takes the connection for dead.
    patience: Duration,
    /// A process has a fixed handful of runtimes, so that nothing is ever removed.
    runtimes: Mutex<HashMap<Id, Lines>>,
}

/// The connections of one runtime.
#[derive(Clone, Debug)]
enum Lines {
    One(Arc<Line>),
    Cluster(Arc<Cluster>),
}

/// How many servers a command is sent to at most: the one that should have it, and where that one or a new map sends us.
const ATTEMPTS: usize = 3;

/// How long and how often a conversation is waited for that is on its way to another server.
const PAUSE: Duration = Duration::from_millis(20);
const MOST_PAUSES: usize = 8;

impl Servers {
    /// Connects to nothing: a store that is down must not keep a proxy from starting.
    pub(super) fn new(target: Target, timeout: Duration) -> Result<Servers, StoreError> {
        let Target { layout, login, db, tls } = target;
        let tls = tls.as_ref().map(tls::connector).transpose()?;
        let sentinel_dialer = match &layout {
            Layout::Sentinel { login, .. } => Some(Dialer { login: login.clone(), db: 0, tls: tls.clone() }),
            Layout::Single(_) | Layout::Cluster { .. } => None,
        };
        let dialer = Arc::new(Dialer { login, db, tls });
        let patience = timeout / 2;
        Ok(Servers { layout, dialer, sentinel_dialer, patience, runtimes: Mutex::default() })
    }

    /// Runs a script, and brings it along where it is not known.
    pub(super) async fn run(&self, invocation: &Invocation) -> RedisResult<Value> {
        match self.ask(invocation.slot(), invocation.by_hash()).await {
            Err(error) if is_unknown_script(&error) => {
                self.ask(invocation.slot(), &invocation.by_body()).await
            }
            outcome => outcome,
        }
    }

    /// Sends a command to the master that holds a slot. If the connection breaks meanwhile, it is sent once more on a new
    /// one: everything of ours is added once, however often it is sent, save a waypoint, and two of the same are as good as one.
    pub(super) async fn ask(&self, slot: Slot, command: &Cmd) -> RedisResult<Value> {
        match self.lines() {
            Lines::One(line) => self.ask_one(&line, command).await,
            Lines::Cluster(cluster) => self.ask_cluster(&cluster, slot, command).await,
        }
    }

    /// Sends commands that leave together and are answered together: many times faster than one by one, and not tried again where the
    /// connection breaks. Nothing where they may belong to different servers.
    pub(super) async fn ask_together(&self, commands: &Pipeline) -> Option<RedisResult<Vec<Value>>> {
        match self.lines() {
            Lines::One(line) => Some(self.send_together(&line, commands).await),
            Lines::Cluster(_) => None,
        }
    }

    async fn send_together(&self, line: &Line, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let connection = line.get().await?;
        let mut flight = Flight::begin(line, &connection, None, self.patience);
        let outcome = connection.value.pipeline(commands).await;
        flight.has_landed = true;
        if outcome.as_ref().is_err_and(is_fatal) {
            line.discard(&connection);
        }
        outcome
    }

    async fn ask_one(&self, line: &Line, command: &Cmd) -> RedisResult<Value> {
        let connection = line.get().await?;
        let error = match self.send(line, &connection, None, false, command).await {
            Err(error) if is_fatal(&error) => error,
            outcome => return outcome,
        };
        // The same server is still the same replica on a new connection.
        if is_demoted(&error) && !line.can_move() {
            return Err(error);
        }
        let connection = line.get().await?;
        self.send(line, &connection, None, false, command).await
    }

    async fn ask_cluster(&self, cluster: &Arc<Cluster>, slot: Slot, command: &Cmd) -> RedisResult<Value> {
        let mut redirect = None;
        let mut outcome = Ok(Value::Nil);
        let (mut attempts, mut pauses) = (0, 0);
        while attempts < ATTEMPTS {
            attempts += 1;
            let map = cluster.map().await?;
            let held = || map.value.master(slot).cloned().inspect_err(|_| cluster.discard(&map));
            let (address, is_asking) = match redirect.take() {
                Some(Redirect::Moved(address)) => (address, false),
                Some(Redirect::Ask(address)) => (address, true),
                None => (held()?, false),
            };
            let line = cluster.line(&address);
            outcome = match line.get().await {
                Ok(connection) => {
                    self.send(&line, &connection, Some((cluster, &map)), is_asking, command).await
                }
                Err(error) => Err(error),
            };
            let Err(error) = &outcome else { break };
            redirect = Redirect::of(error, &address);
            match &redirect {
                Some(Redirect::Ask(_)) => {}
                Some(Redirect::Moved(_)) => cluster.discard(&map),
                None if is_fatal(error) => cluster.discard(&map),
                // Half of the conversation's keys are here and half where the slot moves to. That takes moments.
                None if is_torn(error) && pauses < MOST_PAUSES => {
                    sleep(PAUSE).await;
                    (attempts, pauses) = (0, pauses + 1);
                }
                None => break,
            }
        }
        outcome
    }

    async fn send(
        &self,
        line: &Line,
        connection: &Made<Connection>,
        map: Option<(&Cluster, &Made<Arc<SlotMap>>)>,
        is_asking: bool,
        command: &Cmd,
    ) -> RedisResult<Value> {
        let mut flight = Flight::begin(line, connection, map, self.patience);
        let outcome = match is_asking {
            true => connection.value.send_asking(command).await,
            false => connection.value.send(command).await,
        };
        flight.has_landed = true;
        if outcome.as_ref().is_err_and(is_fatal) {
            line.discard(connection);
        }
        outcome
    }

    fn lines(&self) -> Lines {
        let mut runtimes = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        runtimes.entry(Handle::current().id()).or_insert_with(|| self.new_lines()).clone()
    }

    fn new_lines(&self) -> Lines {
        let dialer = Arc::clone(&self.dialer);
        match &self.layout {
            Layout::Single(address) => Lines::One(Line::new(End::Server(address.clone()), dialer)),
            Layout::Sentinel { sentinels, login: _, master } => {
                let own = self.sentinel_dialer.clone().unwrap_or_else(|| Dialer::clone(&dialer));
                let sentinels =
                    Sentinels { addresses: sentinels.clone(), dialer: own, master: master.clone() };
                Lines::One(Line::new(End::Master(Arc::new(sentinels)), dialer))
            }
            Layout::Cluster { seeds } => Lines::Cluster(Cluster::new(seeds.clone(), dialer)),
        }
    }
}

/// A command that waits for its answer.
///
/// Whoever waits has a deadline and drops us when it is over. Then the server may be frozen: its connection stays open, and
/// everything sent on it from now on would queue behind what it has not answered. So the connection is given up, and with it the
/// map of the cluster, which may have got a new master there.
struct Flight<'a> {
    line: &'a Line,
    connection: &'a Made<Connection>,
    map: Option<(&'a Cluster, &'a Made<Arc<SlotMap>>)>,
    since: Instant,
    patience: Duration,
    has_landed: bool,
}

impl<'a> Flight<'a> {
    fn begin(
        line: &'a Line,
        connection: &'a Made<Connection>,
        map: Option<(&'a Cluster, &'a Made<Arc<SlotMap>>)>,
        patience: Duration,
    ) -> Flight<'a> {
        Flight { line, connection, map, since: Instant::now(), patience, has_landed: false }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        // A client that goes away drops us as well, mostly sooner; that says nothing about the server.
        if self.has_landed || self.since.elapsed() < self.patience {
            return;
        }
        self.line.discard(self.connection);
        if let Some((cluster, map)) = self.map {
            cluster.discard(map);
        }
    }
}
