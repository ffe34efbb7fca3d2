//! How long the provider caches a request, and what that costs, where the request itself asks for it.

use crate::TurnInput;
use crate::policy::is_behind_a_message;
use std::time::Duration;
use tidegate_engine::{CacheKind, CachePricing};
use tidegate_tokens::Prices;
use tidegate_wire::{ParsedRequest, lives_an_hour};

/// The longer of the two lives that a breakpoint can ask for.
const LONG: Duration = Duration::from_secs(60 * 60);

impl TurnInput {
    /// The prices that break-even weighs, and the time for which a cache stays warm.
    ///
    /// Where nobody says what cached input costs, a discount is assumed: nearly all providers give one, and overlooking it makes masking
    /// cost more than it saves, while assuming it only delays masking.
    pub(crate) fn economy(&self, chat: &ParsedRequest) -> CachePricing {
        if !self.is_cached(chat) {
            return CachePricing::WITHOUT_CACHE;
        }
        let cache_life = u64::try_from(self.cache_life(chat).as_millis()).unwrap_or(u64::MAX);
        let (write, cached) = match self.prices(chat) {
            Some(prices) if prices.input > 0.0 => {
                (prices.written() / prices.input, prices.lowest_cached() / prices.input)
            }
            // What a free model reads again costs nothing.
            Some(_) => (1.0, 1.0),
            None if self.is_cached_for_long(chat) => (Prices::LONG_WRITE, Prices::USUAL_DISCOUNT),
            None => (1.0, Prices::USUAL_DISCOUNT),
        };
        CachePricing { write, cached, cache_life }
    }

    /// How long the provider keeps what it has cached of this request.
    pub(crate) fn cache_life(&self, chat: &ParsedRequest) -> Duration {
        let ttl = self.model.caching.ttl;
        if self.is_cached_for_long(chat) { ttl.max(LONG) } else { ttl }
    }

    /// The prices at which this request is billed.
    #[must_use]
    pub fn prices(&self, chat: &ParsedRequest) -> Option<Prices> {
        let prices = self.model.prices?;
        Some(if self.is_cached_for_long(chat) { prices.with_long_writes() } else { prices })
    }

    /// Whether a breakpoint behind the first instructions asks for the longer life. Those before it live at least as long.
    fn is_cached_for_long(&self, chat: &ParsedRequest) -> bool {
        let is_long = |index: usize| {
            let marker = chat.parsed[index].facts.breakpoint;
            let message = self.outline.messages[index].of(&self.body);
            is_behind_a_message(chat, index) && marker.is_some_and(|marker| lives_an_hour(marker.of(message)))
        };
        let asks = || self.outline.sets_long_breakpoints || chat.breakpoints().any(is_long);
        self.model.caching.kind == CacheKind::Explicit && asks()
    }
}
