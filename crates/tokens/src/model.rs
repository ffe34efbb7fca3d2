use std::time::Duration;

use tidegate_engine::{Accuracy, AnswerRoom, CacheKind, ContextWindow, Tokens};

use crate::{Encoding, ImageRule};

/// What is known about a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The pattern of the entry that matched, or the name that was looked up if none did.
    pub name: String,
    /// Whether an entry matched.
    pub is_known: bool,
    /// The maximum input of the model.
    ///
    /// Some models accept less input than their window (gpt-5: 272,000 of 400,000; the rest is for the answer). This is the
    /// smaller number, because the upstream would reject anything above it.
    pub window: ContextWindow,
    /// The window of a request that asks for the longer one; `None` if there is one window only.
    pub long_window: Option<Tokens>,
    /// The hosts of the model's provider, where it has that window for certain. Empty if it may differ even there.
    pub hosts: &'static [&'static str],
    /// Whether the answer takes room from that.
    pub answer: AnswerRoom,
    /// The maximum length of an answer.
    pub max_output: Option<Tokens>,
    pub encoding: Encoding,
    pub fit: Fit,
    /// How many tokens the model typically has where [`encoding`](Self::encoding) has one. Corrects its counts until the upstream has
    /// reported a usage.
    pub typical_factor: f64,
    /// `None` if unknown: no cost is better than a guessed one.
    pub prices: Option<Prices>,
    pub caching: Caching,
    pub images: ImageRule,
}

impl Model {
    /// A model that no entry matches.
    pub(crate) fn unknown(name: &str) -> Model {
        Model {
            name: name.to_owned(),
            is_known: false,
            window: ContextWindow::Unknown,
            long_window: None,
            hosts: &[],
            answer: AnswerRoom::Shared,
            max_output: None,
            encoding: Encoding::O200k,
            fit: Fit::Nearest,
            typical_factor: 1.0,
            prices: None,
            caching: Caching::DEFAULT,
            images: ImageRule::DEFAULT,
        }
    }
}

impl Model {
    /// The same model for a request that asks for the longer window. `None` if there is none, or the operator has set the window. Not every
    /// account gets it, so it is typical at most.
    #[must_use]
    pub fn with_long_window(&self) -> Option<Model> {
        let window = self.long_window.filter(|_| !matches!(self.window, ContextWindow::Configured(_)))?;
        Some(Model { window: ContextWindow::Typical(window), ..self.clone() })
    }

    /// Whether an upstream at this authority (`host` or `host:port`) is the model's own provider, or one of its regions.
    #[must_use]
    pub fn is_served_by(&self, authority: &str) -> bool {
        let host = authority.split(':').next().unwrap_or_default().to_ascii_lowercase();
        self.hosts.iter().any(|own| {
            host.strip_suffix(own).is_some_and(|region| region.is_empty() || region.ends_with('.'))
        })
    }

    /// The window at this authority. What a provider has published is only typical of other hosts.
    #[must_use]
    pub fn window_at(&self, authority: &str) -> ContextWindow {
        match self.window {
            ContextWindow::Known(window) if !self.is_served_by(authority) => ContextWindow::Typical(window),
            window => window,
        }
    }

    /// How far our count of a text can be above the model's own. A count is corrected by `factor` before it is used.
    ///
    /// A vocabulary of another model has at most four tokens where the model's own has one, in scripts that only one of them knows. The
    /// estimate knows no vocabulary: the longest token of those that are public has 128 characters, for which it assumes forty.
    #[must_use]
    pub fn accuracy(&self, factor: f64) -> Accuracy {
        match (self.fit, self.encoding) {
            (Fit::Exact, _) => Accuracy::Exact,
            (Fit::Nearest, Encoding::Estimate) => Accuracy::Within(40.0 * factor.max(1.0)),
            (Fit::Nearest, _) => Accuracy::Within(4.0 * factor.max(1.0)),
        }
    }
}

impl Model {
    /// The most that the model itself can count where we count `counted`. Beside what our vocabulary misses, the provider adds marks and
    /// instructions of its own.
    #[must_use]
    pub fn most(&self, counted: Tokens) -> Tokens {
        let times = match self.fit {
            Fit::Exact => 1.25,
            Fit::Nearest => 4.0,
        };
        Tokens((counted.0 as f64 * times).ceil() as u64) + Tokens(1_024)
    }
}

