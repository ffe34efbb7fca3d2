use std::time::Duration;

use tidegate_engine::Tokens;

use crate::{Encoding, ImageRule};

/// What is known of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The table entry that matched, and the name that was asked for where nothing matched.
    pub name: String,
    /// Whether an entry of the table matched.
    pub is_known: bool,
    /// The largest input that the model takes.
    ///
    /// Some models take less input than their whole window (gpt-5: 272,000 of 400,000, the rest is for the answer). The
    /// table holds the smaller number, because a budget that exceeded it would be refused upstream. Nothing if the
    /// model is unknown: the caller falls back to its configured window.
    pub window: Option<Tokens>,
    /// Whether the configuration says so.
    pub has_own_window: bool,
    /// The longest answer that the model gives.
    pub max_output: Option<Tokens>,
    pub encoding: Encoding,
    pub fit: Fit,
    /// Nothing if unknown: a cost that rests on a guess is worse than none.
    pub prices: Option<Prices>,
    pub caching: Caching,
    pub images: ImageRule,
}

impl Model {
    /// A model that no entry describes.
    pub(crate) fn unknown(name: &str) -> Model {
        Model {
            name: name.to_owned(),
            is_known: false,
            window: None,
            has_own_window: false,
            max_output: None,
            encoding: Encoding::O200k,
            fit: Fit::Nearest,
            prices: None,
            caching: Caching::DEFAULT,
            images: ImageRule::DEFAULT,
        }
    }
}

/// How well the encoding fits the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is the model's own, by its maker or by the operator's word: our counts need no correction.
    Exact,
    /// It is the nearest that we have; what the upstream reports as used corrects our counts.
    Nearest,
}

/// Prices in USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub input: f64,
    /// Input that the provider had in its prompt cache. Nothing if the provider gives no discount.
    pub cached_input: Option<f64>,
    /// Input that the provider writes into its prompt cache. Nothing if writing costs no more than reading it uncached.
    pub cache_write: Option<f64>,
    pub output: Option<f64>,
}

impl Prices {
    /// The price of a repeated prefix.
    #[must_use]
    pub fn cached(&self) -> f64 {
        self.cached_input.unwrap_or(self.input)
    }

    /// The price of input that the cache does not hold yet.
    #[must_use]
    pub fn written(&self) -> f64 {
        self.cache_write.unwrap_or(self.input)
    }

    /// What one request cost, in USD. `cached` is the part of `input` that came from the prompt cache. Nothing if the
    /// answer has tokens and the model's output price is unknown.
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

/// When and how a provider caches the beginning of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// How long an unused prefix is kept. Where a provider names a span, this is its usual upper end: taking a warm cache
    /// for a cold one makes masking look free when it is not.
    pub ttl: Duration,
    /// Requests shorter than this are not cached.
    pub minimum: Tokens,
    /// Prefixes are cached in multiples of this.
    pub step: Tokens,
}

impl Caching {
    /// OpenAI's rule, which most compatible providers follow.
    pub const DEFAULT: Caching = Caching::of(600, 1_024, 128);

    pub(crate) const fn of(seconds: u64, minimum: u64, step: u64) -> Caching {
        Caching { ttl: Duration::from_secs(seconds), minimum: Tokens(minimum), step: Tokens(step) }
    }
}

/// What the configuration says about a model. What it leaves out stays as the table has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOverride {
    pub window: Option<Tokens>,
    pub max_output: Option<Tokens>,
    pub encoding: Option<Encoding>,
    pub input: Option<f64>,
    pub cached_input: Option<f64>,
    pub cache_write: Option<f64>,
    pub output: Option<f64>,
    pub cache_ttl: Option<Duration>,
}

impl ModelOverride {
    /// The model as the configuration wants it.
    ///
    /// A new input price without a cached one drops the table's discount: keeping `cached_input = 1.25` beside an input price
    /// of 1.00 would make a cache hit look dearer than a miss. The other prices of a model without an input price are of
    /// no use, so they are ignored.
    pub(crate) fn apply(&self, mut model: Model) -> Model {
        model.has_own_window = self.window.is_some();
        model.window = self.window.or(model.window);
        model.max_output = self.max_output.or(model.max_output);
        if let Some(encoding) = self.encoding {
            model.encoding = encoding;
            model.fit = if encoding == Encoding::Estimate { Fit::Nearest } else { Fit::Exact };
        }
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
    fn costs_are_billed_by_kind() {
        let million = Tokens(1_000_000);
        assert_eq!(PRICES.cost(million, Tokens::ZERO, Tokens::ZERO), Some(2.5));
        assert_eq!(PRICES.cost(million, million, million), Some(8.5));
        assert_eq!(PRICES.cost(million, Tokens(u64::MAX), Tokens::ZERO), Some(0.5));
        let no_output = Prices { output: None, ..PRICES };
        assert_eq!(no_output.cost(million, million, Tokens::ZERO), Some(0.5));
        assert_eq!(no_output.cost(million, million, Tokens(1)), None);
    }

    #[test]
    fn an_override_changes_only_what_it_names() {
        let table = Model { window: Some(Tokens(8)), prices: Some(PRICES), ..Model::unknown("m") };
        let changed =
            ModelOverride { window: Some(Tokens(9)), cached_input: Some(0.1), ..ModelOverride::default() };
        let model = changed.apply(table.clone());
        assert_eq!(model.window, Some(Tokens(9)));
        assert_eq!(model.prices, Some(Prices { cached_input: Some(0.1), ..PRICES }));
        assert_eq!(ModelOverride::default().apply(table.clone()), table);
    }

    #[test]
    fn a_new_input_price_drops_the_old_discount() {
        let table = Model { prices: Some(PRICES), ..Model::unknown("m") };
        let cheap = ModelOverride { input: Some(0.3), ..ModelOverride::default() };
        let prices = cheap.apply(table).prices.unwrap();
        assert_eq!(prices, Prices { input: 0.3, cached_input: None, cache_write: None, output: Some(8.0) });
    }
}
