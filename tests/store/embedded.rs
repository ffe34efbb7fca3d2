//! The default store, a directory. The process can be killed at any time.

use super::turns::{NEW, REMEMBERED, config, degraded, edits, start, turn, upstream};
use crate::support::agent::{Message, body};
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::command::{Output, command, run};
use crate::support::metrics::value;
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

#[tokio::test]
async fn past_its_maximum_size_the_oldest_conversations_go() {
    let (directory, upstream) = (TempDir::new().unwrap(), upstream().await);
    let url = format!("embedded:{}", directory.path().join("data").display());
    let full = config(&url).replace("[store]", "[store]\nmax_size = \"16MiB\"").replace("250ms", "30s");
    let mut tidegate = Setup::new(&full).upstream(&upstream.url()).start().await;
    assert_eq!(edits(&turn(tidegate.address, "first", 3).await), REMEMBERED);
    // Numbers that hardly compress.
    let digits = |seed: u64, number: u64| (seed * 1_000_000 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text = |seed| (0..60_000).map(|number| format!("{:x} ", digits(seed, number))).collect::<String>();
    for number in 10..30 {
        let headers = [("x-conversation-id", &*format!("large-{number}")), ("authorization", "Bearer ada")];
        // Nobody knows its window, so nothing is too long.
        let request = body("local", &[Message::user(&text(number))], &[]);
        assert_eq!(exchange(tidegate.address, post(CHAT, &headers, request)).await.status, 200);
    }
    tidegate.logged_message("store.max_size is reached").await;
    let page = admin(tidegate.admin, "/metrics").await.text();
    let figure = |name: &str| value(&page, name, &[]).unwrap();
    assert!(figure("tidegate_store_evicted_total") >= 1.0, "{page}");
    let bytes = figure("tidegate_store_bytes");
    assert!((4e6..=16.0 * 1024.0 * 1024.0).contains(&bytes), "{bytes}");
    // It begins anew, and its messages are recorded again.
    assert_eq!(edits(&turn(tidegate.address, "first", 4).await), NEW);
}
