//! Listing and searching ten thousand conversations is fast.

use super::ask::{api, json};
use super::scene::url;
use crate::support::cores::busy;
use crate::support::tidegate::{Setup, Tidegate};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidegate_context::{TurnRecord, encode_turn};
use tidegate_store::{ConversationKey, EmbeddedStore, Generation, RedisStore, Store, Turn, wall_clock};
use tidegate_testkit::{MockUpstream, RedisServer};
use tokio::task::JoinSet;

const MANY: u32 = 10_000;

/// The longest acceptable median.
const LIMIT: Duration = Duration::from_millis(100);

async fn fill(store: Arc<dyn Store>) {
    let mut writing = JoinSet::new();
    for number in 0..MANY {
        let store = store.clone();
        writing.spawn(async move {
            let mut key = [0; 16];
            key[..4].copy_from_slice(&number.to_be_bytes());
            let at = wall_clock() - u64::from(MANY - number);
            let model = if number % 4 == 0 { "gpt-4o" } else { "gpt-5" };
            let label = |name, value: &str| (name, value.to_owned());
            let turn = Turn {
                id: u128::from(number).to_be_bytes(),
                end: None,
                at,
                record: encode_turn(&TurnRecord { at, ..TurnRecord::default() }),
                counts: vec![("tokens_before", 900), ("tokens_after", 400), ("cost_nanousd", 5)],
                labels: vec![
                    label("name", &format!("build-{number}")),
                    label("tenant", "3c0b2f6376813966"),
                    label("route", "default"),
                    label("model", model),
                    label("strategy", "masking"),
                    label("stop_hint", if number % 1_000 == 0 { "4" } else { "" }),
                ],
            };
            store.count(ConversationKey(key), Generation(0), turn).await.unwrap();
        });
    }
    while let Some(written) = writing.join_next().await {
        written.unwrap();
    }
}

/// The median time of a request.
async fn median_time(tidegate: &Tidegate, target: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..9 {
        let began = Instant::now();
        let reply = api(tidegate.admin, "GET", target, &[]).await;
        times.push(began.elapsed());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    times.sort();
    times[times.len() / 2]
}

async fn assert_lists_quickly(tidegate: &Tidegate) {
    let page = json(tidegate, "/api/conversations").await;
    assert_eq!((&page["total"], &page["scanned"]), (&MANY.into(), &50.into()), "more is read than shown");
    assert_eq!(page["conversations"][0]["name"], "build-9999");
    let found = json(tidegate, "/api/conversations?search=BUILD-123%20gpt-5").await;
    let names: Vec<&str> =
        found["conversations"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "build-1239",
            "build-1238",
            "build-1237",
            "build-1235",
            "build-1234",
            "build-1233",
            "build-1231",
            "build-1230",
            "build-123"
        ]
    );
    let hinted =
        json(tidegate, "/api/conversations?hint=1&model=gpt-4o&strategy=masking&route=default").await;
    assert_eq!(
        (hinted["conversations"].as_array().unwrap().len(), &hinted["conversations"][0]["stop_hint"]),
        (10, &4.into())
    );
    for target in ["/api/conversations", "/api/conversations?offset=9900&limit=100"] {
        let time = median_time(tidegate, target).await;
        assert!(time < LIMIT, "{target} median_time {time:?}");
    }
}

#[tokio::test]
async fn ten_thousand_conversations_in_a_directory_are_listed_quickly() {
    let _busy = busy().await;
    let (upstream, data) = (MockUpstream::start().await, TempDir::new().unwrap());
    let store: Arc<dyn Store> =
        Arc::new(EmbeddedStore::open(data.path(), Duration::from_secs(3_600)).unwrap());
    fill(store).await;
    let setup = Setup::new("").upstream(&upstream.url()).env("TIDEGATE_STORE", &url(&data));
    assert_lists_quickly(&setup.start().await).await;
}

#[tokio::test]
async fn ten_thousand_conversations_in_redis_are_listed_quickly() {
    let _busy = busy().await;
    let (upstream, server) = (MockUpstream::start().await, RedisServer::start().await);
    let (ttl, timeout) = (Duration::from_secs(3_600), Duration::from_secs(60));
    fill(Arc::new(RedisStore::open(&server.url(), ttl, timeout).unwrap())).await;
    let setup = Setup::new("").upstream(&upstream.url()).env("TIDEGATE_STORE", &server.url());
    assert_lists_quickly(&setup.start().await).await;
}
