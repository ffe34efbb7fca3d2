//! Routing of commands to the servers of a cluster.
//!
//! We route ourselves instead of using the library's cluster client: each request uses keys of one slot only and must not wait
//! for any other server. A server that is frozen or gone may block only its own slots.

use super::dial::Dialer;
use super::endpoint::{Endpoint, Peer};
use super::keys::Slot;
use super::lazy::{Instance, Lazy};
use super::url::Address;
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// A cluster as seen by one runtime.
#[derive(Debug)]
pub(super) struct Cluster {
    seeds: Vec<Address>,
    dialer: Arc<Dialer>,
    map: Arc<Lazy<Arc<SlotMap>>>,
    endpoints: Mutex<HashMap<Address, Arc<Endpoint>>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    /// The first and the last slot of a range, and its master.
    ranges: Vec<(Slot, Slot, Address)>,
    /// All servers, including replicas: any of them can return the map.
    servers: HashSet<Address>,
}

/// The minimum time between two fetches of the map. While a master is gone, every request finds the map wrong.
const MIN_MAP_AGE: Duration = Duration::from_millis(100);

impl Cluster {
    pub(super) fn new(seeds: Vec<Address>, dialer: Arc<Dialer>) -> Arc<Cluster> {
        Arc::new(Cluster { seeds, dialer, map: Lazy::new(), endpoints: Mutex::default() })
    }

    pub(super) async fn map(self: &Arc<Self>) -> RedisResult<Instance<Arc<SlotMap>>> {
        self.map.get(|| Arc::clone(self).fetch_map()).await
    }

    /// Drops a wrong map, so that the next caller fetches a new one.
    pub(super) fn discard(&self, map: &Instance<Arc<SlotMap>>) {
        self.map.discard_older(map, MIN_MAP_AGE);
    }

    pub(super) fn endpoint(&self, address: &Address) -> Arc<Endpoint> {
        // Endpoints are only inserted and removed, each in one step.
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Endpoint::new(Peer::Server(address.clone()), Arc::clone(&self.dialer));
        Arc::clone(endpoints.entry(address.clone()).or_insert_with(new))
    }

    /// Asks all known servers at once and takes the first response. It may be outdated; then a redirect or the next attempt
    /// corrects it.
    async fn fetch_map(self: Arc<Self>) -> RedisResult<Arc<SlotMap>> {
        let mut attempts = JoinSet::new();
        for address in self.known() {
            let endpoint = self.endpoint(&address);
            attempts.spawn(async move {
                let connection = endpoint.connection().await?;
                let mut command = redis::cmd("CLUSTER");
                command.arg("SLOTS");
                let response = connection.value.send(&command).await;
                SlotMap::parse(response.inspect_err(|_| endpoint.discard(&connection))?, &address)
            });
        }
        let mut failure =
            RedisError::from((ErrorKind::ClusterConnectionNotFound, "no server of the cluster responded"));
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok(Ok(map)) => {
                    self.keep_only(&map);
                    return Ok(Arc::new(map));
                }
                // An error response says more than a failed connection.
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

    /// The servers of the last map and the seeds.
    fn known(&self) -> HashSet<Address> {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.keys().chain(&self.seeds).cloned().collect()
    }

    /// Keeps endpoints for exactly the servers of the map.
    fn keep_only(&self, map: &SlotMap) {
        for address in &map.servers {
            self.endpoint(address);
        }
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.retain(|address, _| map.servers.contains(address));
    }
}

impl SlotMap {
    pub(super) fn master(&self, slot: Slot) -> RedisResult<&Address> {
        let range = self.ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&slot));
        range.map(|(_, _, address)| address).ok_or_else(|| {
            let kind = ErrorKind::Server(ServerErrorKind::ClusterDown);
            (kind, "no server of the cluster has slot", slot.0.to_string()).into()
        })
    }

    /// Parses the response of the server `from` to `CLUSTER SLOTS`.
    fn parse(response: Value, from: &Address) -> RedisResult<SlotMap> {
        let mut map = SlotMap::default();
        for range in redis::from_redis_value::<Vec<Vec<Value>>>(response)? {
            let mut parts = range.into_iter();
            let mut number = || {
                parts.next().map(redis::from_redis_value::<u16>).transpose().map(Option::unwrap_or_default)
            };
            let (first, last) = (Slot(number()?), Slot(number()?));
            let servers = parts.map(|server| parse_server(server, from)).collect::<RedisResult<Vec<_>>>()?;
            if let Some(master) = servers.first() {
                map.ranges.push((first, last, master.clone()));
            }
            map.servers.extend(servers);
        }
        if map.ranges.is_empty() {
            let kind = ErrorKind::Server(ServerErrorKind::ClusterDown);
            return Err((kind, "the server reports no cluster slots", from.to_string()).into());
        }
        Ok(map)
    }
}

