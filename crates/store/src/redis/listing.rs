//! Lists conversations by the time of their last turn.

use super::RedisStore;
use super::error::store_error;
use super::keys::{INDEX, Part, key as key_of};
use super::script::DELIST;
use crate::store::Listing;
use crate::{ConversationKey, Head, StoreError};
use redis::{RedisResult, Value};
use tokio::task::JoinSet;

/// Reads one page. Expired conversations are removed from the index here: Redis expires their keys by itself, but not their index
/// entries.
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
        // A read-only server can still be listed, although the page then has gaps.
        if gone.is_empty() || rounds == MAX_ROUNDS || store.servers.run(&delist).await.is_err() {
            let conversations = alive.into_iter().filter_map(|((key, _), head)| Some((key, head?))).collect();
            return Ok(Listing { conversations, total: total.saturating_sub(gone.len()) });
        }
    }
}

/// The number of times that a page is read again to fill the gaps of expired conversations.
const MAX_ROUNDS: usize = 64;

type Entry = (ConversationKey, u64);

async fn page(store: &RedisStore, offset: usize, limit: usize) -> RedisResult<(Vec<Entry>, usize)> {
    let mut size = redis::cmd("ZCARD");
    size.arg(INDEX);
    let total = store.send(INDEX, &size).await?;
    if limit == 0 {
        return Ok((Vec::new(), total));
    }
    let mut range = redis::cmd("ZREVRANGE");
    range.arg(INDEX).arg(offset).arg(offset.saturating_add(limit - 1)).arg("WITHSCORES");
    let entries: Vec<(Vec<u8>, u64)> = store.send(INDEX, &range).await?;
    let key = |(key, at): (Vec<u8>, u64)| Some((ConversationKey(key.try_into().ok()?), at));
    Ok((entries.into_iter().filter_map(key).collect(), total))
}

/// The number of heads in one pipeline: a response of about half a megabyte.
const PIPELINE_HEADS: usize = 500;

/// Reads the heads of a page in concurrent pipelines, so that the server works on one while another is parsed.
async fn heads(store: &RedisStore, page: &[Entry]) -> Result<Vec<(Entry, Option<Head>)>, StoreError> {
    let mut reading = JoinSet::new();
    for (index, chunk) in page.chunks(PIPELINE_HEADS).enumerate() {
        let (store, chunk) = (store.clone(), chunk.to_vec());
        reading.spawn(async move { (index, chunk_of_heads(&store, &chunk).await) });
    }
    let mut chunks = vec![Vec::new(); reading.len()];
    while let Some(read) = reading.join_next().await {
        let (index, heads) = read.map_err(|error| StoreError::Failed(error.to_string()))?;
        chunks[index] = heads?;
    }
    Ok(page.iter().copied().zip(chunks.into_iter().flatten()).collect())
}

async fn chunk_of_heads(store: &RedisStore, page: &[Entry]) -> Result<Vec<Option<Head>>, StoreError> {
    match pipelined_heads(store, page).await {
        Some(heads) => heads,
        // In a cluster they are on different servers. A broken connection is worth a retry.
        None => concurrent_heads(store, page).await,
    }
}

async fn pipelined_heads(
    store: &RedisStore,
    page: &[Entry],
) -> Option<Result<Vec<Option<Head>>, StoreError>> {
    let mut commands = redis::pipe();
    for (key, _) in page {
        commands.cmd("HGETALL").arg(key_of(*key, Part::Head));
    }
    let responses = store.servers.send_pipeline(&commands).await?.ok()?;
    let parse = |response: Value| {
        let fields = response.extract_error().and_then(|response| Ok(redis::from_redis_value(response)?));
        parse_head(fields.map_err(store_error)?)
    };
    Some(responses.into_iter().map(parse).collect())
}

/// Reads each head with a command of its own, all concurrently.
async fn concurrent_heads(store: &RedisStore, page: &[Entry]) -> Result<Vec<Option<Head>>, StoreError> {
    let mut reading = JoinSet::new();
    for (index, (key, _)) in page.iter().copied().enumerate() {
        let store = store.clone();
        reading.spawn(async move { (index, store.read_hash(key, Part::Head).await) });
    }
    let mut heads = vec![None; page.len()];
    while let Some(read) = reading.join_next().await {
        let (index, fields) = read.map_err(|error| StoreError::Failed(error.to_string()))?;
        heads[index] = parse_head(fields.map_err(store_error)?)?;
    }
    Ok(heads)
}

/// Parses the fields of a head. Labels have the prefix `l:`, counters `c:`.
pub(super) fn parse_head(fields: Vec<(String, String)>) -> Result<Option<Head>, StoreError> {
    if fields.is_empty() {
        return Ok(None);
    }
    let mut head = Head::default();
    for (name, value) in fields {
        let number = || {
            value.parse().map_err(|_| {
                StoreError::Corrupt(format!("the field `{name}` of a conversation is not a number"))
            })
        };
        match name.split_at_checked(2) {
            Some(("l:", label)) => drop(head.labels.insert(label.to_owned(), value)),
            Some(("c:", counter)) => drop(head.counts.insert(counter.to_owned(), number()?)),
            _ if name == "first" => head.first = number()?,
            _ if name == "last" => head.last = number()?,
            // Newer versions may store more.
            _ => {}
        }
    }
    Ok(Some(head))
}
