//! Section 1: the state is stored, so any process can continue a conversation.

use super::turns::{exchanged, question, recent, turn, turns};
use crate::conformance::scene::Scene;
use tempfile::TempDir;
use tidegate_testkit::RedisServer;

async fn on(store: &str) -> Scene {
    Scene::start_with("rolling-memory", "", |setup| setup.env("TIDEGATE_STORE", store)).await
}

#[tokio::test]
async fn a_restart_continues_from_the_same_directory() {
    let directory = TempDir::new().unwrap();
    let store = format!("embedded:{}", directory.path().join("data").display());
    let before = on(&store).await;
    let (_, sent) = turns(&before, "c", 1..=7).await;
    let summary = sent.summary().expect("a summary").clone();
    before.tidegate.stop().await;
    let after = on(&store).await;
    let (_, sent) = turn(&after, "c", 8).await;
    assert_eq!(sent.summary(), Some(&summary));
    assert_eq!(recent(&sent), [exchanged(4..=7), vec![question(8)]].concat());
}

#[tokio::test]
async fn two_processes_on_one_redis_share_the_state() {
    let redis = RedisServer::start().await;
    let scenes = [on(&redis.url()).await, on(&redis.url()).await];
    let mut summary = None;
    for number in 1..=12 {
        let (_, sent) = turn(&scenes[number % 2], "c", number).await;
        // Turns 7 and 10 fold; the other process has the summary at the next turn.
        let folds = number.saturating_sub(4) / 3;
        let raw = if folds == 0 { 1 } else { 3 * folds + 1 };
        assert_eq!(recent(&sent), [exchanged(raw..=number - 1), vec![question(number)]].concat());
        if !matches!(number, 7 | 10) {
            assert_eq!(sent.summary(), summary.as_ref(), "turn {number}");
        }
        summary = sent.summary().cloned();
    }
    assert!(summary.is_some());
}