/// A server that does not know its own host name omits it; then it is the host that responded.
fn parse_server(server: Value, from: &Address) -> RedisResult<Address> {
    let mut parts = redis::from_redis_value::<Vec<Value>>(server)?.into_iter();
    let host = parts.next().map(redis::from_redis_value::<Option<String>>).transpose()?.flatten();
    let port = parts.next().map(redis::from_redis_value::<u16>).transpose()?.unwrap_or(from.port);
    let host = host.filter(|host| !host.is_empty() && host != "?").unwrap_or_else(|| from.host.clone());
    Ok(Address { host, port })
}

/// Another server that a response points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The slot has moved for good.
    Moved(Address),
    /// The slot is migrating; only this command goes there.
    Ask(Address),
}

impl Redirect {
    /// An omitted host means `from`, the server that responded.
    pub(super) fn of(error: &RedisError, from: &Address) -> Option<Redirect> {
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        let host = if host.is_empty() { &from.host } else { host };
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
    fn a_map_contains_masters_and_replicas() {
        let text = "*2\r\n*4\r\n:0\r\n:99\r\n*3\r\n$2\r\nh1\r\n:1\r\n$1\r\na\r\n*2\r\n$2\r\nh2\r\n:2\r\n\
                    *3\r\n:100\r\n:16383\r\n*2\r\n$-1\r\n:3\r\n";
        let map = SlotMap::parse(value(text), &address("seed", 9)).unwrap();
        assert_eq!(map.master(Slot(0)).unwrap(), &address("h1", 1));
        assert_eq!(map.master(Slot(99)).unwrap(), &address("h1", 1));
        assert_eq!(map.master(Slot(16_383)).unwrap(), &address("seed", 3));
        assert_eq!(map.servers.len(), 3);
    }

    #[test]
    fn an_unassigned_slot_means_that_the_cluster_is_down() {
        let map = SlotMap::parse(value("*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$1\r\nh\r\n:1\r\n"), &address("s", 1))
            .unwrap();
        assert_eq!(map.master(Slot(10)).unwrap_err().code(), Some("CLUSTERDOWN"));
        assert_eq!(
            SlotMap::parse(value("*0\r\n"), &address("s", 1)).unwrap_err().code(),
            Some("CLUSTERDOWN")
        );
    }

    #[test]
    fn redirects_are_parsed_with_and_without_a_host() {
        let error = |text: &str| value(text).extract_error().unwrap_err();
        let from = address("me", 1);
        assert_eq!(Redirect::of(&error("-MOVED 5 h:2\r\n"), &from), Some(Redirect::Moved(address("h", 2))));
        assert_eq!(Redirect::of(&error("-ASK 5 ::1:2\r\n"), &from), Some(Redirect::Ask(address("::1", 2))));
        assert_eq!(Redirect::of(&error("-MOVED 5 :2\r\n"), &from), Some(Redirect::Moved(address("me", 2))));
        assert_eq!(Redirect::of(&error("-OOM x\r\n"), &from), None);
    }
}
