//! The learnt windows of this process.

use super::fact::LearntWindow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_engine::Tokens;
use tidegate_telemetry::WindowFact;

/// The upstream's URL and the name of the model.
pub(super) type Key = (String, String);

/// Clients choose the names of models, and lists can be long. Beyond this, the window that was not asked for the longest is forgotten.
pub(super) const MAX_WINDOWS: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Table(HashMap<Key, Entry>);

#[derive(Debug)]
struct Entry {
    window: LearntWindow,
    /// When a request last asked for it, in milliseconds since the Unix epoch.
    used: AtomicU64,
}

/// What a table does with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learning {
    /// Something that stands longer is known.
    Ignored,
    Known,
    /// It is known, and has to be written again so that it does not expire.
    Repeated,
    News,
}

impl Learning {
    pub(super) fn is_stored(self) -> bool {
        matches!(self, Learning::Repeated | Learning::News)
    }

    pub(super) fn is_news(self) -> bool {
        self == Learning::News
    }
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, key: &Key, now: u64) -> Option<Tokens> {
        let entry = self.0.get(key)?;
        entry.used.store(now, Ordering::Relaxed);
        entry.window.tokens(now)
    }

    pub(super) fn all(&self, now: u64) -> Vec<WindowFact> {
        let one = |((upstream, model), entry): (&Key, &Entry)| {
            let tokens = entry.window.tokens(now)?.0;
            Some(WindowFact { upstream: upstream.clone(), model: model.clone(), tokens })
        };
        let mut all: Vec<WindowFact> = self.0.iter().filter_map(one).collect();
        all.sort_by(|a, b| (&a.upstream, &a.model).cmp(&(&b.upstream, &b.model)));
        all
    }

    pub(super) fn learn(&mut self, key: Key, window: LearntWindow) -> Learning {
        let known = self.0.get(&key).map(|entry| entry.window).filter(|known| known.is_alive(window.at()));
        let learning = match known {
            Some(known) if window.repeats(&known) => return Learning::Known,
            Some(known) if !window.corrects(&known) => return Learning::Ignored,
            Some(known) if window.tokens(window.at()) == known.tokens(window.at()) => Learning::Repeated,
            Some(_) | None => Learning::News,
        };
        self.insert(key, window);
        learning
    }

    /// Takes over what another process has learnt, if that is newer.
    pub(super) fn adopt(&mut self, key: Key, window: LearntWindow, now: u64) {
        let is_older = self.0.get(&key).is_some_and(|known| window.at() <= known.window.at());
        if !is_older && window.is_alive(now) {
            self.insert(key, window);
        }
    }

    fn insert(&mut self, key: Key, window: LearntWindow) {
        if let Some(entry) = self.0.get_mut(&key) {
            entry.window = window;
            return;
        }
        if self.0.len() >= MAX_WINDOWS
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, entry)| entry.last()).map(|(key, _)| key.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(key, Entry { window, used: AtomicU64::new(0) });
    }
}

impl Entry {
    /// Windows that a request has asked for stay before those that were only listed.
    fn last(&self) -> (u64, u64) {
        (self.used.load(Ordering::Relaxed), self.window.at())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Source;
    use super::*;

    fn key(model: &str) -> Key {
        ("https://api.example.com".to_owned(), model.to_owned())
    }

    fn listed(tokens: u64, at: u64) -> LearntWindow {
        LearntWindow::new(Tokens(tokens), Source::List, at)
    }

    #[test]
    fn a_window_grows_and_shrinks_with_the_list() {
        let mut table = Table::default();
        assert_eq!(table.learn(key("m"), listed(20_000, 1)), Learning::News);
        assert_eq!(table.learn(key("m"), listed(20_000, 2)), Learning::Known);
        for tokens in [40_000, 10_000] {
            assert_eq!(table.learn(key("m"), listed(tokens, 3)), Learning::News);
            assert_eq!(table.get(&key("m"), 3), Some(Tokens(tokens)));
        }
        assert_eq!(table.learn(key("m"), LearntWindow::forgotten(4)), Learning::News);
        assert_eq!((table.get(&key("m"), 4), table.all(4).len()), (None, 0));
    }

    #[test]
    fn a_window_in_use_stays_however_many_are_named() {
        let mut table = Table::default();
        table.learn(key("used"), listed(20_000, 1));
        table.learn(key("unused"), listed(20_000, 2));
        table.get(&key("used"), 5);
        for number in 0..2 * MAX_WINDOWS {
            table.learn(key(&format!("junk-{number}")), listed(300, 10));
            assert!(table.0.len() <= MAX_WINDOWS);
        }
        assert_eq!(table.get(&key("used"), 11), Some(Tokens(20_000)));
        assert_eq!(table.get(&key("unused"), 11), None);
        let newest = format!("junk-{}", 2 * MAX_WINDOWS - 1);
        assert_eq!(table.get(&key(&newest), 11), Some(Tokens(300)));
    }

    #[test]
    fn what_another_process_has_learnt_counts_if_it_is_newer() {
        let mut table = Table::default();
        table.adopt(key("m"), listed(20_000, 5), 6);
        table.adopt(key("m"), listed(30_000, 4), 6);
        assert_eq!(table.get(&key("m"), 6), Some(Tokens(20_000)));
        table.adopt(key("m"), LearntWindow::forgotten(7), 7);
        assert_eq!(table.get(&key("m"), 7), None);
        table.adopt(key("old"), listed(20_000, 0), u64::MAX);
        assert!(!table.0.contains_key(&key("old")));
    }
}
