//! Servers that respond with errors or unexpected data.

use super::*;
use tidegate_store::{FoldWritten, Lease};
use tidegate_testkit::RedisServer;

#[tokio::test]
async fn a_full_server_can_still_be_read() {
    let server = RedisServer::with(&["maxmemory-policy noeviction"]).await;
    let store = open(&server.url());
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
    store.count(key(1), Generation(0), turn(1)).await.unwrap();
    server.cli(&["config", "set", "maxmemory", "1"]).await;
    for error in [
        store.journal(key(1), Generation(0), journal(2)).await.unwrap_err(),
        store.count(key(1), Generation(0), turn(2)).await.unwrap_err(),
        store.fold(key(1), Generation(0), MessageId([2; 32]), "f".into()).await.unwrap_err(),
        store.claim(key(1), Lease::Fold, [1; 16], HOUR).await.unwrap_err(),
        store.probe().await.unwrap_err(),
    ] {
        assert_eq!(error.reason(), "store_full", "{error}");
    }
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints, [vec![1]]);
    server.cli(&["config", "set", "maxmemory", "0"]).await;
    assert_eq!(store.recall(key(1)).await.unwrap().folds, Vec::<Vec<u8>>::new());
    // Refused writes left nothing behind.
    assert_eq!(store.messages(key(1)).await.unwrap().len(), 1);
    assert_eq!(store.turns(key(1)).await.unwrap().len(), 1);
    store.probe().await.unwrap();
}

#[tokio::test]
async fn a_replica_refuses_writes_until_it_is_promoted() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
    server.cli(&["replicaof", "127.0.0.1", "1"]).await;
    for error in [
        store.journal(key(1), Generation(0), journal(2)).await.unwrap_err(),
        store.count(key(1), Generation(0), turn(2)).await.unwrap_err(),
        store.delete(key(1), Generation(1)).await.unwrap_err(),
        store.fold(key(1), Generation(0), MessageId([2; 32]), "f".into()).await.unwrap_err(),
        store.claim(key(1), Lease::Fold, [1; 16], HOUR).await.unwrap_err(),
        store.probe().await.unwrap_err(),
    ] {
        assert_eq!(error.reason(), "store_readonly", "{error}");
    }
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints, [vec![1]]);
    server.cli(&["replicaof", "no", "one"]).await;
    store.journal(key(1), Generation(0), journal(2)).await.unwrap();
}

#[tokio::test]
async fn wrong_credentials_are_reported_but_not_quoted() {
    let server = RedisServer::with(&["user tide on >right ~tg:* +@all", "requirepass default-secret"]).await;
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port());
    for login in ["", "tide:hunter2@", "nobody:hunter2@", ":hunter2@"] {
        let error = open(&url(login)).recall(key(1)).await.unwrap_err();
        assert_eq!(error.reason(), "store_denied", "{login}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    for login in ["tide:right@", ":default-secret@"] {
        open(&url(login)).journal(key(1), Generation(0), journal(1)).await.unwrap();
    }
    assert!(!format!("{:?}", open(&url("tide:hunter2@"))).contains("hunter2"));
}

#[tokio::test]
async fn a_user_without_script_permission_is_denied() {
    let server = RedisServer::with(&["user tide on >pw ~tg:* +@all -@scripting"]).await;
    let store = open(&format!("redis://tide:pw@127.0.0.1:{}", server.port()));
    assert_eq!(store.journal(key(1), Generation(0), journal(1)).await.unwrap_err().reason(), "store_denied");
    store.recall(key(1)).await.unwrap();
}

#[tokio::test]
async fn an_untrusted_certificate_is_rejected() {
    let (server, other) = (RedisServer::with_tls(&[]).await, RedisServer::with_tls(&[]).await);
    open(&server.tls_url("")).probe().await.unwrap();
    let (_, trusted) = other.tls_url("").split_once('?').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let url = server.tls_url("").split('?').next().unwrap().to_owned();
    let error = bounded(open(&format!("{url}?{trusted}")).probe()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable(text) if text.contains("certificate")), "{error}");
    let missing = RedisStore::open("rediss://h?ca=/no/such/file.pem", HOUR, TIMEOUT).unwrap_err();
    assert!(missing.to_string().contains("/no/such/file.pem"), "{missing}");
}

