use crate::suite::{self, FIRST, key, message, messages, next};
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{RedisStore, Store, Written};
use tidegate_testkit::{RedisCluster, RedisServer, Sentinels};

/// Generous, because the contract is not about speed.
const TIMEOUT: Duration = Duration::from_secs(5);

async fn keeps_the_contract(url: &str) {
    suite::everything(async |ttl| Arc::new(RedisStore::open(url, ttl, TIMEOUT).unwrap()) as Arc<dyn Store>)
        .await;
}

#[tokio::test]
async fn a_single_server_keeps_the_contract() {
    let server = RedisServer::start().await;
    keeps_the_contract(&format!("{}/3", server.url())).await;
    assert_eq!(server.cli(&["-n", "0", "dbsize"]).await, "0");
}

/// The user has only the permissions that the store needs, so this doubles as the list of what to allow.
#[tokio::test]
async fn a_server_with_tls_and_a_restricted_user_keeps_the_contract() {
    let permissions = "+lrange +hgetall +del +set +zrem +zcard +zrevrange +eval +evalsha +hsetnx +rpush +ltrim +pexpire +sadd \
                  +hincrby +hset +hget +zadd +zremrangebyscore +zscore +get +hdel +lpop +lrem +lset";
    let user = format!("user tide on >s3cr/et ~tg:* {permissions}");
    let server = RedisServer::with_tls(&[&user]).await;
    keeps_the_contract(&server.tls_url("tide:s3cr%2Fet@")).await;
}

#[tokio::test]
async fn a_master_behind_sentinels_keeps_the_contract() {
    let sentinels = Sentinels::start().await;
    keeps_the_contract(&sentinels.url("")).await;
}

#[tokio::test]
async fn a_cluster_keeps_the_contract() {
    let cluster = RedisCluster::start().await;
    keeps_the_contract(&cluster.url()).await;
}

#[tokio::test]
async fn every_key_has_a_time_to_live() {
    let server = RedisServer::start().await;
    keeps_the_contract(&server.url()).await;
    let keys = server.cli(&["keys", "*"]).await;
    assert!(keys.lines().count() > 10, "{keys}");
    for key in keys.lines() {
        let ttl: i64 = server.cli(&["pttl", key]).await.parse().unwrap();
        assert_ne!(ttl, -1, "{key} never expires");
    }
}

#[tokio::test]
async fn a_deletion_whose_reply_was_lost_can_be_sent_again() {
    let server = RedisServer::start().await;
    let store = RedisStore::open(&server.url(), Duration::from_secs(60), TIMEOUT).unwrap();
    let (key, second) = (key(), next());
    assert_eq!(store.journal(key, FIRST, message(1, "old")).await.unwrap(), Written::Done);
    assert!(store.delete(key, second).await.unwrap());
    assert_eq!(store.journal(key, second, message(2, "new")).await.unwrap(), Written::Done);
    assert!(store.delete(key, second).await.unwrap(), "the first time, it has deleted something");
    assert_eq!(messages(&store, key).await.len(), 1, "what was written since is there");
}
