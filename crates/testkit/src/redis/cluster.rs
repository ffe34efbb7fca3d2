//! Three masters, each with a replica.

use std::net::SocketAddr;
use std::process::Stdio;

use super::RedisServer;
use crate::loopback::until;

#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<RedisServer>,
}

impl RedisCluster {
    /// Returns when all servers agree that the cluster works.
    pub async fn start() -> Self {
        RedisCluster::with(&[]).await
    }

    /// With further lines in every server's configuration.
    pub async fn with(config: &[&str]) -> Self {
        let lines = [
            "cluster-enabled yes",
            "cluster-config-file nodes.conf",
            "cluster-node-timeout 1000",
            // A replica that lost its master a moment ago may always take its place.
            "cluster-replica-validity-factor 0",
        ];
        let lines = [&lines[..], config].concat();
        let mut servers = Vec::new();
        for _ in 0..6 {
            servers.push(RedisServer::with(&lines).await);
        }
        let cluster = RedisCluster { servers };
        cluster.join().await;
        cluster
    }

    /// `redis+cluster://127.0.0.1:PORT,…` with three of the six servers.
    pub fn url(&self) -> String {
        let seeds: Vec<String> =
            self.servers.iter().take(3).map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis+cluster://{}", seeds.join(","))
    }

    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The server that holds a key now.
    pub async fn master_of(&self, key: &str) -> &RedisServer {
        let port = self.holder(key).await.expect("a living server knows who holds the key");
        self.servers.iter().find(|server| server.port() == port).expect("it is one of ours")
    }

    /// The port of the one that was killed.
    pub async fn kill_master_of(&self, key: &str) -> u16 {
        let master = self.master_of(key).await;
        master.kill();
        master.port()
    }

    /// Until another server than this holds the key, and all living ones know.
    pub async fn wait_promotion(&self, key: &str, old: u16) {
        until("a replica takes the master's place", async || {
            self.holder(key).await.is_some_and(|port| port != old)
        })
        .await;
    }

    async fn join(&self) {
        let mut command = tokio::process::Command::new("redis-cli");
        command.args(["--cluster", "create"]).stdin(Stdio::null()).kill_on_drop(true);
        command.args(self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())));
        command.args(["--cluster-replicas", "1", "--cluster-yes"]);
        let output = command.output().await.expect("redis-cli has just been used");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "redis-cli could not create a cluster:\n{said}");
        for server in &self.servers {
            until("a server finds the cluster complete", async || {
                let is_ok = server.cli(&["cluster", "info"]).await.contains("cluster_state:ok");
                let replicas = server.cli(&["cluster", "nodes"]).await.matches(" slave ").count()
                    + server.cli(&["cluster", "nodes"]).await.matches("myself,slave").count();
                let role = server.cli(&["role"]).await;
                is_ok && replicas == 3 && (role.starts_with("master") || role.contains("connected"))
            })
            .await;
        }
    }

    /// The port of the master that holds a key, as long as all living servers agree on it.
    async fn holder(&self, key: &str) -> Option<u16> {
        let mut answer = None;
        for server in self.servers.iter().filter(|server| server.process.is_alive()) {
            let slot = server.cli(&["cluster", "keyslot", key]).await.parse().ok()?;
            let holder = holder(&server.cli(&["cluster", "nodes"]).await, slot)?;
            if answer.is_some_and(|other| other != holder) {
                return None;
            }
            answer = Some(holder);
        }
        answer
    }
}

/// Reads the answer to `CLUSTER NODES`: id, address, flags, five more, and then ranges of slots.
fn holder(nodes: &str, slot: u16) -> Option<u16> {
    let holds = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
    };
    let line = nodes.lines().find(|line| line.split_whitespace().skip(8).any(holds))?;
    let mut words = line.split_whitespace().skip(1);
    let address = words.next()?.split('@').next()?;
    let is_failed = words.next()?.split(',').any(|flag| flag.starts_with("fail"));
    if is_failed { None } else { Some(address.parse::<SocketAddr>().ok()?.port()) }
}
