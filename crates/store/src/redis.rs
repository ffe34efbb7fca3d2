//! A store in Redis: one server, a master behind sentinels, or a cluster.
//!
//! Redis can lose acknowledged writes when a master fails, because replication is asynchronous. A conversation that loses its
//! newest waypoint is decided anew from there; nothing here relies on stronger guarantees.

mod cluster;
mod dial;
mod endpoint;
mod error;
mod exchanges;
mod facts;
mod folds;
mod keys;
mod lazy;
mod leases;
mod listing;
mod script;
mod sentinel;
mod servers;
mod tls;
mod url;

use crate::store::{
    Append, Appended, Delivery, FOLDS, FoldWritten, Generation, Journal, Lease, Listing, LogRead, MessageId,
    Recollection, Store, StoreFuture, TOMBSTONE_LIFE, Turn, WAYPOINTS, Written,
};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use error::store_error;
use keys::{INDEX, PARTS, Part, Slot, key};
use leases::Acquire;
use redis::{Cmd, FromRedisValue, RedisResult};
use script::{APPEND, COUNT, DELETE, ENLIST, FOLD, Invocation, JOURNAL, NOTE_DELIVERY, PIN, Script};
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

    /// Reads records of a conversation, each by its message.
    async fn by_message(
        &self,
        key: ConversationKey,
        part: Part,
    ) -> Result<Vec<(MessageId, Bytes)>, StoreError> {
        let limit = self.timeout * BULK_TIMEOUT_FACTOR;
        let records: Vec<(Vec<u8>, Vec<u8>)> = self.within(limit, self.read_hash(key, part)).await?;
        let parse = |(id, record): (Vec<u8>, Vec<u8>)| {
            let id =
                id.try_into().map_err(|_| StoreError::Corrupt("a message id is not 32 bytes".to_owned()))?;
            Ok((MessageId(id), Bytes::from(record)))
        };
        records.into_iter().map(parse).collect()
    }

    /// Reads a single value of a conversation.
    async fn read_value(&self, key: ConversationKey, part: Part) -> RedisResult<Option<Vec<u8>>> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("GET");
        command.arg(&key);
        self.send(&key, &command).await
    }

    /// Reads a list of a conversation, from its `from`-th entry on.
    async fn read_list(&self, key: ConversationKey, part: Part, from: usize) -> RedisResult<Vec<Vec<u8>>> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("LRANGE");
        command.arg(&key).arg(from).arg(-1);
        self.send(&key, &command).await
    }

    async fn read_generation(&self, key: ConversationKey) -> RedisResult<Generation> {
        let key = keys::key(key, Part::Generation);
        let mut command = redis::cmd("GET");
        command.arg(&key);
        let generation: Option<u64> = self.send(&key, &command).await?;
        Ok(Generation(generation.unwrap_or_default()))
    }

    /// Runs a script that returns a number.
    async fn run(&self, invocation: &Invocation) -> Result<i64, StoreError> {
        let run = async { Ok(redis::from_redis_value(self.servers.run(invocation).await?)?) };
        self.within(self.timeout, run).await
    }

    /// Invokes a script with all keys of a conversation.
    fn on(&self, script: &'static Script, conversation: ConversationKey) -> Invocation {
        let keys = PARTS.map(|part| key(conversation, part));
        script.on(&keys).arg(self.ttl()).arg(self.tombstone_ttl())
    }

    fn tombstone_ttl(&self) -> u64 {
        milliseconds(self.ttl.max(TOMBSTONE_LIFE))
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

/// What a script says that returns a negative number if the conversation was deleted.
fn written(returned: i64) -> Written {
    if returned < 0 { Written::Gone } else { Written::Done }
}

impl Store for RedisStore {
    /// Sends several commands at once, which takes one round trip. A script could not read the keys while they migrate between
    /// the servers of a cluster.
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection> {
        Box::pin(async move {
            let all = async {
                // The generation first: if the conversation is deleted meanwhile, it is the old one, whose writes have no effect.
                let (generation, pinned, waypoints, order, folds) = tokio::join!(
                    self.read_generation(key),
                    self.read_value(key, Part::Pin),
                    self.read_list(key, Part::Waypoints, 0),
                    self.read_list(key, Part::FoldOrder, 0),
                    self.read_hash(key, Part::Folds),
                );
                Ok((generation?, waypoints?, order?, folds?, pinned?))
            };
            let (generation, waypoints, order, folds, pinned) = self.within(self.timeout, all).await?;
            let waypoints = waypoints.into_iter().map(Bytes::from).collect();
            let folds = folds::in_order(folds, &order);
            Ok(Recollection { generation, waypoints, folds, pinned: pinned.map(Bytes::from) })
        })
    }

    fn journal(
        &self,
        key: ConversationKey,
        generation: Generation,
        journal: Journal,
    ) -> StoreFuture<'_, Written> {
        Box::pin(async move {
            let waypoint = journal.waypoint.as_deref();
            let mut invocation = self
                .on(&JOURNAL, key)
                .arg(generation.0)
                .arg(WAYPOINTS)
                .arg(u8::from(waypoint.is_some()))
                .arg(waypoint.unwrap_or_default());
            for (id, record) in &journal.messages {
                invocation = invocation.arg(&id.0[..]).arg(&record[..]);
            }
            self.run(&invocation).await.map(written)
        })
    }

    fn fold(
        &self,
        key: ConversationKey,
        generation: Generation,
        covers: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, FoldWritten> {
        Box::pin(async move {
            let invocation = self.on(&FOLD, key).arg(generation.0);
            let invocation = invocation.arg(FOLDS).arg(&covers.0[..]).arg(&record[..]);
            Ok(match self.run(&invocation).await? {
                ..0 => FoldWritten::Gone,
                0 => FoldWritten::Other,
                1.. => FoldWritten::Stored,
            })
        })
    }

    /// Not atomic, for the same reason as `recall`. Callers hold the lease on the turn, and compare the turns with the head.
    fn log(&self, key: ConversationKey, from: usize) -> StoreFuture<'_, LogRead> {
        Box::pin(async move {
            let all = async {
                let (generation, head, undelivered, turns) = tokio::join!(
                    self.read_generation(key),
                    self.read_value(key, Part::LogHead),
                    self.read_value(key, Part::Undelivered),
                    self.read_list(key, Part::Log, from),
                );
                Ok((generation?, head?, undelivered?, turns?))
            };
            let (generation, head, undelivered, turns) =
                self.within(self.timeout * BULK_TIMEOUT_FACTOR, all).await?;
            let is_undelivered = head.is_some() && head == undelivered;
            let head = head.map(|head| head.try_into().map(MessageId)).transpose();
            let head =
                head.map_err(|_| StoreError::Corrupt("the head of a log is not 32 bytes".to_owned()))?;
            let turns = turns.into_iter().map(Bytes::from).collect();
            Ok(LogRead { generation, head, is_undelivered, turns })
        })
    }

    fn append(
        &self,
        key: ConversationKey,
        generation: Generation,
        append: Append,
    ) -> StoreFuture<'_, Appended> {
        Box::pin(async move {
            let (expected, waypoint) = (append.expected.map(|head| head.0), append.waypoint.as_deref());
            let mut invocation = self
                .on(&APPEND, key)
                .arg(generation.0)
                .arg(expected.as_ref().map_or(&[][..], |head| &head[..]))
                .arg(&append.head.0[..])
                .arg(u8::from(append.replaces))
                .arg(&append.record[..])
                .arg(WAYPOINTS)
                .arg(u8::from(waypoint.is_some()))
                .arg(waypoint.unwrap_or_default());
            for (id, record) in &append.messages {
                invocation = invocation.arg(&id.0[..]).arg(&record[..]);
            }
            Ok(match self.run(&invocation).await? {
                ..0 => Appended::Gone,
                0 => Appended::Conflict,
                1.. => Appended::Done,
            })
        })
    }

    fn note_delivery(
        &self,
        key: ConversationKey,
        generation: Generation,
        head: MessageId,
        delivery: Delivery,
    ) -> StoreFuture<'_, Written> {
        Box::pin(async move {
            let is_undelivered = u8::from(delivery == Delivery::Undelivered);
            let invocation = self.on(&NOTE_DELIVERY, key).arg(generation.0).arg(&head.0[..]);
            let invocation = invocation.arg(is_undelivered);
            self.run(&invocation).await.map(written)
        })
    }

    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let is_some = u8::from(record.is_some());
            let invocation = self.on(&PIN, key).arg(is_some).arg(record.as_deref().unwrap_or_default());
            self.run(&invocation).await.map(drop)
        })
    }

    fn claim(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        Box::pin(self.acquire_lease(key, lease, holder, duration, Acquire::Any))
    }

    fn renew(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        Box::pin(self.acquire_lease(key, lease, holder, duration, Acquire::Own))
    }

    fn release(&self, key: ConversationKey, lease: Lease, holder: [u8; 16]) -> StoreFuture<'_, ()> {
        Box::pin(self.release_lease(key, lease, holder))
    }

    fn count(&self, key: ConversationKey, generation: Generation, turn: Turn) -> StoreFuture<'_, Written> {
        self.conclude(key, generation, turn, Vec::new())
    }

    fn conclude(
        &self,
        key: ConversationKey,
        generation: Generation,
        turn: Turn,
        messages: Vec<(MessageId, Bytes)>,
    ) -> StoreFuture<'_, Written> {
        Box::pin(async move {
            let end = turn.end.as_ref().map_or(&[][..], |end| &end.0[..]);
            let mut invocation = self
                .on(&COUNT, key)
                .arg(generation.0)
                .arg(&turn.id[..])
                .arg(&turn.record[..])
                .arg(turn.at.min(MAX_AMOUNT))
                .arg(end)
                .arg(turn.counts.len())
                .arg(turn.labels.len());
            for (name, amount) in &turn.counts {
                invocation = invocation.arg(*name).arg((*amount).min(MAX_AMOUNT));
            }
            for (name, value) in &turn.labels {
                invocation = invocation.arg(*name).arg(value);
            }
            for (id, record) in &messages {
                invocation = invocation.arg(&id.0[..]).arg(&record[..]);
            }
            // In a cluster the index may be on another server. If only that write fails, a retry of both repairs it.
            let enlist = self.enlist(key, turn.at);
            let both = async {
                let counted = written(redis::from_redis_value(self.servers.run(&invocation).await?)?);
                if counted == Written::Done {
                    self.servers.run(&enlist).await?;
                }
                Ok(counted)
            };
            self.within(self.timeout, both).await
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
        Box::pin(async move { self.by_message(key, Part::Messages).await })
    }

    fn delete(&self, key: ConversationKey, next: Generation) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let keys = PARTS.map(|part| keys::key(key, part));
            let delete = DELETE.on(&keys).arg(self.tombstone_ttl()).arg(next.0);
            let leases = [Part::FoldLease, Part::TurnLease].map(|part| keys::key(key, part));
            let mut revoke = redis::cmd("DEL");
            revoke.arg(&leases);
            let mut delist = redis::cmd("ZREM");
            delist.arg(INDEX).arg(&key.0[..]);
            let all = async {
                let deleted: u64 = redis::from_redis_value(self.servers.run(&delete).await?)?;
                self.send::<u64>(&leases[0], &revoke).await?;
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
