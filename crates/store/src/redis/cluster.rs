//! Which server of a cluster holds what.
//!
//! The routing is our own, because each request has keys of one slot only and must not wait for any other server: one that
//! is frozen or gone may hold up its own slots and nothing else.

use super::dial::Dialer;
use super::keys::Slot;
use super::lazy::{Lazy, Made};
use super::line::{End, Line};
use super::url::Address;
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The servers as one runtime knows them.
#[derive(Debug)]
pub(super) struct Cluster {
    seeds: Vec<Address>,
    dialer: Arc<Dialer>,
    map: Arc<Lazy<Arc<SlotMap>>>,
    lines: Mutex<HashMap<Address, Arc<Line>>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    /// The first and the last slot, and the master that holds them.
    ranges: Vec<(Slot, Slot, Address)>,
    /// All servers, replicas as well: any of them knows the map.
    servers: HashSet<Address>,
}

/// A map is not asked for anew before it has this age: while a master is gone, every request finds the map wrong.
const FRESH: Duration = Duration::from_millis(100);

impl Cluster {
    pub(super) fn new(seeds: Vec<Address>, dialer: Arc<Dialer>) -> Arc<Cluster> {
        Arc::new(Cluster { seeds, dialer, map: Lazy::new(), lines: Mutex::default() })
    }

    pub(super) async fn map(self: &Arc<Self>) -> RedisResult<Made<Arc<SlotMap>>> {
        self.map.get(|| Arc::clone(self).ask_for_map()).await
    }

    /// The map was wrong: ask for a new one when it is needed next.
    pub(super) fn discard(&self, map: &Made<Arc<SlotMap>>) {
        self.map.discard_older(map, FRESH);
    }

    pub(super) fn line(&self, address: &Address) -> Arc<Line> {
        // Lines are only inserted and removed, each in one step.
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Line::new(End::Server(address.clone()), Arc::clone(&self.dialer));
        Arc::clone(lines.entry(address.clone()).or_insert_with(fresh))
    }

    /// All servers that were ever seen in the current map are asked at once, and the first answer counts. It may be an old
    /// one; then a server sends us on, or the next attempt corrects it.
    async fn ask_for_map(self: Arc<Self>) -> RedisResult<Arc<SlotMap>> {
        let mut attempts = JoinSet::new();
        for address in self.known() {
            let line = self.line(&address);
            attempts.spawn(async move {
                let connection = line.get().await?;
                let mut question = redis::cmd("CLUSTER");
                question.arg("SLOTS");
                let answer = connection.value.send(&question).await;
                SlotMap::read(answer.inspect_err(|_| line.discard(&connection))?, &address)
            });
        }
        let mut failure =
            RedisError::from((ErrorKind::ClusterConnectionNotFound, "no server could be asked"));
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok(Ok(map)) => {
                    self.forget_strangers(&map);
                    return Ok(Arc::new(map));
                }
                // A refusal says more than a connection that failed.
                Ok(Err(error))
                    if failure.is_io_error() || failure.kind() == ErrorKind::ClusterConnectionNotFound =>
                {
                    failure = error;
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(failure)
    }

    /// The servers of the last map, and those that the URL names.
    fn known(&self) -> HashSet<Address> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.keys().chain(&self.seeds).cloned().collect()
    }

    fn forget_strangers(&self, map: &SlotMap) {
        for address in &map.servers {
            self.line(address);
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|address, _| map.servers.contains(address));
    }
}

