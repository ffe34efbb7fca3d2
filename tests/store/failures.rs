//! Store failures. A request is served within the store timeout, and its response says that it was degraded. After a second no
//! request waits for the store. Once the store is back, so are the conversations.

use super::turns::{
    NEW, REMEMBERED, SLACK, STORE_TIMEOUT, config, degraded, edits, start, timed_turn, turn, upstream,
};
use crate::support::client::{admin, exchange};
use crate::support::cores::quiet;
use crate::support::tidegate::{Setup, Tidegate};
use crate::support::until;
use std::time::Duration;
use tidegate_testkit::{MockUpstream, RedisServer};
use tokio::sync::RwLockReadGuard;
use tokio::time::Instant;

struct Scene {
    redis: RedisServer,
    upstream: MockUpstream,
    tidegate: Tidegate,
    _quiet: RwLockReadGuard<'static, ()>,
}

impl Scene {
    async fn new() -> Scene {
        let quiet = quiet().await;
        let (redis, upstream) = (RedisServer::start().await, upstream().await);
        let tidegate = start(&redis.url(), &upstream).await;
        let scene = Scene { redis, upstream, tidegate, _quiet: quiet };
        let reply = turn(scene.tidegate.address, "a", 3).await;
        assert_eq!((degraded(&reply), edits(&reply)), (None, REMEMBERED));
        scene
    }

    /// Asserts, from the moment of the fault, how requests are degraded, and that after a second none waits.
    async fn assert_degraded(&self, reasons: &[&str]) {
        let begun = Instant::now();
        let mut waited = Duration::ZERO;
        while begun.elapsed() < Duration::from_secs(1) {
            let (reply, took) = timed_turn(self.tidegate.address, "a", 4).await;
            assert!(took < STORE_TIMEOUT + SLACK, "a request waited {took:?}");
            // The process keeps its own decisions, so the provider's cache stays valid.
            assert_eq!(edits(&reply), REMEMBERED);
            if let Some(reason) = degraded(&reply) {
                assert!(reasons.contains(&reason), "{reason}");
            }
            waited = took;
            if degraded(&reply).is_some() && waited < STORE_TIMEOUT / 2 {
                break;
            }
        }
        assert!(waited < STORE_TIMEOUT, "after a second a request still waited {waited:?}");
        let (reply, took) = timed_turn(self.tidegate.address, "a", 4).await;
        assert!(degraded(&reply).is_some_and(|reason| reasons.contains(&reason)), "{:?}", degraded(&reply));
        assert!(took < STORE_TIMEOUT, "a request still waited {took:?}");
        let metrics = admin(self.tidegate.admin, "/metrics").await.text();
        let counted = reasons
            .iter()
            .any(|reason| metrics.contains(&format!("tidegate_degraded_total{{reason=\"{reason}\"}}")));
        assert!(counted, "{metrics}");
    }

    /// Asserts that the store is used again within two seconds.
    async fn assert_recovers(&self, number: usize) {
        let ask = async || turn(self.tidegate.address, "a", number).await;
        let limit = Duration::from_secs(2) + SLACK;
        until("the store is used again", limit, ask, |reply| degraded(reply).is_none()).await;
    }

    /// Asserts that another process sees what this one has written since.
    async fn assert_shared(&self) {
        let other = start(&self.redis.url(), &self.upstream).await;
        let reply = turn(other.address, "a", 4).await;
        assert_eq!((degraded(&reply), edits(&reply)), (None, REMEMBERED));
    }
}

#[tokio::test]
async fn a_frozen_server_degrades_until_it_thaws() {
    let scene = Scene::new().await;
    scene.redis.freeze();
    scene.assert_degraded(&["store_timeout", "store_unreachable"]).await;
    scene.redis.thaw();
    scene.assert_recovers(4).await;
    scene.assert_shared().await;
}

#[tokio::test]
async fn a_paused_server_degrades_until_the_pause_ends() {
    let scene = Scene::new().await;
    scene.redis.cli(&["CLIENT", "PAUSE", "1500", "ALL"]).await;
    scene.assert_degraded(&["store_timeout", "store_unreachable"]).await;
    // The pause ends by itself.
    let ask = async || turn(scene.tidegate.address, "a", 4).await;
    until("the pause is over", Duration::from_secs(4), ask, |reply| degraded(reply).is_none()).await;
    scene.assert_shared().await;
}

#[tokio::test]
async fn a_killed_server_that_comes_back_empty_is_refilled() {
    let scene = Scene::new().await;
    scene.redis.kill();
    scene.assert_degraded(&["store_unreachable", "store_timeout"]).await;
    scene.redis.restart().await;
    scene.assert_recovers(4).await;
    // The surviving process has restored the decisions and messages.
    scene.assert_shared().await;
    let keys = scene.redis.cli(&["--scan", "--pattern", "tg:1:*:m"]).await;
    let recorded = scene.redis.cli(&["HLEN", keys.trim()]).await;
    // The system message, the task, four calls with their results, and the answer.
    assert_eq!(recorded.trim(), "11");
}

