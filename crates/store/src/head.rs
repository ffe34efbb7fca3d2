use std::collections::BTreeMap;

/// What is known about a conversation without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub labels: BTreeMap<String, String>,
    pub counts: BTreeMap<String, u64>,
    /// The first and the last turn, in milliseconds since 1970.
    pub first: u64,
    pub last: u64,
}

impl Head {
    /// One more request; whether it was also one more turn, `is_new` says.
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
