//! Conversations survive a restart, and the command works without a running process.

use super::ask::{conversations, json, run_on_directory, until_counted};
use super::scene::{agent_run, stored};
use crate::support::agent::EVERY_TURN;
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn a_restart_loses_nothing() {
    let upstream = MockUpstream::start().await;
    let data = TempDir::new().unwrap();
    let tidegate = stored(EVERY_TURN, &upstream, &data).start().await;
    agent_run(&tidegate, &upstream, "long", 4).await;
    let before = until_counted(&tidegate, 4).await;
    let messages = json(&tidegate, "/api/conversations/long/messages").await;
    tidegate.stop().await;

    let alone = run_on_directory(&data, &["list", "--json"], &[]).await;
    assert_eq!((alone.code, alone.err.as_str()), (Some(0), ""));
    let alone: serde_json::Value = serde_json::from_str(&alone.out).unwrap();
    assert_eq!(alone["conversations"], before["conversations"]);
    let shown = run_on_directory(&data, &["show", "long"], &[]).await;
    assert!(shown.code == Some(0) && shown.out.contains("result 3"), "{shown:?}");

    let tidegate = stored(EVERY_TURN, &upstream, &data).start().await;
    assert_eq!(json(&tidegate, "/api/conversations").await["conversations"], before["conversations"]);
    assert_eq!(json(&tidegate, "/api/conversations/long/messages").await, messages);
    agent_run(&tidegate, &upstream, "long", 5).await;
    let after = until_counted(&tidegate, 9).await;
    assert_eq!(after["conversations"][0]["turns"], 5, "four of the turns were there before");
}

#[tokio::test]
async fn a_store_in_use_is_not_opened_twice() {
    let upstream = MockUpstream::start().await;
    let data = TempDir::new().unwrap();
    let _tidegate = stored("", &upstream, &data).start().await;
    let output = run_on_directory(&data, &["list"], &[]).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.err.contains("in use") && output.err.contains("--admin"), "{}", output.err);
}

#[tokio::test]
async fn a_missing_store_is_not_created() {
    let stopped = ["list", "--admin", "127.0.0.1:0"];
    let memory = conversations(&[&stopped[..], &["--store", "memory:"]].concat(), &[]).await;
    assert_eq!(memory.code, Some(1), "{memory:?}");
    assert!(memory.err.contains("ends with its process") && memory.err.contains("hint: "), "{}", memory.err);

    let directory = TempDir::new().unwrap();
    let missing = directory.path().join("nothing");
    let store = format!("embedded:{}", missing.display());
    let output = conversations(&[&stopped[..], &["--store", &store]].concat(), &[]).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.err.contains("there is no directory") && output.err.contains("hint: "), "{}", output.err);
    assert!(!missing.exists());
}

/// The reader of a store may have a different configuration than its writer.
#[tokio::test]
async fn reading_with_a_shorter_ttl_removes_nothing() {
    let upstream = MockUpstream::start().await;
    let data = TempDir::new().unwrap();
    let tidegate = stored("", &upstream, &data).start().await;
    agent_run(&tidegate, &upstream, "kept", 1).await;
    tidegate.stop().await;
    let config = data.path().join("short.toml");
    std::fs::write(&config, "[store]\nttl = \"1ms\"\n").unwrap();
    for args in [&["list", "--config", config.to_str().unwrap()][..], &["list"]] {
        let output = run_on_directory(&data, args, &[]).await;
        assert!(output.code == Some(0) && output.out.contains("kept"), "{args:?}: {output:?}");
    }
}
