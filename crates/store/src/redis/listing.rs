//! Conversations by the time of their last turn.

use super::RedisStore;
use super::error::store_error;
use super::keys::{INDEX, Part, key as key_of};
use super::script::DELIST;
use crate::store::Listing;
use crate::{ConversationKey, Head, StoreError};
use redis::{RedisResult, Value};
use tokio::task::JoinSet;

/// One page. Conversations that have expired leave the index when somebody looks: Redis drops their keys by itself, and
/// cannot drop their entries.
pub(super) async fn list(store: &RedisStore, offset: usize, limit: usize) -> Result<Listing, StoreError> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        let (page, total) = page(store, offset, limit).await.map_err(store_error)?;
        let heads = heads(store, &page).await?;
        let (alive, gone): (Vec<_>, Vec<_>) = heads.into_iter().partition(|(_, head)| head.is_some());
        let mut delist = DELIST.on(&[INDEX.to_owned()]);
        for ((key, at), _) in &gone {
            delist = delist.arg(&key.0[..]).arg(*at);
        }
        // A server that takes no writes can still be read, though the page then has gaps.
        if gone.is_empty() || rounds == MOST_ROUNDS || store.servers.run(&delist).await.is_err() {
            let conversations = alive.into_iter().filter_map(|((key, _), head)| Some((key, head?))).collect();
            return Ok(Listing { conversations, total: total.saturating_sub(gone.len()) });
        }
    }
}

/// How many pages of expired conversations are dropped before one with gaps is good enough.
const MOST_ROUNDS: usize = 64;

type Entry = (ConversationKey, u64);

async fn page(store: &RedisStore, offset: usize, limit: usize) -> RedisResult<(Vec<Entry>, usize)> {
    let mut size = redis::cmd("ZCARD");
    size.arg(INDEX);
    let total = store.ask(INDEX, &size).await?;
    if limit == 0 {
        return Ok((Vec::new(), total));
    }
    let mut range = redis::cmd("ZREVRANGE");
    range.arg(INDEX).arg(offset).arg(offset.saturating_add(limit - 1)).arg("WITHSCORES");
    let entries: Vec<(Vec<u8>, u64)> = store.ask(INDEX, &range).await?;
    let key = |(key, at): (Vec<u8>, u64)| Some((ConversationKey(key.try_into().ok()?), at));
    Ok((entries.into_iter().filter_map(key).collect(), total))
}

/// So many are asked for together: an answer of half a megabyte.
const TOGETHER: usize = 500;

/// In pieces that are asked for at once, so that the server looks for one while another is read.
async fn heads(store: &RedisStore, page: &[Entry]) -> Result<Vec<(Entry, Option<Head>)>, StoreError> {
    let mut reading = JoinSet::new();
    for (place, piece) in page.chunks(TOGETHER).enumerate() {
        let (store, piece) = (store.clone(), piece.to_vec());
        reading.spawn(async move { (place, some_heads(&store, &piece).await) });
    }
    let mut pieces = vec![Vec::new(); reading.len()];
    while let Some(read) = reading.join_next().await {
        let (place, heads) = read.map_err(|error| StoreError::Failed(error.to_string()))?;
        pieces[place] = heads?;
    }
    Ok(page.iter().copied().zip(pieces.into_iter().flatten()).collect())
}

async fn some_heads(store: &RedisStore, page: &[Entry]) -> Result<Vec<Option<Head>>, StoreError> {
    match heads_together(store, page).await {
        Some(heads) => heads,
        // A cluster has them on different servers, and a connection that broke is worth a second try.
        None => heads_one_by_one(store, page).await,
    }
}

async fn heads_together(store: &RedisStore, page: &[Entry]) -> Option<Result<Vec<Option<Head>>, StoreError>> {
    let mut commands = redis::pipe();
    for (key, _) in page {
        commands.cmd("HGETALL").arg(key_of(*key, Part::Head));
    }
    let answers = store.servers.ask_together(&commands).await?.ok()?;
    let read = |answer: Value| {
        let fields = answer.extract_error().and_then(|answer| Ok(redis::from_redis_value(answer)?));
        read_head(fields.map_err(store_error)?)
    };
    Some(answers.into_iter().map(read).collect())
}

/// All at once, each by itself.
async fn heads_one_by_one(store: &RedisStore, page: &[Entry]) -> Result<Vec<Option<Head>>, StoreError> {
    let mut reading = JoinSet::new();
    for (place, (key, _)) in page.iter().copied().enumerate() {
        let store = store.clone();
        reading.spawn(async move { (place, store.read(key, Part::Head).await) });
    }
    let mut heads = vec![None; page.len()];
    while let Some(read) = reading.join_next().await {
        let (place, fields) = read.map_err(|error| StoreError::Failed(error.to_string()))?;
        heads[place] = read_head(fields.map_err(store_error)?)?;
    }
    Ok(heads)
}

/// `l:` begins the name of a label and `c:` that of a counter.
pub(super) fn read_head(fields: Vec<(String, String)>) -> Result<Option<Head>, StoreError> {
    if fields.is_empty() {
        return Ok(None);
    }
    let mut head = Head::default();
    for (name, value) in fields {
        let number = || value.parse().map_err(|_| StoreError::Corrupt(format!("`{name}` of a conversation")));
        match name.split_at_checked(2) {
            Some(("l:", label)) => drop(head.labels.insert(label.to_owned(), value)),
            Some(("c:", counter)) => drop(head.counts.insert(counter.to_owned(), number()?)),
            _ if name == "first" => head.first = number()?,
            _ if name == "last" => head.last = number()?,
            // A later version may keep more.
            _ => {}
        }
    }
    Ok(Some(head))
}
