use std::collections::BTreeMap;

/// The counters and labels of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub labels: BTreeMap<String, String>,
    pub counts: BTreeMap<String, u64>,
    /// The time of the first turn, in milliseconds since the Unix epoch.
    pub first: u64,
    /// The time of the last turn.
    pub last: u64,
}

impl Head {
    /// Adds a request. `is_new` says whether it is also a new turn, not a retry.
    pub(crate) fn add(
        &mut self,
        at: u64,
        is_new: bool,
        counts: &[(&'static str, u64)],
        labels: Vec<(&'static str, String)>,
    ) {
        self.first = if self.last == 0 { at } else { self.first.min(at) };
        self.last = self.last.max(at);
        for (name, count) in counts.iter().copied().chain([("requests", 1), ("turns", u64::from(is_new))]) {
            let counter = self.counts.entry(name.to_owned()).or_default();
            *counter = counter.saturating_add(count);
        }
        self.labels.extend(labels.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
}
