//! What input costs: as the model table says, or as if the provider billed otherwise.

use std::fmt;
use std::str::FromStr;
use tidegate_tokens::{Model, Prices};

use crate::cache::Billed;

/// A way of billing repeated input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regime {
    /// The prices of each model.
    Table,
    /// Multiples of each model's input price.
    Multiples { cached: f64, write: f64 },
}

/// What the input of requests costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// In tokens at the plain input price: what it costs whatever the price is.
    pub units: f64,
    pub usd: f64,
    /// How many requests have no known price, so that `usd` lacks them.
    pub unpriced: u64,
}

impl Regime {
    /// The model as it would be billed. The engine's arithmetic sees the same prices.
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

    /// What a request costs whose model, as the table has it, is `model`.
    #[must_use]
    pub fn cost(self, model: &Model, billed: &Billed) -> Cost {
        // Without a price the same discount is assumed as where the proxy has to decide without one.
        let assumed = Prices { input: 1.0, cached_input: Some(0.1), cache_write: None, output: None };
        let prices = self.applied(model).prices.unwrap_or(assumed);
        let sum = billed.read as f64 * prices.cached()
            + billed.written as f64 * prices.written()
            + billed.plain as f64 * prices.input;
        // A model that is free costs nothing in any unit.
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

    /// Nothing where a price is unknown: a sum without it would look like all.
    #[must_use]
    pub fn known_usd(&self) -> Option<f64> {
        (self.unpriced == 0).then_some(self.usd)
    }

    /// How many times as much as `raw`: in dollars where both are known.
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
        let wrong = || {
            format!(
                "`{text}` is no price: use `table` for the model's own, a multiple of the input price such as `0.1` for \
                 cached input, or two such as `0.1/1.25` for reading and writing the cache"
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
            _ => Err(wrong()),
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
    fn tokens_are_billed_by_kind() {
        let model = ModelTable::builtin().lookup("gpt-4o");
        let cost = Regime::Table.cost(&model, &BILLED);
        assert!((cost.usd - (1.25 + 0.25 + 0.025)).abs() < 1e-9, "{cost:?}");
        assert!((cost.units - 610_000.0).abs() < 1e-3, "{cost:?}");
        let dear: Regime = "0.1/1.25".parse().unwrap();
        assert!((dear.cost(&model, &BILLED).units - 235_000.0).abs() < 1e-3);
    }

    #[test]
    fn a_model_without_a_price_costs_no_dollars_and_still_compares() {
        let model = ModelTable::builtin().lookup("nobody-knows-it");
        let cost = Regime::Table.cost(&model, &BILLED);
        assert_eq!(cost.known_usd(), None);
        assert!((cost.units - 210_000.0).abs() < 1e-3);
        let half = Cost { units: cost.units / 2.0, ..cost };
        assert!((half.ratio_to(&cost) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn prices_are_written_as_multiples() {
        assert_eq!("table".parse(), Ok(Regime::Table));
        assert_eq!("0.5".parse(), Ok(Regime::Multiples { cached: 0.5, write: 1.0 }));
        assert_eq!("0.1/1.25".parse::<Regime>().unwrap().to_string(), "cached input ×0.1, writes ×1.25");
        for wrong in ["", "cheap", "-1", "0.1/", "NaN", "0.1/0.2/0.3"] {
            assert!(wrong.parse::<Regime>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
