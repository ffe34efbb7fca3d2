//! Conversations in Redis: one server, a master behind sentinels, or a cluster.
//!
//! What Redis acknowledges can be lost when a master fails, because its replicas follow it with a delay. A conversation that
//! loses its newest waypoint is decided anew from there; nothing here relies on more.

mod cluster;
mod dial;
mod error;
mod folds;
mod keys;
mod lazy;
mod line;
mod listing;
mod script;
mod sentinel;
mod servers;
mod tls;
mod url;

use crate::store::{Answer, FOLDS, Journal, Listing, MessageId, Recollection, Store, Turn, WAYPOINTS};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use error::store_error;
use keys::{INDEX, PARTS, Part, Slot, key};
use redis::{Cmd, FromRedisValue, RedisResult};
use script::{CLAIM, COUNT, ENLIST, FOLD, Invocation, JOURNAL, PIN, RELEASE, Script};
use servers::Servers;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Cheap to clone: all clones share their connections.
#[derive(Clone, Debug)]
pub struct RedisStore {
    servers: Arc<Servers>,
    ttl: Duration,
    timeout: Duration,
    /// Where this process tries whether writing works.
    probe: Arc<str>,
}

/// Reading a whole conversation may take this much longer than a waypoint or a count.
const WHOLE: u32 = 20;

/// A counter in Redis ends at 2^63. A share this small cannot get it there in practice, and an amount that is larger is an
/// error of whoever counted.
const MOST: u64 = 1 << 53;

impl RedisStore {
    /// `redis://[user:password@]host[:port][/db]`, `rediss://…` for TLS, `redis+sentinel://…@host[:port],…/master[/db]`,
    /// `redis+cluster://…@host[:port],…`. Options: `tls=true` for sentinels and clusters; `ca=FILE` for a certificate authority
    /// that the system does not know; `cert=FILE&key=FILE` where servers ask for a certificate; `sentinel_user` and
    /// `sentinel_password`.
    ///
    /// Connects to nothing yet. What a server does not answer within `timeout` fails.
    pub fn open(url: &str, ttl: Duration, timeout: Duration) -> Result<RedisStore, StoreError> {
        let servers = Arc::new(Servers::new(url::parse(url)?, timeout)?);
        // Two processes that try the same key would still both learn the truth, so this needs no better randomness.
        let mark = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
        let probe = format!("tg:1:{{index}}:probe:{mark:016x}").into();
        Ok(RedisStore { servers, ttl, timeout, probe })
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = RedisResult<T>>,
    ) -> Result<T, StoreError> {
        timeout(limit, work).await.map_err(|_| StoreError::Timeout)?.map_err(store_error)
    }

    async fn ask<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> RedisResult<T> {
        Ok(redis::from_redis_value(self.servers.ask(Slot::of(key), command).await?)?)
    }

    /// The whole of one key that belongs to a conversation.
    async fn read<T: FromRedisValue>(&self, key: ConversationKey, part: Part) -> RedisResult<T> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("HGETALL");
        command.arg(&key);
        self.ask(&key, &command).await
    }

    /// A single value that belongs to a conversation.
    async fn read_value(&self, key: ConversationKey, part: Part) -> RedisResult<Option<Vec<u8>>> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("GET");
        command.arg(&key);
        self.ask(&key, &command).await
    }

    /// The whole of a list that belongs to a conversation.
    async fn read_list(&self, key: ConversationKey, part: Part) -> RedisResult<Vec<Vec<u8>>> {
        let key = keys::key(key, part);
        let mut command = redis::cmd("LRANGE");
        command.arg(&key).arg(0).arg(-1);
        self.ask(&key, &command).await
    }

    /// Whether a script says yes.
    async fn agrees(&self, invocation: &Invocation) -> Result<bool, StoreError> {
        let answer = async { Ok(redis::from_redis_value(self.servers.run(invocation).await?)?) };
        self.within(self.timeout, answer).await
    }

    fn ttl(&self) -> u64 {
        milliseconds(self.ttl)
    }

    fn enlist(&self, conversation: ConversationKey, at: u64) -> Invocation {
        let over = i128::from(at) - i128::from(self.ttl());
        let enlist = ENLIST.on(&[INDEX.to_owned()]).arg(self.ttl()).arg(&conversation.0[..]);
        enlist.arg(at.min(MOST)).arg(over.to_string())
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(MOST).clamp(1, MOST)
}

/// A script on all keys of a conversation.
fn on(script: &'static Script, conversation: ConversationKey) -> Invocation {
    script.on(&PARTS.map(|part| key(conversation, part)))
}

