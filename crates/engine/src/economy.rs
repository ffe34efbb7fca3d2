/// What a token costs the client's owner, and how long the provider remembers a prefix.
///
/// Only the ratio of the prices matters, so they may be in any currency and per any number of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Economy {
    /// A token that the provider reads for the first time: the input price, or the price of writing to its cache.
    pub write: f64,
    /// A token that it has in its cache.
    pub cached: f64,
    /// How long it keeps a prefix that nobody asks for, in milliseconds.
    pub cache_life: u64,
}

impl Economy {
    /// A provider that bills every token alike.
    pub const WITHOUT_CACHE: Economy = Economy { write: 1.0, cached: 1.0, cache_life: 0 };

    /// What a token costs more when it is not in the cache.
    pub(crate) fn miss(&self) -> f64 {
        (self.write - self.cached).max(0.0)
    }
}

/// A moment, in milliseconds since any fixed one. The engine has no clock: whoever calls it brings the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u64);
