//! Background load, and the messages recorded for a conversation.

use super::turns::{degraded, timed_turn};
use crate::support::client::admin;
use crate::support::tidegate::Tidegate;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Clients that send turns until they are stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    clients: JoinSet<Vec<Sent>>,
}

/// One request of the load.
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) took: Duration,
    pub(crate) degraded: Option<String>,
}

impl Load {
    pub(crate) fn start(process: SocketAddr, clients: usize) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let mut set = JoinSet::new();
        for client in 0..clients {
            let stop = stop.clone();
            set.spawn(async move {
                let mut sent = Vec::new();
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    // Many conversations, so that a cluster has some on every server.
                    let name = format!("load-{client}-{}", number / 5);
                    let at = Instant::now();
                    let (reply, took) = timed_turn(process, &name, 3 + number % 5).await;
                    sent.push(Sent { at, took, degraded: degraded(&reply).map(str::to_owned) });
                    number += 1;
                }
                sent
            });
        }
        Load { stop, clients: set }
    }

    /// Stops the clients. Returns all requests in order of time.
    pub(crate) async fn stop(self) -> Vec<Sent> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all: Vec<Sent> = self.clients.join_all().await.into_iter().flatten().collect();
        all.sort_by_key(|sent| sent.at);
        all
    }
}

/// Every recorded message of a conversation, in order, from the admin API.
pub(crate) async fn timeline(process: &Tidegate, id: &str) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let path = format!("/api/conversations/{id}/messages?offset={}&limit=500", messages.len());
        let page: Value = admin(process.admin, &path).await.json();
        let Some(page) = page["messages"].as_array().filter(|page| !page.is_empty()) else { return messages };
        messages.extend(page.iter().cloned());
    }
}
