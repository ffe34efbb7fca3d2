//! A Redis that acknowledges only what is on its disk, and everything that can happen to it.

use std::time::Duration;
use tidegate_testkit::{RedisServer, TcpProxy};
use tokio::time::sleep;

/// A server, and the line to it.
pub(super) struct Chaos {
    redis: RedisServer,
    line: TcpProxy,
}

/// All faults, in turn.
pub(super) const FAULTS: [&str; 6] = ["stalled", "delayed", "restarted", "full", "frozen", "cut"];

/// How long a fault lasts: longer than requests wait for the store, and shorter than they wait for a history.
const LASTS: Duration = Duration::from_millis(400);

impl Chaos {
    pub(super) async fn start() -> Chaos {
        let redis = RedisServer::with(&["appendonly yes", "appendfsync always"]).await;
        let line = TcpProxy::start(([127, 0, 0, 1], redis.port()).into()).await;
        Chaos { redis, line }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.line.address())
    }

    /// Does this to the server, and undoes it.
    pub(super) async fn inflict(&self, fault: &str) {
        match fault {
            "stalled" => drop(self.redis.cli(&["CLIENT", "PAUSE", "400", "ALL"]).await),
            "delayed" => {
                self.line.delay(Duration::from_millis(100));
                sleep(LASTS).await;
                self.line.delay(Duration::ZERO);
            }
            // It has to read everything again.
            "restarted" => {
                self.redis.kill();
                sleep(LASTS).await;
                self.redis.restart().await;
            }
            "full" => {
                self.redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
                sleep(LASTS).await;
                self.redis.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
            }
            "frozen" => {
                self.redis.freeze();
                sleep(LASTS).await;
                self.redis.thaw();
            }
            _ => self.line.cut(),
        }
    }

    /// Removes all conversations, as if they had expired.
    pub(super) async fn expire(&self) {
        let script = "for _, key in ipairs(redis.call('KEYS', 'tg:1:*')) do if key:sub(-2) ~= ':g' then redis.call('DEL', key) end end";
        self.redis.cli(&["EVAL", script, "0"]).await;
    }
}
