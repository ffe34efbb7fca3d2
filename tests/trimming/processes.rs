//! Several processes, and one that was started again, decide like one. With a batch of two, the third step trims two results. At the
//! fourth step one more has been answered: a process that knows of the third postpones it, and a new one trims all three.

use super::{edits, sent};
use crate::support::agent::send;
use crate::support::tidegate::{Setup, Tidegate};
use rustix::process::Signal;
use tempfile::TempDir;
use tidegate_testkit::{MockUpstream, RedisServer};

const NAMED: [(&str, &str); 1] = [("x-conversation-id", "a")];

async fn start(store: &str, upstream: &MockUpstream) -> Tidegate {
    let config = format!("[store]\nurl = \"{store}\"\n[context.trim]\npace = {{ batch = 2 }}\n");
    Setup::new(&config).upstream(&upstream.url()).start().await
}

async fn trimmed(tidegate: &Tidegate, upstream: &MockUpstream, steps: usize) -> (String, String) {
    let (reply, arrived) = send(tidegate, upstream, &NAMED, &sent(steps)).await;
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    (edits(&reply).to_owned(), arrived)
}

const TWO: &str = "masked=0,trimmed=2,folded=0,dropped=0";
const THREE: &str = "masked=0,trimmed=3,folded=0,dropped=0";

#[tokio::test]
async fn a_restart_repeats_what_was_decided() {
    let (directory, upstream) = (TempDir::new().unwrap(), MockUpstream::start().await);
    let url = format!("embedded:{}", directory.path().join("data").display());
    let mut first = start(&url, &upstream).await;
    assert_eq!(trimmed(&first, &upstream, 3).await.0, TWO);
    let before = trimmed(&first, &upstream, 4).await;
    first.signal(Signal::KILL);
    first.ended().await;
    let second = start(&url, &upstream).await;
    assert_eq!(trimmed(&second, &upstream, 4).await, before);
    assert_eq!(before.0, TWO);
    let new = start("memory:", &upstream).await;
    assert_eq!(trimmed(&new, &upstream, 4).await.0, THREE);
}

#[tokio::test]
async fn processes_on_one_redis_share_what_was_decided() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    let one = start(&redis.url(), &upstream).await;
    let other = start(&redis.url(), &upstream).await;
    assert_eq!(trimmed(&one, &upstream, 3).await.0, TWO);
    let there = trimmed(&other, &upstream, 4).await;
    assert_eq!(there.0, TWO);
    assert_eq!(trimmed(&one, &upstream, 4).await, there, "the same bytes in both processes");
}