/// How well the encoding matches the model's tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is the model's own, according to its provider or the operator. Counts need no correction.
    Exact,
    /// It is an approximation. The usage that the upstream reports corrects the counts.
    Nearest,
}

/// Prices in USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub input: f64,
    /// Input read from the prompt cache; `None` if nobody says. Then it is billed like any other.
    pub cached_input: Option<f64>,
    /// Input written to the prompt cache; `None` if there is no surcharge.
    pub cache_write: Option<f64>,
    pub output: Option<f64>,
}

impl Prices {
    /// The price of a cache write that is to live for an hour, as a multiple of the input price.
    pub const LONG_WRITE: f64 = 2.0;

    /// The same for a request whose cache is to live for an hour. Only providers that charge for writes have such caches.
    #[must_use]
    pub fn with_long_writes(self) -> Prices {
        let cache_write = self.cache_write.map(|write| write.max(self.input * Prices::LONG_WRITE));
        Prices { cache_write, ..self }
    }

    /// The price of input that is in the prompt cache.
    #[must_use]
    pub fn cached(&self) -> f64 {
        self.cached_input.unwrap_or(self.input)
    }

    /// The discount to assume where nobody says: what most providers give.
    pub const USUAL_DISCOUNT: f64 = 0.1;

    /// The price of input that is in the prompt cache, for decisions. Overlooking a discount makes an edit cost more than it saves, while
    /// assuming one only delays it.
    #[must_use]
    pub fn lowest_cached(&self) -> f64 {
        self.cached_input.unwrap_or(self.input * Prices::USUAL_DISCOUNT)
    }

    /// The price of input that is not in the prompt cache.
    #[must_use]
    pub fn written(&self) -> f64 {
        self.cache_write.unwrap_or(self.input)
    }

    /// The cost of one request, in USD. `cached` is the part of `input` that came from the prompt cache. Returns `None` if there is
    /// output and its price is unknown.
    #[must_use]
    pub fn cost(&self, input: Tokens, cached: Tokens, output: Tokens) -> Option<f64> {
        let cached = cached.min(input);
        let fresh = input.saturating_sub(cached);
        let answer = match self.output {
            Some(price) => output.0 as f64 * price,
            None if output == Tokens::ZERO => 0.0,
            None => return None,
        };
        Some((fresh.0 as f64 * self.written() + cached.0 as f64 * self.cached() + answer) / 1_000_000.0)
    }
}

/// How a provider caches prompt prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    pub kind: CacheKind,
    /// How long an unused prefix stays cached. If a provider states a range, this is its upper end: mistaking a warm cache for a
    /// cold one would make masking look free.
    pub ttl: Duration,
    /// Requests shorter than this are not cached.
    pub minimum: Tokens,
    /// Prefixes are cached in multiples of this length.
    pub step: Tokens,
}

impl Caching {
    /// OpenAI's rule, which most compatible providers share.
    pub const DEFAULT: Caching = Caching::of(600, 1_024, 128);

    pub(crate) const fn of(seconds: u64, minimum: u64, step: u64) -> Caching {
        Caching {
            kind: CacheKind::Automatic,
            ttl: Duration::from_secs(seconds),
            minimum: Tokens(minimum),
            step: Tokens(step),
        }
    }

    /// The same for a provider that caches only what stands before a breakpoint.
    pub(crate) const fn explicit(self) -> Caching {
        Caching { kind: CacheKind::Explicit, ..self }
    }
}

/// The operator's settings for a model. Absent values come from the built-in table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOverride {
    pub window: Option<Tokens>,
    pub max_output: Option<Tokens>,
    pub encoding: Option<Encoding>,
    pub input: Option<f64>,
    pub cached_input: Option<f64>,
    pub cache_write: Option<f64>,
    pub output: Option<f64>,
    pub cache: Option<CacheKind>,
    pub cache_ttl: Option<Duration>,
}

