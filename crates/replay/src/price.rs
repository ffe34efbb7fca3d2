//! The cost of input: at the prices of the model table, or with other cache prices.

use std::fmt;
use std::str::FromStr;
use tidegate_tokens::{Model, Prices};

use crate::cache::Billed;

/// How repeated input is billed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regime {
    /// The model's own prices.
    Table,
    /// Multiples of the model's input price.
    Multiples { cached: f64, write: f64 },
}

/// The cost of the input of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// In tokens at the plain input price, so that costs compare even without a known price.
    pub units: f64,
    pub usd: f64,
    /// The number of requests without a known price, which `usd` excludes.
    pub unpriced: u64,
}

impl Regime {
    /// The model with the prices of this regime. The engine decides by the same prices.
    #[must_use]
    pub fn applied(self, model: &Model) -> Model {
        let Regime::Multiples { cached, write } = self else { return model.clone() };
        let known = model.prices;
        let input = known.map_or(1.0, |prices| prices.input);
        let prices = Prices {
            input,
            cached_input: Some(input * cached),
            cache_write: Some(input * write),
            output: known.and_then(|prices| prices.output),
        };
        Model { prices: Some(prices), ..model.clone() }
    }

    /// The cost of a request to `model`, given with its prices from the table.
    #[must_use]
    pub fn cost(self, model: &Model, billed: &Billed) -> Cost {
        // Without a price, assumes the same discount that the proxy assumes.
        let assumed = Prices { input: 1.0, cached_input: Some(0.1), cache_write: None, output: None };
        let prices = self.applied(model).prices.unwrap_or(assumed);
        let sum = billed.read as f64 * prices.cached()
            + billed.written as f64 * prices.written()
            + billed.plain as f64 * prices.input;
        // Avoids dividing by zero for a free model.
        let units = if prices.input > 0.0 { sum / prices.input } else { 0.0 };
        match model.prices {
            Some(_) => Cost { units, usd: sum / 1e6, unpriced: 0 },
            None => Cost { units, usd: 0.0, unpriced: 1 },
        }
    }
}

impl Cost {
    pub fn add(&mut self, other: &Cost) {
        self.units += other.units;
        self.usd += other.usd;
        self.unpriced += other.unpriced;
    }

    /// `None` if a price is unknown, because the sum would be incomplete.
    #[must_use]
    pub fn known_usd(&self) -> Option<f64> {
        (self.unpriced == 0).then_some(self.usd)
    }

    /// The ratio to the cost `raw`, in dollars if both are known.
    #[must_use]
    pub fn ratio_to(&self, raw: &Cost) -> f64 {
        let (own, other) = match (self.known_usd(), raw.known_usd()) {
            (Some(own), Some(other)) if other > 0.0 => (own, other),
            _ => (self.units, raw.units),
        };
        if other > 0.0 { own / other } else { 1.0 }
    }
}

impl FromStr for Regime {
    type Err = String;

    fn from_str(text: &str) -> Result<Regime, String> {
        if text == "table" {
            return Ok(Regime::Table);
        }
        let error = || {
            format!(
                "invalid price `{text}`: use `table` for the model's own prices, a multiple of the input price such as `0.1` \
                 for cached input, or two such as `0.1/1.25` for cache reads and writes"
            )
        };
        let number =
            |part: &str| part.trim().parse().ok().filter(|value: &f64| (0.0..=100.0).contains(value));
        let (cached, write) = match text.split_once('/') {
            Some((cached, write)) => (number(cached), number(write)),
            None => (number(text), Some(1.0)),
        };
        match (cached, write) {
            (Some(cached), Some(write)) => Ok(Regime::Multiples { cached, write }),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Regime::Table => f.write_str("the model's own prices"),
            Regime::Multiples { cached, write } if *write == 1.0 => write!(f, "cached input ×{cached}"),
            Regime::Multiples { cached, write } => write!(f, "cached input ×{cached}, writes ×{write}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_tokens::ModelTable;

    const BILLED: Billed = Billed { read: 1_000_000, written: 100_000, plain: 10_000, is_moved: false };

    #[test]
    fn read_written_and_plain_tokens_have_their_own_prices() {
        let model = ModelTable::builtin().lookup("gpt-4o");
        let cost = Regime::Table.cost(&model, &BILLED);
        assert!((cost.usd - (1.25 + 0.25 + 0.025)).abs() < 1e-9, "{cost:?}");
        assert!((cost.units - 610_000.0).abs() < 1e-3, "{cost:?}");
        let dear: Regime = "0.1/1.25".parse().unwrap();
        assert!((dear.cost(&model, &BILLED).units - 235_000.0).abs() < 1e-3);
    }

    #[test]
    fn an_unpriced_model_has_no_dollar_cost_but_can_be_compared() {
        let model = ModelTable::builtin().lookup("unknown-model");
        let cost = Regime::Table.cost(&model, &BILLED);
        assert_eq!(cost.known_usd(), None);
        assert!((cost.units - 210_000.0).abs() < 1e-3);
        let half = Cost { units: cost.units / 2.0, ..cost };
        assert!((half.ratio_to(&cost) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn prices_parse_as_multiples() {
        assert_eq!("table".parse(), Ok(Regime::Table));
        assert_eq!("0.5".parse(), Ok(Regime::Multiples { cached: 0.5, write: 1.0 }));
        assert_eq!("0.1/1.25".parse::<Regime>().unwrap().to_string(), "cached input ×0.1, writes ×1.25");
        for wrong in ["", "cheap", "-1", "0.1/", "NaN", "0.1/0.2/0.3"] {
            assert!(wrong.parse::<Regime>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
