//! A master with two replicas, and three sentinels that watch it.

use super::RedisServer;
use super::process::{Process, Program};
use crate::loopback::until;

#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<Process>,
}

const MASTER: &str = "mymaster";

impl Sentinels {
    /// Returns once all sentinels know all servers and each other.
    pub async fn start() -> Self {
        Sentinels::with(&[], &[]).await
    }

    /// Starts with additional lines of configuration for every server and every sentinel.
    pub async fn with(server: &[&str], sentinel: &[&str]) -> Self {
        let mut servers = vec![RedisServer::with(server).await];
        let follow = format!("replicaof 127.0.0.1 {}", servers[0].port());
        for _ in 0..2 {
            servers.push(RedisServer::with(&[server, &[follow.as_str()]].concat()).await);
        }
        until("the replicas are online", async || {
            servers[0].cli(&["info", "replication"]).await.matches("state=online").count() == 2
        })
        .await;
        let lines = [
            format!("sentinel monitor {MASTER} 127.0.0.1 {} 2", servers[0].port()),
            format!("sentinel down-after-milliseconds {MASTER} 500"),
            format!("sentinel failover-timeout {MASTER} 2000"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).chain(sentinel.iter().copied()).collect();
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            sentinels.push(Process::start(Program::Sentinel, &lines).await);
        }
        let fleet = Sentinels { servers, sentinels };
        for sentinel in &fleet.sentinels {
            until("a sentinel knows all servers and sentinels", async || {
                let known = sentinel.cli(&["sentinel", "master", MASTER]).await;
                let is = |name: &str| known.contains(&format!("{name}\n2\n"));
                is("num-slaves") && is("num-other-sentinels")
            })
            .await;
        }
        fleet
    }

    /// `redis+sentinel://LOGIN127.0.0.1:PORT,…/mymaster`, where `login` is empty or ends with an `@`.
    pub fn url(&self, login: &str) -> String {
        let sentinels: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        format!("redis+sentinel://{login}{}/{MASTER}", sentinels.join(","))
    }

    /// The current master.
    pub async fn master(&self) -> &RedisServer {
        let port = self.named_by(&self.sentinels[0]).await;
        self.servers.iter().find(|server| server.port() == port).expect("it is one of ours")
    }

    /// Kills the master. Returns its port.
    pub async fn kill_master(&self) -> u16 {
        let master = self.master().await;
        master.kill();
        master.port()
    }

    /// Forces a failover although the master works.
    pub async fn fail_over(&self) {
        let answer = self.sentinels[0].cli(&["sentinel", "failover", MASTER]).await;
        assert_eq!(answer, "OK", "the sentinels cannot fail over");
    }

    /// Freezes one sentinel.
    pub fn freeze_sentinel(&self, index: usize) {
        self.sentinels[index].freeze();
    }

    /// Waits until the sentinels report another master, and that server agrees.
    pub async fn wait_promotion(&self, old: u16) {
        until("a replica is promoted", async || {
            let mut named = Vec::new();
            for sentinel in &self.sentinels {
                named.push(self.named_by(sentinel).await);
            }
            let new = named[0];
            // The old master may be frozen, so it must not be asked.
            if new == old || named.iter().any(|port| *port != new) {
                return false;
            }
            let server = self.servers.iter().find(|server| server.port() == new);
            server.expect("it is one of ours").cli(&["role"]).await.starts_with("master")
        })
        .await;
    }

    async fn named_by(&self, sentinel: &Process) -> u16 {
        let answer = sentinel.cli(&["sentinel", "get-master-addr-by-name", MASTER]).await;
        answer.lines().last().and_then(|port| port.parse().ok()).expect("a sentinel knows a master")
    }
}