impl SlotMap {
    pub(super) fn master(&self, slot: Slot) -> RedisResult<&Address> {
        let holder = self.ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&slot));
        holder.map(|(_, _, address)| address).ok_or_else(|| {
            let kind = ErrorKind::Server(ServerErrorKind::ClusterDown);
            (kind, "no server of the cluster holds slot", slot.0.to_string()).into()
        })
    }

    /// Reads the answer to `CLUSTER SLOTS`.
    fn read(answer: Value, asked: &Address) -> RedisResult<SlotMap> {
        let mut map = SlotMap::default();
        for range in redis::from_redis_value::<Vec<Vec<Value>>>(answer)? {
            let mut parts = range.into_iter();
            let mut number = || {
                parts.next().map(redis::from_redis_value::<u16>).transpose().map(Option::unwrap_or_default)
            };
            let (first, last) = (Slot(number()?), Slot(number()?));
            let servers = parts.map(|server| read_server(server, asked)).collect::<RedisResult<Vec<_>>>()?;
            if let Some(master) = servers.first() {
                map.ranges.push((first, last, master.clone()));
            }
            map.servers.extend(servers);
        }
        if map.ranges.is_empty() {
            let kind = ErrorKind::Server(ServerErrorKind::ClusterDown);
            return Err((kind, "the server has no slots of a cluster", asked.to_string()).into());
        }
        Ok(map)
    }
}

/// A server that does not know its own name leaves it out: it is the one that was asked.
fn read_server(server: Value, asked: &Address) -> RedisResult<Address> {
    let mut parts = redis::from_redis_value::<Vec<Value>>(server)?.into_iter();
    let host = parts.next().map(redis::from_redis_value::<Option<String>>).transpose()?.flatten();
    let port = parts.next().map(redis::from_redis_value::<u16>).transpose()?.unwrap_or(asked.port);
    let host = host.filter(|host| !host.is_empty() && host != "?").unwrap_or_else(|| asked.host.clone());
    Ok(Address { host, port })
}

/// Where a server sends us that does not hold the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// From now on.
    Moved(Address),
    /// For this one request: the slot is on its way.
    Ask(Address),
}

impl Redirect {
    /// `asked` fills in for a host that is left out.
    pub(super) fn of(error: &RedisError, asked: &Address) -> Option<Redirect> {
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        let host = if host.is_empty() { &asked.host } else { host };
        let address = Address { host: host.to_owned(), port: port.parse().ok()? };
        let is_ask = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
        Some(if is_ask { Redirect::Ask(address) } else { Redirect::Moved(address) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    fn value(text: &str) -> Value {
        redis::parse_redis_value(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_map_names_masters_and_knows_replicas() {
        let text = "*2\r\n*4\r\n:0\r\n:99\r\n*3\r\n$2\r\nh1\r\n:1\r\n$1\r\na\r\n*2\r\n$2\r\nh2\r\n:2\r\n\
                    *3\r\n:100\r\n:16383\r\n*2\r\n$-1\r\n:3\r\n";
        let map = SlotMap::read(value(text), &address("seed", 9)).unwrap();
        assert_eq!(map.master(Slot(0)).unwrap(), &address("h1", 1));
        assert_eq!(map.master(Slot(99)).unwrap(), &address("h1", 1));
        assert_eq!(map.master(Slot(16_383)).unwrap(), &address("seed", 3));
        assert_eq!(map.servers.len(), 3);
    }

    #[test]
    fn a_slot_that_nobody_holds_is_a_cluster_that_is_down() {
        let map = SlotMap::read(value("*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$1\r\nh\r\n:1\r\n"), &address("s", 1))
            .unwrap();
        assert_eq!(map.master(Slot(10)).unwrap_err().code(), Some("CLUSTERDOWN"));
        assert_eq!(SlotMap::read(value("*0\r\n"), &address("s", 1)).unwrap_err().code(), Some("CLUSTERDOWN"));
    }

    #[test]
    fn redirects_are_read_with_and_without_a_host() {
        let error = |text: &str| value(text).extract_error().unwrap_err();
        let asked = address("me", 1);
        assert_eq!(Redirect::of(&error("-MOVED 5 h:2\r\n"), &asked), Some(Redirect::Moved(address("h", 2))));
        assert_eq!(Redirect::of(&error("-ASK 5 ::1:2\r\n"), &asked), Some(Redirect::Ask(address("::1", 2))));
        assert_eq!(Redirect::of(&error("-MOVED 5 :2\r\n"), &asked), Some(Redirect::Moved(address("me", 2))));
        assert_eq!(Redirect::of(&error("-OOM x\r\n"), &asked), None);
    }
}
