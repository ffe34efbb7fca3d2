//! The default store, a directory. The process can be killed at any time.

use super::turns::{REMEMBERED, config, degraded, edits, start, turn, upstream};
use crate::support::command::{Output, command, run};
use crate::support::tidegate::Setup;
use rustix::process::Signal;
use tempfile::TempDir;

#[tokio::test]
async fn a_killed_process_loses_nothing() {
    let (directory, upstream) = (TempDir::new().unwrap(), upstream().await);
    let url = format!("embedded:{}", directory.path().join("data").display());
    let mut first = start(&url, &upstream).await;
    let reply = turn(first.address, "a", 3).await;
    assert_eq!((degraded(&reply), edits(&reply)), (None, REMEMBERED));
    first.signal(Signal::KILL);
    first.ended().await;
    let second = start(&url, &upstream).await;
    let reply = turn(second.address, "a", 4).await;
    assert_eq!((degraded(&reply), edits(&reply)), (None, REMEMBERED));
}

#[tokio::test]
async fn a_directory_in_use_is_refused() {
    let (directory, upstream) = (TempDir::new().unwrap(), upstream().await);
    let url = format!("embedded:{}", directory.path().display());
    let _first = start(&url, &upstream).await;
    let mut second = command(directory.path());
    let args = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", &url];
    let Output { code, err, .. } = run(second.args(args)).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("in use") && err.contains("hint:") && err.contains("--store"), "{err}");
}

#[tokio::test]
async fn an_unusable_default_directory_is_not_fatal() {
    let upstream = upstream().await;
    let first = Setup::new("").upstream(&upstream.url()).start().await;
    let beside = first.config_file().parent().unwrap().to_owned();
    assert!(beside.join("tidegate-data").is_dir());
    // A file at the path of the directory makes it unusable.
    let blocked = Setup::new("").file("tidegate-data", "not a directory").upstream(&upstream.url());
    let mut blocked = blocked.start().await;
    blocked.logged_message("keeping conversations in memory until restart").await;
    assert_eq!(degraded(&turn(blocked.address, "a", 3).await), None);
}

#[tokio::test]
async fn without_raw_recording_no_message_is_on_disk() {
    let (directory, upstream) = (TempDir::new().unwrap(), upstream().await);
    let url = format!("embedded:{}", directory.path().display());
    let quiet = config(&url).replace("[store]", "[store]\nraw = false");
    let tidegate = Setup::new(&quiet).upstream(&upstream.url()).start().await;
    assert_eq!(edits(&turn(tidegate.address, "a", 3).await), REMEMBERED);
    tidegate.stop().await;
    let mut files = 0;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(14).any(|window| window == b"a line of the "), "a message is on disk");
        files += 1;
    }
    assert!(files > 0);
}
