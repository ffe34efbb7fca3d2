//! The built-in rows of the model table, one per family, as published by the providers in August 2026.

mod anthropic;
mod google;
mod hosted;
mod mistral;
mod openai;

use tidegate_engine::{AnswerRoom, ContextWindow, Tokens};

use crate::{Caching, Encoding, Fit, ImageRule, Model, Prices};

/// Returns every built-in row.
pub(crate) fn all() -> impl Iterator<Item = &'static Family> {
    [openai::FAMILIES, anthropic::FAMILIES, google::FAMILIES, mistral::FAMILIES, hosted::FAMILIES]
        .into_iter()
        .flatten()
}

/// One row: a name pattern, and what is known about the models that it matches.
///
/// A pattern with a star is for siblings without a row of their own. Its window is the smallest of the family, so that an unknown model
/// does not get too much input, it never refuses a request, and it has prices only if all known siblings have the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    pub(crate) pattern: &'static str,
    window: u64,
    long_window: Option<u64>,
    hosts: &'static [&'static str],
    certainty: Certainty,
    answer: AnswerRoom,
    max_output: u64,
    encoding: Encoding,
    fit: Fit,
    typical_factor: f64,
    prices: Option<Prices>,
    caching: Caching,
    images: ImageRule,
}

/// Whether every model that a row matches has its window where its provider hosts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    /// The provider has published it and hosts the model itself.
    Published,
    /// Hosts serve the model with windows of their own, or a request can ask for a larger one.
    Typical,
}

impl Family {
    pub(crate) fn model(&self) -> Model {
        Model {
            is_known: true,
            name: self.pattern.to_owned(),
            window: match self.certainty {
                Certainty::Published if !self.pattern.ends_with('*') && !self.hosts.is_empty() => {
                    ContextWindow::Known(Tokens(self.window))
                }
                Certainty::Published | Certainty::Typical => ContextWindow::Typical(Tokens(self.window)),
            },
            long_window: self.long_window.map(Tokens),
            hosts: self.hosts,
            answer: self.answer,
            max_output: Some(Tokens(self.max_output)),
            encoding: self.encoding,
            fit: self.fit,
            typical_factor: self.typical_factor,
            prices: self.prices,
            caching: self.caching,
            images: self.images,
        }
    }

    /// Marks the encoding as the models' own.
    const fn exact(mut self) -> Family {
        self.fit = Fit::Exact;
        self
    }

    /// Sets how many tokens the models have where ours has one.
    ///
    /// The factors were measured on recorded support chats, coding agents and long personal chats, as the mean of their ratios to
    /// `o200k_base`. Tool output and code are above it, prose is below.
    const fn factor(mut self, factor: f64) -> Family {
        self.typical_factor = factor;
        self
    }

    /// Sets the prices of input and output; [`cached`](Self::cached) and [`written`](Self::written) set those of the prompt cache.
    const fn usd(mut self, input: f64, output: f64) -> Family {
        self.prices = Some(Prices { input, cached_input: None, cache_write: None, output: Some(output) });
        self
    }

    const fn cached(mut self, price: f64) -> Family {
        if let Some(prices) = &mut self.prices {
            prices.cached_input = Some(price);
        }
        self
    }

    const fn written(mut self, price: f64) -> Family {
        if let Some(prices) = &mut self.prices {
            prices.cache_write = Some(price);
        }
        self
    }

    /// Marks the window as one that hosts and requests can differ from.
    const fn typical(mut self) -> Family {
        self.certainty = Certainty::Typical;
        self
    }

    /// Names the hosts of the provider, where the window is certain.
    const fn at(mut self, hosts: &'static [&'static str]) -> Family {
        self.hosts = hosts;
        self
    }

    /// Sets the window of requests that ask for the longer one.
    const fn long(mut self, window: u64) -> Family {
        self.long_window = Some(window);
        self
    }

    /// Marks the window as one for the input alone.
    const fn input_only(mut self) -> Family {
        self.answer = AnswerRoom::Separate;
        self
    }

    const fn encoding(mut self, encoding: Encoding) -> Family {
        self.encoding = encoding;
        self
    }

    const fn caching(mut self, caching: Caching) -> Family {
        self.caching = caching;
        self
    }

    const fn images(mut self, images: ImageRule) -> Family {
        self.images = images;
        self
    }
}

const fn family(pattern: &'static str, window: u64, max_output: u64) -> Family {
    Family {
        pattern,
        window,
        long_window: None,
        hosts: &[],
        certainty: Certainty::Published,
        answer: AnswerRoom::Shared,
        max_output,
        encoding: Encoding::O200k,
        fit: Fit::Nearest,
        typical_factor: 1.0,
        prices: None,
        caching: Caching::DEFAULT,
        images: ImageRule::DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::Calibration;

    #[test]
    fn every_row_is_plausible() {
        let mut patterns = HashSet::new();
        for family in all() {
            let pattern = family.pattern;
            assert!(patterns.insert(pattern), "{pattern} has two rows");
            assert_eq!(pattern, pattern.to_ascii_lowercase());
            assert!((8_192..=2_000_000).contains(&family.window), "{pattern}");
            assert!((2_048..=2_000_000).contains(&family.max_output), "{pattern}");
            let factor = family.typical_factor;
            assert!((1.0..=Calibration::HIGHEST).contains(&factor), "{pattern}");
            assert!(family.fit == Fit::Nearest || factor == 1.0, "{pattern} is counted exactly");
            let Some(prices) = family.prices else { continue };
            assert!((0.0..=100.0).contains(&prices.input), "{pattern}");
            assert!(prices.cached_input.is_none_or(|cached| cached < prices.input), "{pattern}");
            assert!(prices.cache_write.is_none_or(|write| write > prices.input), "{pattern}");
            assert!(prices.output.is_some_and(|output| output >= prices.input), "{pattern}");
        }
    }
}
