//! Facts that belong to no conversation.

use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_store::{Store, wall_clock};
use tokio::time::{Instant, interval};

pub(crate) async fn everything(store: &dyn Store) {
    let (here, there) = (topic(), topic());
    assert_eq!(store.published(here.clone()).await.unwrap(), []);
    let publish = async |topic: &String, name: &str, fact: &'static [u8]| {
        store.publish(topic.clone(), name.to_owned(), Bytes::from_static(fact)).await.unwrap();
    };
    publish(&here, "a model/of: any name", b"8192").await;
    publish(&here, "other", b"\x00\xff").await;
    publish(&there, "other", b"elsewhere").await;
    // The last write wins.
    publish(&here, "a model/of: any name", b"4096").await;
    let mut facts = store.published(here.clone()).await.unwrap();
    facts.sort();
    let expected = [("a model/of: any name", &b"4096"[..]), ("other", b"\x00\xff")];
    assert_eq!(facts, expected.map(|(name, fact)| (name.to_owned(), Bytes::from_static(fact))));
    // A topic whose name begins like another's is another.
    assert_eq!(store.published(format!("{here}x")).await.unwrap(), []);
    publish(&format!("{here}x"), "a", b"1").await;
    for _ in 0..2 {
        store.forget(here.clone()).await.unwrap();
    }
    assert_eq!(store.published(here.clone()).await.unwrap(), []);
    assert_eq!(store.published(format!("{here}x")).await.unwrap().len(), 1);
    assert_eq!(store.published(there).await.unwrap().len(), 1);
}

pub(crate) async fn facts_expire(store: &dyn Store) {
    let topic = topic();
    store.publish(topic.clone(), "a".to_owned(), Bytes::from_static(b"1")).await.unwrap();
    assert_eq!(store.published(topic.clone()).await.unwrap().len(), 1);
    let mut polls = interval(Duration::from_millis(50));
    let deadline = Instant::now() + Duration::from_secs(10);
    while !store.published(topic.clone()).await.unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the fact did not expire");
        polls.tick().await;
    }
}

/// A topic that no other check uses.
fn topic() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("test:{}:{}:{}", std::process::id(), wall_clock(), NEXT.fetch_add(1, Ordering::Relaxed))
}