#[tokio::test]
async fn a_full_server_degrades_until_there_is_room() {
    let scene = Scene::new().await;
    scene.redis.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "1mb"]).await;
    scene.assert_degraded(&["store_full"]).await;
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    scene.assert_recovers(5).await;
}

#[tokio::test]
async fn a_read_only_replica_degrades_until_it_is_promoted() {
    let scene = Scene::new().await;
    let master = RedisServer::start().await;
    scene.redis.cli(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).await;
    // Reads can fail as well while the replica loads data from its master.
    scene.assert_degraded(&["store_readonly", "store_loading", "store_unreachable"]).await;
    scene.redis.cli(&["REPLICAOF", "NO", "ONE"]).await;
    scene.assert_recovers(5).await;
}

#[tokio::test]
async fn a_changed_password_degrades_until_it_is_restored() {
    let scene = Scene::new().await;
    scene.redis.cli(&["CONFIG", "SET", "requirepass", "another"]).await;
    scene.redis.cli(&["-a", "another", "CLIENT", "KILL", "TYPE", "normal"]).await;
    scene.assert_degraded(&["store_denied", "store_unreachable"]).await;
    scene.redis.cli(&["-a", "another", "CONFIG", "SET", "requirepass", ""]).await;
    scene.assert_recovers(4).await;
}

#[tokio::test]
async fn corrupt_and_newer_records_degrade_one_conversation() {
    let scene = Scene::new().await;
    let key = scene.redis.cli(&["--scan", "--pattern", "tg:1:*:w"]).await.trim().to_owned();
    scene.redis.cli(&["RPUSH", &key, "garbage"]).await;
    let reply = turn(scene.tidegate.address, "a", 4).await;
    assert_eq!((degraded(&reply), edits(&reply)), (Some("store_corrupt"), REMEMBERED));
    scene.redis.cli(&["LREM", &key, "0", "garbage"]).await;
    scene.redis.cli(&["RPUSH", &key, "\u{9}of the future"]).await;
    let reply = turn(scene.tidegate.address, "a", 4).await;
    assert_eq!((degraded(&reply), edits(&reply)), (Some("store_newer_record"), REMEMBERED));
    // A value that is not a list: this conversation continues without the store, others are unaffected.
    scene.redis.cli(&["SET", &key, "a string"]).await;
    let reply = turn(scene.tidegate.address, "a", 4).await;
    assert_eq!((degraded(&reply), edits(&reply)), (Some("store_corrupt"), REMEMBERED));
    assert_eq!(degraded(&turn(scene.tidegate.address, "b", 3).await), None);
}

#[tokio::test]
async fn a_server_that_is_down_at_startup_is_used_once_it_is_up() {
    let _quiet = quiet().await;
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    redis.kill();
    let tidegate = start(&redis.url(), &upstream).await;
    let (reply, took) = timed_turn(tidegate.address, "a", 3).await;
    assert_eq!(degraded(&reply), Some("store_unreachable"));
    assert!(took < STORE_TIMEOUT + SLACK, "a request waited {took:?}");
    let ready = admin(tidegate.admin, "/readyz").await;
    assert_eq!(ready.status, 200, "{}", ready.text());
    redis.restart().await;
    let ask = async || turn(tidegate.address, "a", 3).await;
    until("the store is used", Duration::from_secs(2) + SLACK, ask, |reply| degraded(reply).is_none()).await;
}

#[tokio::test]
async fn requests_are_refused_if_configured_so() {
    let _quiet = quiet().await;
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let settings = config(&redis.url()).replace("[store]", "[store]\non_failure = \"refuse\"");
    let tidegate = Setup::new(&settings).upstream(&upstream.url()).start().await;
    assert_eq!(turn(tidegate.address, "a", 3).await.status, 200);
    upstream.next_request().await;
    let sent = upstream.requests().len();
    redis.kill();
    let (reply, took) = timed_turn(tidegate.address, "a", 4).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (503, "store_unavailable"));
    assert!(reply.header("x-tidegate-degraded").is_some_and(|reason| reason.starts_with("store_")));
    assert!(took < STORE_TIMEOUT + SLACK, "it took {took:?}");
    assert_eq!(upstream.requests().len(), sent, "a refused request was sent");
    // Requests without a conversation are served.
    let models =
        exchange(tidegate.address, "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert_eq!(models.status, 200);
    redis.restart().await;
    let ask = async || turn(tidegate.address, "a", 4).await;
    until("it is served again", Duration::from_secs(2) + SLACK, ask, |reply| reply.status == 200).await;
}

#[tokio::test]
async fn without_redis_only_the_deciding_process_remembers() {
    let scene = Scene::new().await;
    scene.redis.kill();
    let other = start(&scene.redis.url(), &scene.upstream).await;
    let reply = turn(other.address, "a", 4).await;
    assert_eq!((degraded(&reply), edits(&reply)), (Some("store_unreachable"), NEW));
}

#[tokio::test]
async fn a_store_that_is_down_at_the_start_is_logged_at_the_start() {
    let upstream = upstream().await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", closed.local_addr().unwrap());
    drop(closed);
    let mut tidegate = Setup::new(&config(&url)).before(&upstream).start().await;
    tidegate.logged_message("store unavailable").await;
}
