//! Servers that freeze, pause or crash, and come back.

use super::*;
use std::future::poll_fn;
use std::task::Poll;
use tidegate_testkit::{RedisServer, TcpProxy, Unreachable, until};
use tokio::time::timeout;

/// The ids of the connections whose last command belongs to a recall.
async fn recalling(server: &RedisServer) -> Vec<String> {
    let all = server.cli(&["client", "list"]).await;
    let ours = all
        .lines()
        .filter(|line| [" cmd=lrange ", " cmd=hgetall "].iter().any(|command| line.contains(command)));
    ours.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

#[tokio::test]
async fn a_frozen_server_blocks_no_request_and_is_used_again_after_it_thaws() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
    store.recall(key(1)).await.unwrap();
    let before = recalling(&server).await;
    server.freeze();
    for _ in 0..4 {
        let error = bounded(store.recall(key(1))).await.unwrap_err();
        assert!(matches!(error, StoreError::Timeout | StoreError::Unreachable(_)), "{error}");
    }
    server.thaw();
    let took = until_success(async || store.recall(key(1)).await).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints, [vec![1]]);
    // The old connection, with its late responses, is no longer used.
    let after = recalling(&server).await;
    assert!(after.iter().all(|id| !before.contains(id)), "{before:?} {after:?}");
}

#[tokio::test]
async fn a_connection_is_discarded_even_if_the_caller_times_out_first() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    store.recall(key(1)).await.unwrap();
    let before = recalling(&server).await;
    server.freeze();
    assert!(timeout(TIMEOUT * 3 / 4, store.recall(key(1))).await.is_err());
    server.thaw();
    store.recall(key(1)).await.unwrap();
    assert!(recalling(&server).await.iter().all(|id| !before.contains(id)));
}

#[tokio::test]
async fn a_cancelled_request_does_not_discard_the_connection() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    // On a busy machine, the first connection may be discarded before it is used.
    until("there is one connection", async || {
        store.recall(key(1)).await.is_ok() && recalling(&server).await.len() == 1
    })
    .await;
    let before = recalling(&server).await;
    for _ in 0..20 {
        let mut cancelled = store.recall(key(1));
        // Polled once, so that the command is sent.
        assert!(poll_fn(|context| Poll::Ready(cancelled.as_mut().poll(context))).await.is_pending());
    }
    store.recall(key(1)).await.unwrap();
    assert_eq!(recalling(&server).await, before);
    assert_eq!(before.len(), 1);
}

#[tokio::test]
async fn a_paused_server_times_out_and_recovers() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
    server.cli(&["client", "pause", "700", "all"]).await;
    let error = bounded(store.journal(key(1), Generation(0), journal(2))).await.unwrap_err();
    assert_eq!(error, StoreError::Timeout);
    let took = until_success(async || bounded(store.recall(key(1))).await).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_killed_server_fails_at_once_and_is_used_again_after_a_restart() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    store.probe().await.unwrap();
    server.kill();
    for _ in 0..3 {
        let error = bounded(store.recall(key(1))).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreachable(_)), "{error}");
    }
    server.restart().await;
    let took = until_success(async || store.count(key(1), Generation(0), turn(1)).await).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_restart_while_idle_fails_no_request() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    store.probe().await.unwrap();
    server.restart().await;
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints, [vec![1]]);
}

#[tokio::test]
async fn a_broken_connection_is_replaced() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    let load = Load::start(&store);
    load.succeeds().await;
    for _ in 0..5 {
        server.cli(&["client", "kill", "type", "normal"]).await;
        load.succeeds().await;
    }
    load.stop().await;
    // Nothing was counted twice, although some commands were sent twice.
    let head = store.head(key(0)).await.unwrap().unwrap();
    assert_eq!(head.counts["tokens"], 10 * store.turns(key(0)).await.unwrap().len() as u64);
}

#[tokio::test]
async fn an_unreachable_address_fails_fast_after_the_first_attempt() {
    let nowhere = Unreachable::start();
    let store = open(&format!("redis://{}", nowhere.address()));
    assert_eq!(bounded(store.recall(key(1))).await.unwrap_err(), StoreError::Timeout);
    // Once the attempt has failed, later operations fail at once for a while.
    let begun = Instant::now();
    loop {
        let error = bounded(store.probe()).await.unwrap_err();
        if matches!(error, StoreError::Unreachable(_)) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{error}");
    }
    let again = Instant::now();
    assert!(matches!(store.probe().await, Err(StoreError::Unreachable(_))));
    assert!(again.elapsed() < TIMEOUT / 2);
}

#[tokio::test]
async fn a_recall_takes_one_round_trip() {
    let server = RedisServer::start().await;
    let proxy = TcpProxy::start(([127, 0, 0, 1], server.port()).into()).await;
    let long_timeout = Duration::from_secs(10);
    let store = RedisStore::open(&format!("redis://{}", proxy.address()), HOUR, long_timeout).unwrap();
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
    store.fold(key(1), Generation(0), MessageId([1; 32]), "f".into()).await.unwrap();
    let delay = Duration::from_millis(200);
    proxy.delay(delay);
    let begun = Instant::now();
    let recollection = store.recall(key(1)).await.unwrap();
    let took = begun.elapsed();
    assert_eq!((recollection.waypoints.len(), recollection.folds.len()), (1, 1));
    // The proxy delays each direction, so a second round trip would take four delays.
    assert!((2 * delay..3 * delay).contains(&took), "{took:?}");
}
