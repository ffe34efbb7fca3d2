//! A store in Redis: one server, a master behind sentinels, or a cluster.
//!
//! Redis can lose acknowledged writes when a master fails, because replication is asynchronous. A conversation that loses its
//! newest waypoint is decided anew from there; nothing here relies on stronger guarantees.

mod cluster;
mod dial;
mod endpoint;
mod error;
mod facts;
mod folds;
mod keys;
mod lazy;
mod listing;
mod script;
mod sentinel;
mod servers;
mod tls;
mod url;

use crate::store::{FOLDS, Journal, Listing, MessageId, Recollection, Store, StoreFuture, Turn, WAYPOINTS};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use error::store_error;
use keys::{INDEX, PARTS, Part, Slot, key};
use redis::{Cmd, FromRedisValue, RedisResult};
use script::{ACQUIRE_LEASE, COUNT, ENLIST, FOLD, Invocation, JOURNAL, PIN, RELEASE_LEASE, Script};
use servers::Servers;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A [`Store`] in Redis. Clones share their connections.
#[derive(Clone, Debug)]
pub struct RedisStore {
    servers: Arc<Servers>,
    ttl: Duration,
    timeout: Duration,
    /// The key that this process writes to test whether writing works.
    probe_key: Arc<str>,
}

/// How many times longer than other operations listing, or reading a whole conversation, may take.
const BULK_TIMEOUT_FACTOR: u32 = 20;

/// The maximum amount added to a counter at once. Redis counters overflow at 2^63, which steps of this size do not reach in
/// practice. A larger amount is a bug of the caller.
const MAX_AMOUNT: u64 = 1 << 53;

impl RedisStore {
    /// Opens `redis://[user:password@]host[:port][/db]`, `rediss://…` for TLS, `redis+sentinel://…@host[:port],…/master[/db]`,
    /// `redis+cluster://…@host[:port],…`. Options: `tls=true` for sentinels and clusters; `ca=FILE` for a certificate authority
    /// that the system does not know; `cert=FILE&key=FILE` if the servers require client certificates; `sentinel_user` and
    /// `sentinel_password`.
    ///
    /// Does not connect yet. Operations fail if a server does not respond within `timeout`.
    pub fn open(url: &str, ttl: Duration, timeout: Duration) -> Result<RedisStore, StoreError> {
        let servers = Arc::new(Servers::new(url::parse(url)?, timeout)?);
        // Processes that share a probe key do not disturb each other, so this needs no better randomness.
        let suffix = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
        let probe_key = format!("tg:1:{{index}}:probe:{suffix:016x}").into();
        Ok(RedisStore { servers, ttl, timeout, probe_key })
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = RedisResult<T>>,
    ) -> Result<T, StoreError> {
        timeout(limit, work).await.map_err(|_| StoreError::Timeout)?.map_err(store_error)
    }

    async fn send<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> RedisResult<T> {
        Ok(redis::from_redis_value(self.servers.send(Slot::of(key), command).await?)?)
    }

    /// Reads a hash of a conversation.
    async fn read_hash<T: FromRedisValue>(&self, key: ConversationKey, part: Part) -> RedisResult<T> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("HGETALL");
        command.arg(&key);
        self.send(&key, &command).await
    }

    /// Reads a single value of a conversation.
    async fn read_value(&self, key: ConversationKey, part: Part) -> RedisResult<Option<Vec<u8>>> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("GET");
        command.arg(&key);
        self.send(&key, &command).await
    }

    /// Reads a list of a conversation.
    async fn read_list(&self, key: ConversationKey, part: Part) -> RedisResult<Vec<Vec<u8>>> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("LRANGE");
        command.arg(&key).arg(0).arg(-1);
        self.send(&key, &command).await
    }

    /// Runs a script that returns a boolean.
    async fn run_for_bool(&self, invocation: &Invocation) -> Result<bool, StoreError> {
        let run = async { Ok(redis::from_redis_value(self.servers.run(invocation).await?)?) };
        self.within(self.timeout, run).await
    }

    fn ttl(&self) -> u64 {
        milliseconds(self.ttl)
    }

    /// Adds a conversation to the index.
    fn enlist(&self, conversation: ConversationKey, at: u64) -> Invocation {
        let expired = i128::from(at) - i128::from(self.ttl());
        let enlist = ENLIST.on(&[INDEX.to_owned()]).arg(self.ttl()).arg(&conversation.0[..]);
        enlist.arg(at.min(MAX_AMOUNT)).arg(expired.to_string())
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(MAX_AMOUNT).clamp(1, MAX_AMOUNT)
}

/// Invokes a script with all keys of a conversation.
fn on(script: &'static Script, conversation: ConversationKey) -> Invocation {
    script.on(&PARTS.map(|part| key(conversation, part)))
}

impl Store for RedisStore {
    /// Sends several commands at once, which takes one round trip. A script could not read the keys while they migrate between
    /// the servers of a cluster.
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection> {
        Box::pin(async move {
            let all = async {
                let (pinned, waypoints, order, folds) = tokio::join!(
                    self.read_value(key, Part::Pin),
                    self.read_list(key, Part::Waypoints),
                    self.read_list(key, Part::FoldOrder),
                    self.read_hash(key, Part::Folds),
                );
                Ok((waypoints?, order?, folds?, pinned?))
            };
            let (waypoints, order, folds, pinned) = self.within(self.timeout, all).await?;
            let waypoints = waypoints.into_iter().map(Bytes::from).collect();
            let folds = folds::in_order(folds, &order);
            Ok(Recollection { waypoints, folds, pinned: pinned.map(Bytes::from) })
        })
    }

