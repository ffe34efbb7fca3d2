//! A master dies under load. No request fails or waits longer than the store timeout, and the store is used again within two seconds
//! of the promotion.

use super::load::{Load, Sent};
use super::turns::{SLACK, STORE_TIMEOUT, degraded, start, turn, upstream};
use crate::support::cores::quiet;
use crate::support::tidegate::Tidegate;
use crate::support::until;
use std::time::Duration;
use tidegate_testkit::{RedisCluster, Sentinels};
use tokio::time::Instant;

const CLIENTS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_promotes_a_replica() {
    let _quiet = quiet().await;
    let (cluster, upstream) = (RedisCluster::start().await, upstream().await);
    let tidegate = start(&cluster.url(), &upstream).await;
    let ask = async || turn(tidegate.address, "a", 3).await;
    until("the cluster is used", Duration::from_secs(5), ask, |reply| degraded(reply).is_none()).await;
    let key = cluster.servers()[0].cli(&["-c", "--scan", "--pattern", "tg:1:*"]).await;
    let key = key.lines().next().unwrap_or("tg:1:{any}:w").to_owned();

    let load = Load::start(tidegate.address, CLIENTS);
    let old = cluster.kill_master_of(&key).await;
    cluster.wait_promotion(&key, old).await;
    let promoted = Instant::now();
    assert_recovered(&tidegate, promoted).await;
    assert_no_long_wait(&load.stop().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_promote_a_replica() {
    let _quiet = quiet().await;
    let (sentinels, upstream) = (Sentinels::start().await, upstream().await);
    let tidegate = start(&sentinels.url(""), &upstream).await;
    let ask = async || turn(tidegate.address, "a", 3).await;
    until("the master is used", Duration::from_secs(5), ask, |reply| degraded(reply).is_none()).await;

    let load = Load::start(tidegate.address, CLIENTS);
    let old = sentinels.kill_master().await;
    sentinels.wait_promotion(old).await;
    let promoted = Instant::now();
    assert_recovered(&tidegate, promoted).await;
    assert_no_long_wait(&load.stop().await);
}

/// Asserts that requests of many conversations, on every server of a cluster, use the store again.
async fn assert_recovered(tidegate: &Tidegate, promoted: Instant) {
    let all = async || {
        let mut without = 0;
        for number in 0..16 {
            let reply = turn(tidegate.address, &format!("after-{number}"), 3).await;
            without += usize::from(degraded(&reply).is_some());
        }
        without
    };
    until("the store is used again", Duration::from_secs(2) + SLACK, all, |without| *without == 0).await;
    let took = promoted.elapsed();
    assert!(took < Duration::from_secs(2) + SLACK, "it took {took:?} after the promotion");
}

fn assert_no_long_wait(sent: &[Sent]) {
    assert!(sent.iter().any(|one| one.degraded.is_some()), "the failover was not noticed");
    assert!(sent.iter().any(|one| one.degraded.is_none()), "nothing was served with the store");
    let longest = sent.iter().map(|one| one.took).max().unwrap();
    assert!(longest < STORE_TIMEOUT + SLACK, "a request waited {longest:?}");
}