impl ModelOverride {
    /// Applies the settings to a model.
    ///
    /// A new input price drops the table's cache prices: with an input price of 1.00, the old `cached_input = 1.25` would make a
    /// cache hit more expensive than a miss. Other prices are ignored if the model has no input price.
    pub(crate) fn apply(&self, mut model: Model) -> Model {
        if let Some(window) = self.window {
            model.window = ContextWindow::Configured(window);
            model.answer = AnswerRoom::Shared;
        }
        model.max_output = self.max_output.or(model.max_output);
        if let Some(encoding) = self.encoding {
            model.encoding = encoding;
            model.fit = if encoding == Encoding::Estimate { Fit::Nearest } else { Fit::Exact };
            model.typical_factor = 1.0;
        }
        model.caching.kind = self.cache.unwrap_or(model.caching.kind);
        model.caching.ttl = self.cache_ttl.unwrap_or(model.caching.ttl);
        let known = match self.input {
            Some(input) => Some(Prices {
                input,
                cached_input: None,
                cache_write: None,
                output: model.prices.and_then(|prices| prices.output),
            }),
            None => model.prices,
        };
        model.prices = known.map(|prices| Prices {
            input: prices.input,
            cached_input: self.cached_input.or(prices.cached_input),
            cache_write: self.cache_write.or(prices.cache_write),
            output: self.output.or(prices.output),
        });
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices =
        Prices { input: 2.0, cached_input: Some(0.5), cache_write: Some(2.5), output: Some(8.0) };

    #[test]
    fn cost_bills_fresh_cached_and_output_tokens() {
        let million = Tokens(1_000_000);
        assert_eq!(PRICES.cost(million, Tokens::ZERO, Tokens::ZERO), Some(2.5));
        assert_eq!(PRICES.cost(million, million, million), Some(8.5));
        assert_eq!(PRICES.cost(million, Tokens(u64::MAX), Tokens::ZERO), Some(0.5));
        let no_output = Prices { output: None, ..PRICES };
        assert_eq!(no_output.cost(million, million, Tokens::ZERO), Some(0.5));
        assert_eq!(no_output.cost(million, million, Tokens(1)), None);
    }

    #[test]
    fn an_override_changes_only_what_it_sets() {
        let table =
            Model { window: ContextWindow::Known(Tokens(8)), prices: Some(PRICES), ..Model::unknown("m") };
        let changed =
            ModelOverride { window: Some(Tokens(9)), cached_input: Some(0.1), ..ModelOverride::default() };
        let model = changed.apply(table.clone());
        assert_eq!(model.window, ContextWindow::Configured(Tokens(9)));
        assert_eq!(model.prices, Some(Prices { cached_input: Some(0.1), ..PRICES }));
        assert_eq!(ModelOverride::default().apply(table.clone()), table);
    }

    #[test]
    fn a_published_window_is_certain_at_the_provider_alone() {
        let model = Model {
            window: ContextWindow::Known(Tokens(8)),
            hosts: &["api.example.com"],
            ..Model::unknown("m")
        };
        for own in ["api.example.com", "API.example.com:443", "eu.api.example.com"] {
            assert_eq!(model.window_at(own), ContextWindow::Known(Tokens(8)), "{own}");
        }
        for other in
            ["example.com", "my-api.example.com", "api.example.com.evil.org", "127.0.0.1:80", "[::1]", ""]
        {
            assert_eq!(model.window_at(other), ContextWindow::Typical(Tokens(8)), "{other}");
        }
        let configured = Model { window: ContextWindow::Configured(Tokens(9)), ..model };
        assert_eq!(configured.window_at("127.0.0.1:80"), ContextWindow::Configured(Tokens(9)));
    }

    #[test]
    fn a_discount_that_nobody_denies_is_assumed_for_decisions() {
        assert_eq!((PRICES.cached(), PRICES.lowest_cached()), (0.5, 0.5));
        let silent = Prices { cached_input: None, ..PRICES };
        assert_eq!((silent.cached(), silent.lowest_cached()), (2.0, 0.2));
        let none = Prices { cached_input: Some(2.0), ..PRICES };
        assert_eq!((none.cached(), none.lowest_cached()), (2.0, 2.0));
    }

    #[test]
    fn a_new_input_price_drops_the_cache_prices() {
        let table = Model { prices: Some(PRICES), ..Model::unknown("m") };
        let cheap = ModelOverride { input: Some(0.3), ..ModelOverride::default() };
        let prices = cheap.apply(table).prices.unwrap();
        assert_eq!(prices, Prices { input: 0.3, cached_input: None, cache_write: None, output: Some(8.0) });
    }
}
