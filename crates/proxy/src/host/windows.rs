//! The windows of models, as upstreams have named them. Processes that share a store learn from each other.
//!
//! What is learnt does not stand for ever: an upstream may be restarted with a larger window. It is forgotten after a day, the list of models
//! corrects it, and so does an answer to a longer request.

mod fact;
mod table;

use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tidegate_config::Upstream;
use tidegate_engine::Tokens;
use tidegate_store::{Conversations, wall_clock};
use tidegate_telemetry::WindowFact;

pub use fact::{LearntWindow, Source};
use table::{Key, MAX_WINDOWS, Table};

#[derive(Debug, Default)]
pub(crate) struct LearntWindows {
    windows: RwLock<Table>,
    /// When the store was last asked, in milliseconds since the Unix epoch; 0 if never.
    refreshed: AtomicU64,
}

/// The topic of the store that keeps them, each by the upstream's URL and the model.
pub const LEARNT_WINDOWS: &str = "windows";

/// How long what other processes have learnt is not asked for again where a window is certain, in milliseconds.
const FRESH: u64 = 1_000;

/// Clients choose the names of models, so their length is bounded, as is their number.
const MAX_NAME_LENGTH: usize = 256;

impl LearntWindows {
    /// The window that this upstream has named for this model.
    pub(crate) fn get(&self, upstream: &Upstream, model: &str) -> Option<Tokens> {
        let windows = self.windows.read().unwrap_or_else(PoisonError::into_inner);
        if windows.is_empty() {
            return None;
        }
        windows.get(&key(upstream, model), wall_clock())
    }

    /// All of them, by upstream and model.
    pub(crate) fn all(&self) -> Vec<WindowFact> {
        self.windows.read().unwrap_or_else(PoisonError::into_inner).all(wall_clock())
    }

    /// Learns a window, and tells the other processes. Returns whether it is news.
    pub(crate) async fn learn(
        &self,
        conversations: &Arc<Conversations>,
        upstream: &Upstream,
        model: &str,
        window: LearntWindow,
    ) -> bool {
        if model.len() > MAX_NAME_LENGTH {
            return false;
        }
        let key = key(upstream, model);
        let name = format!("{} {}", key.0, key.1);
        let learnt = self.windows.write().unwrap_or_else(PoisonError::into_inner).learn(key, window);
        if learnt.is_stored() {
            let fact = Bytes::from(window.to_string());
            // A store that fails is reported where requests use it, and this process knows.
            let _ = conversations.publish(LEARNT_WINDOWS, &name, fact).await;
        }
        learnt.is_news()
    }

    /// Forgets a window that an answer has shown to be larger: the upstream has found `accepted` tokens in its request.
    pub(crate) async fn outgrow(
        &self,
        conversations: &Arc<Conversations>,
        upstream: &Upstream,
        model: &str,
        accepted: Tokens,
    ) {
        if self.get(upstream, model).is_some_and(|window| window < accepted) {
            self.learn(conversations, upstream, model, LearntWindow::forgotten(wall_clock())).await;
        }
    }

    /// Reads what other processes have learnt. Where a window is certain without it, that may be a moment old.
    pub(crate) async fn refresh(&self, conversations: &Arc<Conversations>, is_certain: bool) {
        let fresh = if is_certain { FRESH } else { 0 };
        let (now, last) = (wall_clock(), self.refreshed.load(Ordering::Relaxed));
        let is_fresh = last > 0 && (!conversations.is_shared() || now.saturating_sub(last) < fresh);
        if is_fresh
            || self.refreshed.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let Ok(facts) = conversations.published(LEARNT_WINDOWS).await else {
            // The next request tries again.
            self.refreshed.store(last, Ordering::Relaxed);
            return;
        };
        let is_overgrown = facts.len() > 2 * MAX_WINDOWS;
        {
            let mut windows = self.windows.write().unwrap_or_else(PoisonError::into_inner);
            for (name, fact) in facts {
                // URLs have no spaces.
                let key =
                    name.split_once(' ').map(|(upstream, model)| (upstream.to_owned(), model.to_owned()));
                if let (Some(key), Some(window)) = (key, LearntWindow::of_fact(&fact)) {
                    windows.adopt(key, window, now);
                }
            }
        }
        if is_overgrown {
            // Every request reads all of them. What is still in use is learnt again.
            let _ = conversations.forget(LEARNT_WINDOWS).await;
        }
    }
}

fn key(upstream: &Upstream, model: &str) -> Key {
    (upstream.url.to_string(), model.to_owned())
}
