use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tidegate_engine::Tokens;

/// Corrects our token counts of each model by the `usage` that the provider reports.
///
/// Keeps a moving average of `reported / counted` per model. The first five reports are averaged; after that, each new one weighs a
/// fifth, so the average follows a change of traffic within a few turns. Ratios are clamped to [`LOWEST`](Self::LOWEST) and
/// [`HIGHEST`](Self::HIGHEST), and a report far outside is ignored, so wrong reports can neither disable the budget nor block the
/// traffic. The same reports in the same order give the same factors.
///
/// The caller chooses the key, usually the model's name. At most [`MODELS`](Self::MODELS) keys are kept, and the least recently
/// reported one is evicted.
#[derive(Debug, Default)]
pub struct Calibration {
    learnt: RwLock<Learnt>,
}

#[derive(Debug, Default)]
struct Learnt {
    ratios: HashMap<String, Ratio>,
    reports: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ratio {
    mean: f64,
    reports: u32,
    /// The number of the last report, to find the least recently reported model.
    last: u64,
}

impl Calibration {
    pub const LOWEST: f64 = 0.5;
    pub const HIGHEST: f64 = 2.0;
    pub const MODELS: usize = 1_000;
    /// Smaller requests are ignored: a few unknown delimiters would look like a large error.
    pub const SMALLEST: Tokens = Tokens(200);

    #[must_use]
    pub fn new() -> Calibration {
        Calibration::default()
    }

    /// Learns from one request. `counted` is our own uncorrected count of what was forwarded, and `reported` the provider's
    /// `prompt_tokens`.
    pub fn observe(&self, model: &str, counted: Tokens, reported: Tokens) {
        if counted < Self::SMALLEST || reported == Tokens::ZERO || model.len() > MAX_NAME_LENGTH {
            return;
        }
        let ratio = reported.0 as f64 / counted.0 as f64;
        if !(Self::LOWEST / 2.0..=Self::HIGHEST * 2.0).contains(&ratio) {
            // No tokenizer is that far off, so the report is not about this request.
            return;
        }
        let ratio = ratio.clamp(Self::LOWEST, Self::HIGHEST);
        let mut learnt = self.learnt.write().unwrap_or_else(PoisonError::into_inner);
        learnt.reports += 1;
        let now = learnt.reports;
        if let Some(known) = learnt.ratios.get_mut(model) {
            known.reports = known.reports.saturating_add(1);
            let weight = (1.0 / f64::from(known.reports)).max(MIN_WEIGHT);
            known.mean += weight * (ratio - known.mean);
            known.last = now;
            return;
        }
        if learnt.ratios.len() >= Self::MODELS {
            let oldest =
                learnt.ratios.iter().min_by_key(|(_, ratio)| ratio.last).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                learnt.ratios.remove(&oldest);
            }
        }
        learnt.ratios.insert(model.to_owned(), Ratio { mean: ratio, reports: 1, last: now });
    }

    /// The factor to multiply a count of this model with; 1 before the first report.
    #[must_use]
    pub fn factor(&self, model: &str) -> f64 {
        let learnt = self.learnt.read().unwrap_or_else(PoisonError::into_inner);
        learnt.ratios.get(model).map_or(1.0, |ratio| ratio.mean)
    }

    /// Corrects a count of this model, rounded to the nearest token.
    #[must_use]
    pub fn corrected(&self, model: &str, counted: Tokens) -> Tokens {
        Tokens((counted.0 as f64 * self.factor(model)).round() as u64)
    }
}

/// The minimum weight of a report.
const MIN_WEIGHT: f64 = 0.2;

/// Clients choose the names, so both their number and their length must be bounded.
const MAX_NAME_LENGTH: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_the_ratio_of_an_unknown_tokenizer() {
        let calibration = Calibration::new();
        assert_eq!(calibration.factor("m"), 1.0);
        for turn in 1..=5 {
            calibration.observe("m", Tokens(1_000 * turn), Tokens(1_300 * turn));
        }
        assert!((calibration.factor("m") - 1.3).abs() < 1e-9);
        assert_eq!(calibration.corrected("m", Tokens(1_000)), Tokens(1_300));
        assert_eq!(calibration.factor("other"), 1.0);
    }

    #[test]
    fn later_reports_weigh_a_fifth() {
        let calibration = Calibration::new();
        for _ in 0..10 {
            calibration.observe("m", Tokens(1_000), Tokens(1_000));
        }
        calibration.observe("m", Tokens(1_000), Tokens(1_500));
        assert!((calibration.factor("m") - 1.1).abs() < 1e-9);
    }

    #[test]
    fn ratios_are_clamped_and_implausible_reports_ignored() {
        let calibration = Calibration::new();
        calibration.observe("high", Tokens(1_000), Tokens(3_000));
        calibration.observe("low", Tokens(1_000), Tokens(300));
        calibration.observe("absurd", Tokens(1_000), Tokens(u64::MAX));
        calibration.observe("constant", Tokens(1_000_000), Tokens(10));
        calibration.observe("tiny", Tokens(10), Tokens(19));
        calibration.observe("silent", Tokens(1_000), Tokens::ZERO);
        let factors = ["high", "low"].map(|model| calibration.factor(model));
        assert_eq!(factors, [2.0, 0.5]);
        for ignored in ["absurd", "constant", "tiny", "silent"] {
            assert_eq!(calibration.factor(ignored), 1.0, "{ignored}");
        }
    }

    #[test]
    fn the_least_recently_reported_model_is_evicted() {
        let calibration = Calibration::new();
        for model in 0..Calibration::MODELS {
            calibration.observe(&model.to_string(), Tokens(1_000), Tokens(2_000));
        }
        calibration.observe("0", Tokens(1_000), Tokens(2_000));
        calibration.observe("new", Tokens(1_000), Tokens(2_000));
        let factors = ["0", "1", "2", "new"].map(|model| calibration.factor(model));
        assert_eq!(factors, [2.0, 1.0, 2.0, 2.0]);
        calibration.observe(&"x".repeat(10_000), Tokens(1_000), Tokens(2_000));
        assert_eq!(calibration.learnt.read().unwrap().ratios.len(), Calibration::MODELS);
    }
}