    fn journal(&self, key: ConversationKey, journal: Journal) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let waypoint = journal.waypoint.as_deref();
            let mut invocation = on(&JOURNAL, key)
                .arg(self.ttl())
                .arg(WAYPOINTS)
                .arg(u8::from(waypoint.is_some()))
                .arg(waypoint.unwrap_or_default());
            for (id, record) in &journal.messages {
                invocation = invocation.arg(&id.0[..]).arg(&record[..]);
            }
            self.within(self.timeout, self.servers.run(&invocation)).await.map(drop)
        })
    }

    fn fold(&self, key: ConversationKey, covers: MessageId, record: Bytes) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let invocation = on(&FOLD, key).arg(self.ttl()).arg(FOLDS).arg(&covers.0[..]).arg(&record[..]);
            self.run_for_bool(&invocation).await
        })
    }

    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let is_some = u8::from(record.is_some());
            let invocation =
                on(&PIN, key).arg(self.ttl()).arg(is_some).arg(record.as_deref().unwrap_or_default());
            self.within(self.timeout, self.servers.run(&invocation)).await.map(drop)
        })
    }

    fn claim(&self, key: ConversationKey, holder: [u8; 16], lease: Duration) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let invocation =
                ACQUIRE_LEASE.on(&[keys::key(key, Part::Lease)]).arg(&holder[..]).arg(milliseconds(lease));
            self.run_for_bool(&invocation).await
        })
    }

    fn release(&self, key: ConversationKey, holder: [u8; 16]) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let invocation = RELEASE_LEASE.on(&[keys::key(key, Part::Lease)]).arg(&holder[..]);
            self.within(self.timeout, self.servers.run(&invocation)).await.map(drop)
        })
    }

    fn count(&self, key: ConversationKey, turn: Turn) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let end = turn.end.as_ref().map_or(&[][..], |end| &end.0[..]);
            let mut invocation = on(&COUNT, key)
                .arg(self.ttl())
                .arg(&turn.id[..])
                .arg(&turn.record[..])
                .arg(turn.at.min(MAX_AMOUNT))
                .arg(end)
                .arg(turn.counts.len());
            for (name, amount) in &turn.counts {
                invocation = invocation.arg(*name).arg((*amount).min(MAX_AMOUNT));
            }
            for (name, value) in &turn.labels {
                invocation = invocation.arg(*name).arg(value);
            }
            // In a cluster the index may be on another server. If only that write fails, a retry of both repairs it.
            let enlist = self.enlist(key, turn.at);
            let both = async {
                self.servers.run(&invocation).await?;
                self.servers.run(&enlist).await
            };
            self.within(self.timeout, both).await.map(drop)
        })
    }

    fn head(&self, key: ConversationKey) -> StoreFuture<'_, Option<Head>> {
        Box::pin(async move {
            let fields = self.within(self.timeout, self.read_hash(key, Part::Head)).await?;
            listing::parse_head(fields)
        })
    }

    fn list(&self, offset: usize, limit: usize) -> StoreFuture<'_, Listing> {
        Box::pin(async move {
            let listing =
                timeout(self.timeout * BULK_TIMEOUT_FACTOR, listing::list(self, offset, limit)).await;
            listing.map_err(|_| StoreError::Timeout)?
        })
    }

    fn turns(&self, key: ConversationKey) -> StoreFuture<'_, Vec<Bytes>> {
        Box::pin(async move {
            let turns: Vec<(Vec<u8>, Vec<u8>)> =
                self.within(self.timeout * BULK_TIMEOUT_FACTOR, self.read_hash(key, Part::Turns)).await?;
            Ok(turns.into_iter().map(|(_, record)| record.into()).collect())
        })
    }

    fn messages(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        Box::pin(async move {
            let messages: Vec<(Vec<u8>, Vec<u8>)> =
                self.within(self.timeout * BULK_TIMEOUT_FACTOR, self.read_hash(key, Part::Messages)).await?;
            let parse = |(id, record): (Vec<u8>, Vec<u8>)| {
                let id = id
                    .try_into()
                    .map_err(|_| StoreError::Corrupt("a message id is not 32 bytes".to_owned()))?;
                Ok((MessageId(id), Bytes::from(record)))
            };
            messages.into_iter().map(parse).collect()
        })
    }

    fn delete(&self, key: ConversationKey) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let keys = PARTS.map(|part| keys::key(key, part));
            let mut delete = redis::cmd("DEL");
            delete.arg(&keys);
            let lease = keys::key(key, Part::Lease);
            let mut revoke = redis::cmd("DEL");
            revoke.arg(&lease);
            let mut delist = redis::cmd("ZREM");
            delist.arg(INDEX).arg(&key.0[..]);
            let all = async {
                let deleted: u64 = self.send(&keys[0], &delete).await?;
                self.send::<u64>(&lease, &revoke).await?;
                self.send::<u64>(INDEX, &delist).await?;
                Ok(deleted != 0)
            };
            self.within(self.timeout, all).await
        })
    }

    /// Writes to the server of the index, which every turn needs. Other masters of a cluster are not probed: one that is down
    /// affects only its own conversations.
    fn probe(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut command = redis::cmd("SET");
            command.arg(&*self.probe_key).arg(1).arg("PX").arg(10_000);
            self.within(self.timeout, self.send::<()>(&self.probe_key, &command)).await
        })
    }

    fn is_shared(&self) -> bool {
        true
    }
}
