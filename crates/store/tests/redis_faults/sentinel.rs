//! Failover through sentinels.

use super::*;
use tidegate_testkit::{Sentinels, until};

/// The maximum time from the promotion until requests succeed.
const FAILOVER_BOUND: Duration = Duration::from_secs(2);

#[tokio::test]
async fn requests_reach_the_new_master_soon_after_the_old_one_is_killed() {
    let sentinels = Sentinels::start().await;
    let store = open(&sentinels.url(""));
    let load = Load::start(&store);
    load.succeeds().await;
    let old = sentinels.kill_master().await;
    sentinels.wait_promotion(old).await;
    let took = load.succeeds().await;
    assert!(took < FAILOVER_BOUND, "{took:?}");
    load.stop().await;
}

#[tokio::test]
async fn requests_reach_the_new_master_after_the_old_one_freezes_and_returns_as_a_replica() {
    let sentinels = Sentinels::start().await;
    let store = open(&sentinels.url(""));
    let load = Load::start(&store);
    load.succeeds().await;
    let old = sentinels.master().await;
    old.freeze();
    sentinels.wait_promotion(old.port()).await;
    let took = load.succeeds().await;
    assert!(took < FAILOVER_BOUND, "{took:?}");
    old.thaw();
    until("the old master is demoted", async || old.cli(&["role"]).await.starts_with("slave")).await;
    load.succeeds().await;
    load.stop().await;
    let new = sentinels.master().await;
    let name = format!("tg:1:{{{}}}:t", key(0));
    let turns = store.turns(key(0)).await.unwrap().len().to_string();
    assert_eq!(new.cli(&["hlen", &name]).await, turns);
}

#[tokio::test]
async fn a_frozen_sentinel_delays_no_request() {
    let sentinels = Sentinels::start().await;
    sentinels.freeze_sentinel(0);
    let store = open(&sentinels.url(""));
    bounded(store.probe()).await.unwrap();
}

#[tokio::test]
async fn a_manual_failover_is_followed() {
    let sentinels = Sentinels::start().await;
    let store = open(&sentinels.url(""));
    store.journal(key(1), Generation(0), journal(1)).await.unwrap();
    let old = sentinels.master().await.port();
    sentinels.fail_over().await;
    sentinels.wait_promotion(old).await;
    let took = until_success(async || bounded(store.journal(key(1), Generation(0), journal(2))).await).await;
    assert!(took < FAILOVER_BOUND, "{took:?}");
}

#[tokio::test]
async fn sentinels_and_servers_have_separate_credentials() {
    let server = ["user tide on >pw ~tg:* +@all"];
    let sentinel = ["user guard on >spw allchannels +@all"];
    let sentinels = Sentinels::with(&server, &sentinel).await;
    let url = sentinels.url("tide:pw@");
    open(&format!("{url}?sentinel_user=guard&sentinel_password=spw")).probe().await.unwrap();
    for bad in [
        format!("{url}?sentinel_user=guard&sentinel_password=hunter2"),
        format!("{}?sentinel_user=guard&sentinel_password=spw", sentinels.url("tide:hunter2@")),
    ] {
        let error = open(&bad).probe().await.unwrap_err();
        assert_eq!(error.reason(), "store_denied", "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    let unknown = sentinels.url("tide:pw@").replace("mymaster", "unknown");
    let error = open(&unknown).probe().await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable(text) if text.contains("unknown")), "{error}");
}
