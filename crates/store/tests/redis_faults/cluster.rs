//! Failing masters of a cluster, and migrating slots.

use super::*;
use tidegate_testkit::RedisCluster;

/// The maximum time from the promotion until requests succeed.
const FAILOVER_BOUND: Duration = Duration::from_secs(2);

fn name(number: u8, part: &str) -> String {
    format!("tg:1:{{{}}}:{part}", key(number))
}

#[tokio::test]
async fn conversations_are_distributed_over_all_masters() {
    let cluster = RedisCluster::start().await;
    let store = open(&cluster.url());
    let mut masters = std::collections::BTreeSet::new();
    for number in 0..24 {
        store.journal(key(number), Generation(0), journal(1)).await.unwrap();
        let master = cluster.master_of(&name(number, "w")).await;
        assert_eq!(master.cli(&["llen", &name(number, "w")]).await, "1");
        masters.insert(master.port());
        store.count(key(number), Generation(0), turn(number)).await.unwrap();
    }
    assert_eq!(masters.len(), 3);
    let listing = store.list(0, 24).await.unwrap();
    assert_eq!((listing.conversations.len(), listing.total), (24, 24));
    assert_eq!(listing.conversations[0].0, key(23));
}

#[tokio::test]
async fn requests_reach_the_new_master_soon_after_the_old_one_is_killed() {
    let cluster = RedisCluster::start().await;
    let store = open(&cluster.url());
    let load = Load::start(&store);
    load.succeeds().await;
    let old = cluster.kill_master_of(&name(0, "w")).await;
    cluster.wait_promotion(&name(0, "w"), old).await;
    let took = until_success(async || bounded(store.journal(key(0), Generation(0), journal(1))).await).await;
    assert!(took < FAILOVER_BOUND, "{took:?}");
    let took = load.succeeds().await;
    assert!(took < FAILOVER_BOUND, "{took:?}");
    load.stop().await;
}

#[tokio::test]
async fn a_frozen_master_blocks_only_its_own_slots() {
    let cluster = RedisCluster::with(&["cluster-require-full-coverage no"]).await;
    let store = open(&cluster.url());
    let frozen = cluster.master_of(&name(0, "w")).await;
    let mut other = 1;
    while cluster.master_of(&name(other, "w")).await.port() == frozen.port() {
        other += 1;
    }
    store.journal(key(0), Generation(0), journal(0)).await.unwrap();
    store.journal(key(other), Generation(0), journal(0)).await.unwrap();
    frozen.freeze();
    let error = bounded(store.recall(key(0))).await.unwrap_err();
    assert!(matches!(error, StoreError::Timeout | StoreError::Unreachable(_)), "{error}");
    for number in 0..20 {
        bounded(store.journal(key(other), Generation(0), journal(number))).await.unwrap();
    }
    // The others notice and promote its replica.
    let took = until_success(async || bounded(store.journal(key(0), Generation(0), journal(1))).await).await;
    assert!(took < Duration::from_secs(8), "{took:?}");
    frozen.thaw();
    bounded(store.journal(key(0), Generation(0), journal(2))).await.unwrap();
    assert_eq!(store.recall(key(0)).await.unwrap().waypoints.last().unwrap(), &vec![2]);
}

#[tokio::test]
async fn requests_follow_a_slot_during_and_after_its_migration() {
    let cluster = RedisCluster::start().await;
    let store = open(&cluster.url());
    let conversation = name(0, "w");
    let source = cluster.master_of(&conversation).await;
    let mut other = 1;
    while cluster.master_of(&name(other, "w")).await.port() == source.port() {
        other += 1;
    }
    let target = cluster.master_of(&name(other, "w")).await;
    store.journal(key(0), Generation(0), journal(1)).await.unwrap();
    let slot = source.cli(&["cluster", "keyslot", &conversation]).await;
    let (from, to) = (source.cli(&["cluster", "myid"]).await, target.cli(&["cluster", "myid"]).await);
    assert_eq!(target.cli(&["cluster", "setslot", &slot, "importing", &from]).await, "OK");
    assert_eq!(source.cli(&["cluster", "setslot", &slot, "migrating", &to]).await, "OK");
    // A key that has left the source is read from the target.
    let port = target.port().to_string();
    assert_eq!(source.cli(&["migrate", "127.0.0.1", &port, &conversation, "0", "1000"]).await, "OK");
    assert_eq!(store.recall(key(0)).await.unwrap().waypoints, [vec![1]]);
    // A script that needs all keys waits until all of them have arrived.
    let finish = async {
        let messages = name(0, "m");
        assert_eq!(source.cli(&["migrate", "127.0.0.1", &port, &messages, "0", "1000"]).await, "OK");
        for server in [target, source] {
            assert_eq!(server.cli(&["cluster", "setslot", &slot, "node", &to]).await, "OK");
        }
    };
    let (journaled, ()) = tokio::join!(store.journal(key(0), Generation(0), journal(2)), finish);
    journaled.unwrap();
    store.count(key(0), Generation(0), turn(1)).await.unwrap();
    assert_eq!(store.recall(key(0)).await.unwrap().waypoints, [vec![1], vec![2]]);
    assert_eq!(store.messages(key(0)).await.unwrap().len(), 2);
    assert_eq!(target.cli(&["llen", &conversation]).await, "2");
}

#[tokio::test]
async fn one_reachable_seed_is_enough() {
    let cluster = RedisCluster::start().await;
    let reachable = cluster.servers()[2].port();
    let store = open(&format!("redis+cluster://127.0.0.1:1,127.0.0.1:{reachable}"));
    for number in 0..12 {
        store.journal(key(number), Generation(0), journal(1)).await.unwrap();
    }
    let nobody = open("redis+cluster://127.0.0.1:1,127.0.0.1:2");
    assert!(matches!(bounded(nobody.probe()).await, Err(StoreError::Unreachable(_))));
}

#[tokio::test]
async fn a_server_without_cluster_support_is_reported() {
    let server = tidegate_testkit::RedisServer::start().await;
    let error = open(&format!("redis+cluster://127.0.0.1:{}", server.port())).probe().await.unwrap_err();
    assert!(error.to_string().contains("cluster support disabled"), "{error}");
}
