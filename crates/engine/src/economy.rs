/// Which part of a request a provider caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheKind {
    /// Every prefix, without being asked.
    #[default]
    Automatic,
    /// Only what stands before a breakpoint that the request sets.
    Explicit,
    /// Nothing.
    None,
}

impl CacheKind {
    pub const ALL: [CacheKind; 3] = [CacheKind::Automatic, CacheKind::Explicit, CacheKind::None];

    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CacheKind::Automatic => "automatic",
            CacheKind::Explicit => "explicit",
            CacheKind::None => "none",
        }
    }
}

/// What a provider's cache is found by, before the messages: the model and the beginning of the prompt. Models share no cache, and after
/// another head a provider finds nothing of a conversation in its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheKey {
    /// A hash of the model's name; 0 if it is not known.
    pub model: u64,
    /// A hash of what the prompt begins with: tools, and the instructions before the first other message.
    pub head: u64,
}

impl CacheKey {
    /// Whether a request with this key was made to the model, as far as is known.
    pub(crate) fn is_of(self, model: u64) -> bool {
        self.model == model || self.model == 0
    }

    /// Whether a request with the other key can hit what one with this key has left in the cache.
    pub(crate) fn serves(self, other: CacheKey) -> bool {
        self.is_of(other.model) && self.head == other.head
    }
}

/// What a provider charges for input, and how long it caches a prefix.
///
/// Prices are multiples of the model's plain input price. So what a decision has cost can be weighed at any later price, and says the same
/// of a cheap and of a dear model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachePricing {
    /// The price of a token that is not in the cache: the input price, or the price of a cache write where the provider
    /// charges more for one.
    pub write: f64,
    /// The price of a token that is read from the cache.
    pub cached: f64,
    /// How long the provider caches a prefix that no request uses, in milliseconds.
    pub cache_life: u64,
}

impl CachePricing {
    /// A provider that has no prompt cache, or gives no discount for it.
    pub const WITHOUT_CACHE: CachePricing = CachePricing { write: 1.0, cached: 1.0, cache_life: 0 };

    /// The extra cost of a token that could have been read from the cache.
    pub(crate) fn miss_penalty(&self) -> f64 {
        (self.write - self.cached).max(0.0)
    }

    /// Whether the cache has expired since a request at `last`.
    pub(crate) fn is_cold(&self, last: Timestamp, now: Timestamp) -> bool {
        now.0.saturating_sub(last.0) > self.cache_life
    }
}

/// A point in time, in milliseconds since a fixed but arbitrary epoch. The engine has no clock: the caller passes the time in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u64);