impl Store for RedisStore {
    /// A few commands that leave together, so that it is one round trip. Not a script: that could not read while the keys are on
    /// their way from one server of a cluster to another.
    fn recall(&self, key: ConversationKey) -> Answer<'_, Recollection> {
        Box::pin(async move {
            let all = async {
                let (pinned, waypoints, order, folds) = tokio::join!(
                    self.read_value(key, Part::Pin),
                    self.read_list(key, Part::Waypoints),
                    self.read_list(key, Part::FoldOrder),
                    self.read(key, Part::Folds),
                );
                Ok((waypoints?, order?, folds?, pinned?))
            };
            let (waypoints, order, folds, pinned) = self.within(self.timeout, all).await?;
            let waypoints = waypoints.into_iter().map(Bytes::from).collect();
            let folds = folds::in_order(folds, &order);
            Ok(Recollection { waypoints, folds, pinned: pinned.map(Bytes::from) })
        })
    }

    fn journal(&self, key: ConversationKey, journal: Journal) -> Answer<'_, ()> {
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

    fn fold(&self, key: ConversationKey, covers: MessageId, record: Bytes) -> Answer<'_, bool> {
        Box::pin(async move {
            let invocation = on(&FOLD, key).arg(self.ttl()).arg(FOLDS).arg(&covers.0[..]).arg(&record[..]);
            self.agrees(&invocation).await
        })
    }

    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> Answer<'_, ()> {
        Box::pin(async move {
            let is_there = u8::from(record.is_some());
            let invocation =
                on(&PIN, key).arg(self.ttl()).arg(is_there).arg(record.as_deref().unwrap_or_default());
            self.within(self.timeout, self.servers.run(&invocation)).await.map(drop)
        })
    }

    fn claim(&self, key: ConversationKey, holder: [u8; 16], lease: Duration) -> Answer<'_, bool> {
        Box::pin(async move {
            let invocation =
                CLAIM.on(&[keys::key(key, Part::Claim)]).arg(&holder[..]).arg(milliseconds(lease));
            self.agrees(&invocation).await
        })
    }

    fn release(&self, key: ConversationKey, holder: [u8; 16]) -> Answer<'_, ()> {
        Box::pin(async move {
            let invocation = RELEASE.on(&[keys::key(key, Part::Claim)]).arg(&holder[..]);
            self.within(self.timeout, self.servers.run(&invocation)).await.map(drop)
        })
    }

    fn count(&self, key: ConversationKey, turn: Turn) -> Answer<'_, ()> {
        Box::pin(async move {
            let end = turn.end.as_ref().map_or(&[][..], |end| &end.0[..]);
            let mut invocation = on(&COUNT, key)
                .arg(self.ttl())
                .arg(&turn.id[..])
                .arg(&turn.record[..])
                .arg(turn.at.min(MOST))
                .arg(end)
                .arg(turn.counts.len());
            for (name, amount) in &turn.counts {
                invocation = invocation.arg(*name).arg((*amount).min(MOST));
            }
            for (name, value) in &turn.labels {
                invocation = invocation.arg(*name).arg(value);
            }
            // The index is elsewhere in a cluster. If only it fails, doing all of it again puts it right.
            let enlist = self.enlist(key, turn.at);
            let both = async {
                self.servers.run(&invocation).await?;
                self.servers.run(&enlist).await
            };
            self.within(self.timeout, both).await.map(drop)
        })
    }

    fn head(&self, key: ConversationKey) -> Answer<'_, Option<Head>> {
        Box::pin(async move {
            let fields = self.within(self.timeout, self.read(key, Part::Head)).await?;
            listing::read_head(fields)
        })
    }

    fn list(&self, offset: usize, limit: usize) -> Answer<'_, Listing> {
        Box::pin(async move {
            let listing = timeout(self.timeout * WHOLE, listing::list(self, offset, limit)).await;
            listing.map_err(|_| StoreError::Timeout)?
        })
    }

    fn turns(&self, key: ConversationKey) -> Answer<'_, Vec<Bytes>> {
        Box::pin(async move {
            let turns: Vec<(Vec<u8>, Vec<u8>)> =
                self.within(self.timeout * WHOLE, self.read(key, Part::Turns)).await?;
            Ok(turns.into_iter().map(|(_, record)| record.into()).collect())
        })
    }

    fn messages(&self, key: ConversationKey) -> Answer<'_, Vec<(MessageId, Bytes)>> {
        Box::pin(async move {
            let messages: Vec<(Vec<u8>, Vec<u8>)> =
                self.within(self.timeout * WHOLE, self.read(key, Part::Messages)).await?;
            let read = |(id, record): (Vec<u8>, Vec<u8>)| {
                let id = id.try_into().map_err(|_| StoreError::Corrupt("the id of a message".to_owned()))?;
                Ok((MessageId(id), Bytes::from(record)))
            };
            messages.into_iter().map(read).collect()
        })
    }

    fn delete(&self, key: ConversationKey) -> Answer<'_, bool> {
        Box::pin(async move {
            let keys = PARTS.map(|part| keys::key(key, part));
            let mut delete = redis::cmd("DEL");
            delete.arg(&keys);
            let claim = keys::key(key, Part::Claim);
            let mut unclaim = redis::cmd("DEL");
            unclaim.arg(&claim);
            let mut delist = redis::cmd("ZREM");
            delist.arg(INDEX).arg(&key.0[..]);
            let both = async {
                let deleted: u64 = self.ask(&keys[0], &delete).await?;
                self.ask::<u64>(&claim, &unclaim).await?;
                self.ask::<u64>(INDEX, &delist).await?;
                Ok(deleted != 0)
            };
            self.within(self.timeout, both).await
        })
    }

    /// Writes where the index is, which every turn needs. The other masters of a cluster are not tried: one that is down
    /// concerns its own conversations only.
    fn probe(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut command = redis::cmd("SET");
            command.arg(&*self.probe).arg(1).arg("PX").arg(10_000);
            self.within(self.timeout, self.ask::<()>(&self.probe, &command)).await
        })
    }

    fn is_shared(&self) -> bool {
        true
    }
}
