//! The figures of the dashboard, which outlive a process and are those of all processes on a store.

use super::turns::{start_patient, turn, upstream};
use crate::support::client::admin;
use crate::support::tidegate::Tidegate;
use crate::support::until;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;
use tidegate_testkit::{MockUpstream, RedisServer};

const FIGURES: [&str; 5] = ["requests", "tokens_before", "tokens_after", "masked", "prompt_tokens"];

async fn overview(process: &Tidegate, range: &str) -> Value {
    admin(process.admin, &format!("/api/overview?range={range}")).await.json()
}

/// Waits until a process shows this many requests, and returns its totals.
async fn totals(process: &Tidegate, range: &str, requests: u64) -> Vec<Value> {
    let read = async || overview(process, range).await;
    let has_all = |page: &Value| page["totals"]["requests"] == requests;
    let page = until("the figures", Duration::from_secs(60), read, has_all).await;
    FIGURES.map(|name| page["totals"][name].clone()).to_vec()
}

async fn end(mut process: Tidegate) {
    process.signal(Signal::TERM);
    process.ended().await;
}

async fn survives_a_restart(store: &str, upstream: &MockUpstream) {
    let process = start_patient(store, upstream).await;
    for number in 1..=4 {
        assert_eq!(turn(process.address, "c", number).await.status, 200);
    }
    let before = totals(&process, "1h", 4).await;
    assert!(before[3].as_u64().unwrap() > 0, "nothing was masked: {before:?}");
    let started = overview(&process, "1h").await["process"]["started"].as_u64().unwrap();
    end(process).await;
    let process = start_patient(store, upstream).await;
    for range in ["15m", "1h", "24h"] {
        assert_eq!(totals(&process, range, 4).await, before, "{range}");
    }
    assert!(overview(&process, "1h").await["process"]["started"].as_u64().unwrap() > started);
    assert_eq!(turn(process.address, "c", 5).await.status, 200);
    totals(&process, "1h", 5).await;
}

#[tokio::test]
async fn the_overview_survives_a_restart() {
    let (upstream, redis) = (upstream().await, RedisServer::start().await);
    let directory = tempfile::tempdir().unwrap();
    survives_a_restart(&format!("embedded:{}", directory.path().display()), &upstream).await;
    survives_a_restart(&redis.url(), &upstream).await;
    // A fact lives as long as everything else there.
    let keys = redis.cli(&["--scan", "--pattern", "tg:1:*figures*"]).await;
    assert!(!keys.trim().is_empty());
    for key in keys.lines() {
        let life: i64 = redis.cli(&["PTTL", key]).await.trim().parse().unwrap();
        assert!(life > 0, "{key}");
    }
}

#[tokio::test]
async fn the_overview_has_the_figures_of_all_processes() {
    let (upstream, redis) = (upstream().await, RedisServer::start().await);
    let processes =
        [start_patient(&redis.url(), &upstream).await, start_patient(&redis.url(), &upstream).await];
    for number in 1..=3 {
        for process in &processes {
            assert_eq!(turn(process.address, "c", number).await.status, 200);
        }
    }
    let mut seen = Vec::new();
    for process in &processes {
        seen.push(totals(process, "15m", 6).await);
        assert_eq!(overview(process, "15m").await["process"]["shares_figures"], true);
    }
    assert_eq!(seen[0], seen[1]);
    // A process that is killed has told what it counted.
    let [mut killed, other] = processes;
    killed.signal(Signal::KILL);
    killed.ended().await;
    assert_eq!(totals(&other, "1h", 6).await, seen[0]);
}

/// Without its store, a process has its own figures, and requests do not wait for them.
#[tokio::test]
async fn figures_need_no_store() {
    let (upstream, redis) = (upstream().await, RedisServer::start().await);
    let process = super::turns::start(&redis.url(), &upstream).await;
    redis.freeze();
    for number in 1..=3 {
        assert_eq!(turn(process.address, "c", number).await.status, 200);
    }
    totals(&process, "15m", 3).await;
    redis.thaw();
    let other = start_patient(&redis.url(), &upstream).await;
    totals(&other, "1h", 3).await;
}