#[tokio::test]
async fn unexpected_data_is_corrupt_and_affects_one_conversation() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    let name = |part: &str| format!("tg:1:{{{}}}:{part}", key(1));
    server.cli(&["set", &name("w"), "x"]).await;
    server.cli(&["hset", &name("m"), "short", "x"]).await;
    server.cli(&["hset", &name("h"), "c:turns", "many"]).await;
    server.cli(&["rpush", &name("t"), "x"]).await;
    server.cli(&["set", &name("f"), "x"]).await;
    server.cli(&["rpush", &name("c"), "x"]).await;
    for error in [
        store.recall(key(1)).await.unwrap_err(),
        store.journal(key(1), Generation(0), journal(1)).await.unwrap_err(),
        store.messages(key(1)).await.unwrap_err(),
        store.head(key(1)).await.unwrap_err(),
        store.turns(key(1)).await.unwrap_err(),
        store.count(key(1), Generation(0), turn(1)).await.unwrap_err(),
        store.fold(key(1), Generation(0), MessageId([1; 32]), "f".into()).await.unwrap_err(),
        store.claim(key(1), Lease::Fold, [1; 16], HOUR).await.unwrap_err(),
        store.release(key(1), Lease::Fold, [1; 16]).await.unwrap_err(),
    ] {
        assert_eq!(error.reason(), "store_corrupt", "{error}");
    }
    // A fold is not stored in part if one of its keys has another type.
    server.cli(&["del", &name("f")]).await;
    server.cli(&["set", &name("o"), "x"]).await;
    let error = store.fold(key(1), Generation(0), MessageId([1; 32]), "f".into()).await.unwrap_err();
    assert_eq!(error.reason(), "store_corrupt", "{error}");
    assert_eq!(server.cli(&["exists", &name("f")]).await, "0");
    store.journal(key(2), Generation(0), journal(1)).await.unwrap();
    // It can still be deleted.
    assert!(store.delete(key(1), Generation(1)).await.unwrap());
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
}

#[tokio::test]
async fn scripts_are_sent_again_after_a_flush() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    for number in 0..3 {
        server.cli(&["script", "flush"]).await;
        store.journal(key(1), Generation(0), journal(number)).await.unwrap();
        server.cli(&["script", "flush"]).await;
        store.count(key(1), Generation(0), turn(number)).await.unwrap();
        store.count(key(1), Generation(0), turn(number)).await.unwrap();
        server.cli(&["script", "flush"]).await;
        assert_eq!(
            store.fold(key(1), Generation(0), MessageId([number; 32]), "f".into()).await.unwrap(),
            FoldWritten::Stored
        );
        server.cli(&["script", "flush"]).await;
        assert!(store.claim(key(1), Lease::Fold, [number; 16], HOUR).await.unwrap());
        server.cli(&["script", "flush"]).await;
        store.release(key(1), Lease::Fold, [number; 16]).await.unwrap();
    }
    assert_eq!(store.head(key(1)).await.unwrap().unwrap().counts["requests"], 3);
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints.len(), 3);
}

#[tokio::test]
async fn expired_conversations_are_removed_from_the_index_and_leave_no_gaps() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    for number in 0..20 {
        store.count(key(number), Generation(0), turn(number)).await.unwrap();
    }
    // The newest ten expire.
    for number in 10..20 {
        server.cli(&["del", &format!("tg:1:{{{}}}:h", key(number))]).await;
    }
    let listing = store.list(0, 5).await.unwrap();
    let listed: Vec<ConversationKey> = listing.conversations.iter().map(|(key, _)| *key).collect();
    assert_eq!(listed, [key(9), key(8), key(7), key(6), key(5)]);
    assert_eq!(listing.total, 10);
    assert_eq!(server.cli(&["zcard", "tg:1:{index}:conversations"]).await, "10");
    assert_eq!(store.list(0, 0).await.unwrap().total, 10);
}

#[tokio::test]
async fn the_index_drops_entries_older_than_the_time_to_live() {
    let server = RedisServer::start().await;
    let store = RedisStore::open(&server.url(), HOUR, TIMEOUT).unwrap();
    store.count(key(1), Generation(0), turn(1)).await.unwrap();
    let hour = u64::try_from(HOUR.as_millis()).unwrap();
    store.count(key(2), Generation(0), Turn { at: turn(1).at + hour, ..turn(2) }).await.unwrap();
    assert_eq!(server.cli(&["zcard", "tg:1:{index}:conversations"]).await, "1");
}

#[tokio::test]
async fn folds_survive_the_eviction_of_one_of_their_keys() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    let name = |part: &str| format!("tg:1:{{{}}}:{part}", key(1));
    let fold = async |number: u8| {
        store.fold(key(1), Generation(0), MessageId([number; 32]), vec![number].into()).await
    };
    for number in [2, 1] {
        assert_eq!(fold(number).await.unwrap(), FoldWritten::Stored);
    }
    // Without their order they are all returned, and a new one is the newest.
    server.cli(&["del", &name("o")]).await;
    assert_eq!(fold(0).await.unwrap(), FoldWritten::Stored);
    assert_eq!(store.recall(key(1)).await.unwrap().folds, [vec![1], vec![2], vec![0]]);
    // Without the folds, their order does no harm and does not grow.
    server.cli(&["del", &name("f")]).await;
    assert_eq!(store.recall(key(1)).await.unwrap().folds, Vec::<Vec<u8>>::new());
    for number in [0, 5] {
        assert_eq!(fold(number).await.unwrap(), FoldWritten::Stored);
    }
    assert_eq!(store.recall(key(1)).await.unwrap().folds, [vec![0], vec![5]]);
    assert_eq!(server.cli(&["llen", &name("o")]).await, "2");
}
