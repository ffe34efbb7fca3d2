//! A cluster of three masters, each with a replica.

use std::net::SocketAddr;
use std::process::Stdio;

use super::RedisServer;
use crate::loopback::until;

#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<RedisServer>,
}

impl RedisCluster {
    /// Returns once all servers report that the cluster works.
    pub async fn start() -> Self {
        RedisCluster::with(&[]).await
    }

    /// Starts with additional lines of configuration for every server.
    pub async fn with(config: &[&str]) -> Self {
        let lines = [
            "cluster-enabled yes",
            "cluster-config-file nodes.conf",
            "cluster-node-timeout 1000",
            // A replica may always replace its master, however old its data is.
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

    /// The current master for a key.
    pub async fn master_of(&self, key: &str) -> &RedisServer {
        let port = self.holder(key).await.expect("the live servers agree on the master");
        self.servers.iter().find(|server| server.port() == port).expect("it is one of ours")
    }

    /// Kills the master for a key. Returns its port.
    pub async fn kill_master_of(&self, key: &str) -> u16 {
        let master = self.master_of(key).await;
        master.kill();
        master.port()
    }

    /// Waits until all live servers agree that another server holds the key.
    pub async fn wait_promotion(&self, key: &str, old: u16) {
        until("a replica is promoted", async || self.holder(key).await.is_some_and(|port| port != old)).await;
    }

    async fn join(&self) {
        let mut command = tokio::process::Command::new("redis-cli");
        command.args(["--cluster", "create"]).stdin(Stdio::null()).kill_on_drop(true);
        command.args(self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())));
        command.args(["--cluster-replicas", "1", "--cluster-yes"]);
        let output = command.output().await.expect("redis-cli has just been used");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "redis-cli could not create a cluster:\n{stdout}");
        for server in &self.servers {
            until("a server sees the whole cluster", async || {
                let is_ok = server.cli(&["cluster", "info"]).await.contains("cluster_state:ok");
                let replicas = server.cli(&["cluster", "nodes"]).await.matches(" slave ").count()
                    + server.cli(&["cluster", "nodes"]).await.matches("myself,slave").count();
                let role = server.cli(&["role"]).await;
                is_ok && replicas == 3 && (role.starts_with("master") || role.contains("connected"))
            })
            .await;
        }
    }

    /// The port of the master for a key. `None` if the live servers disagree.
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

/// Parses the output of `CLUSTER NODES`: id, address, flags, five more fields, and then ranges of slots.
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
