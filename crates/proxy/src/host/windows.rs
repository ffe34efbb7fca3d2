//! The windows of models, as upstreams have named them. Processes that share a store learn from each other.

use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tidegate_config::Upstream;
use tidegate_engine::{ContextWindow, Tokens};
use tidegate_store::{Conversations, wall_clock};
use tidegate_telemetry::WindowFact;

#[derive(Debug, Default)]
pub(crate) struct LearntWindows {
    windows: RwLock<HashMap<Key, Tokens>>,
    /// When the store was last asked, in milliseconds since the Unix epoch; 0 if never.
    refreshed: AtomicU64,
}

/// The upstream's URL and the name of the model.
type Key = (String, String);

/// The topic of the store that keeps them, each by the upstream's URL and the model.
pub const LEARNT_WINDOWS: &str = "windows";

/// How long what other processes have learnt is not asked for again where a window is certain, in milliseconds.
const FRESH: u64 = 1_000;

/// Clients choose the names of models, so both their number and their length are bounded.
const MAX_WINDOWS: usize = 1_000;
const MAX_NAME_LENGTH: usize = 256;

impl LearntWindows {
    /// The window that this upstream has named for this model.
    pub(crate) fn get(&self, upstream: &Upstream, model: &str) -> Option<Tokens> {
        let windows = self.windows.read().unwrap_or_else(PoisonError::into_inner);
        if windows.is_empty() {
            return None;
        }
        windows.get(&(upstream.url.to_string(), model.to_owned())).copied()
    }

    /// All of them, by upstream and model.
    pub(crate) fn all(&self) -> Vec<WindowFact> {
        let windows = self.windows.read().unwrap_or_else(PoisonError::into_inner);
        let one = |((upstream, model), window): (&Key, &Tokens)| WindowFact {
            upstream: upstream.clone(),
            model: model.clone(),
            tokens: window.0,
        };
        let mut all: Vec<WindowFact> = windows.iter().map(one).collect();
        all.sort_by(|a, b| (&a.upstream, &a.model).cmp(&(&b.upstream, &b.model)));
        all
    }

    /// Learns a window, and tells the other processes. Returns whether it is news.
    pub(crate) async fn learn(
        &self,
        conversations: &Arc<Conversations>,
        upstream: &Upstream,
        model: &str,
        window: Tokens,
    ) -> bool {
        if model.len() > MAX_NAME_LENGTH || !self.insert((upstream.url.to_string(), model.to_owned()), window)
        {
            return false;
        }
        let fact = Bytes::from(window.0.to_string());
        // A store that fails is reported where requests use it, and this process knows.
        let _ = conversations.publish(LEARNT_WINDOWS, &format!("{} {model}", upstream.url), fact).await;
        true
    }

    /// Reads what other processes have learnt. For a model whose window is certain, that may be a moment old.
    pub(crate) async fn refresh(&self, conversations: &Arc<Conversations>, window: ContextWindow) {
        let fresh = if window.certain().is_some() { FRESH } else { 0 };
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
        for (name, fact) in facts {
            // URLs have no spaces.
            let key = name.split_once(' ').map(|(upstream, model)| (upstream.to_owned(), model.to_owned()));
            let window = std::str::from_utf8(&fact).ok().and_then(|window| window.parse().ok());
            if let (Some(key), Some(window)) = (key, window) {
                self.insert(key, Tokens(window));
            }
        }
    }

    fn insert(&self, key: Key, window: Tokens) -> bool {
        let mut windows = self.windows.write().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MAX_WINDOWS && !windows.contains_key(&key) {
            return false;
        }
        windows.insert(key, window) != Some(window)
    }
}
