use std::fmt;
use std::str::FromStr;

use tidegate_engine::Tokens;

/// Corrects our token counts of a model by the `usage` that the provider reports.
///
/// Keeps a moving average of `reported / counted`. The first five reports are averaged; after that, each new one weighs a fifth, so
/// the average follows a change of traffic within a few turns. Ratios are clamped to [`LOWEST`](Self::LOWEST) and
/// [`HIGHEST`](Self::HIGHEST), and a report far outside is ignored, so wrong reports can neither disable the budget nor block the
/// traffic. The same reports in the same order give the same factors.
///
/// The factor follows the average only when they are [`TOLERANCE`](Self::TOLERANCE) apart. So it is written to a store a few times and
/// not at every report, and every process that reads it decides the same.
///
/// Its text is the factor and the number of reports: `1.3 7`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    factor: f64,
    mean: f64,
    reports: u32,
}

impl Calibration {
    pub const LOWEST: f64 = 0.5;
    pub const HIGHEST: f64 = 2.0;
    /// How far the average may be from the factor, as a share of it.
    pub const TOLERANCE: f64 = 0.02;
    /// Smaller requests are ignored: a few unknown delimiters would look like a large error.
    pub const SMALLEST: Tokens = Tokens(200);

    /// The calibration before the first report.
    #[must_use]
    pub fn new() -> Calibration {
        Calibration { factor: 1.0, mean: 1.0, reports: 0 }
    }

    /// Learns from one request, and returns whether the factor has changed. `counted` is our own uncorrected count of what was
    /// forwarded, and `reported` the provider's `prompt_tokens`.
    pub fn observe(&mut self, counted: Tokens, reported: Tokens) -> bool {
        let Some(ratio) = ratio(counted, reported) else { return false };
        self.reports = self.reports.saturating_add(1);
        let weight = (1.0 / f64::from(self.reports)).max(MIN_WEIGHT);
        self.mean += weight * (ratio - self.mean);
        let is_moved = (self.mean / self.factor - 1.0).abs() > Self::TOLERANCE;
        if is_moved {
            self.factor = self.mean;
        }
        is_moved
    }

    /// The factor to multiply a count with; 1 before the first report.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// How many reports it rests on: of two calibrations of a model, the one with more is the later one.
    #[must_use]
    pub fn reports(&self) -> u32 {
        self.reports
    }

    /// Corrects a count, rounded to the nearest token.
    #[must_use]
    pub fn corrected(&self, counted: Tokens) -> Tokens {
        Tokens((counted.0 as f64 * self.factor).round() as u64)
    }
}

/// The minimum weight of a report.
const MIN_WEIGHT: f64 = 0.2;

/// `None` if the report says nothing about the tokenizer.
fn ratio(counted: Tokens, reported: Tokens) -> Option<f64> {
    const PLAUSIBLE: std::ops::RangeInclusive<f64> = Calibration::LOWEST / 2.0..=Calibration::HIGHEST * 2.0;
    if counted < Calibration::SMALLEST || reported == Tokens::ZERO {
        return None;
    }
    let ratio = reported.0 as f64 / counted.0 as f64;
    // No tokenizer is further off, so such a report is not about this request.
    PLAUSIBLE.contains(&ratio).then(|| ratio.clamp(Calibration::LOWEST, Calibration::HIGHEST))
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration::new()
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rust prints as many digits as are needed to read the same number again.
        write!(f, "{} {}", self.factor, self.reports)
    }
}

impl FromStr for Calibration {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Calibration, crate::Error> {
        let invalid = || crate::Error::InvalidCalibration(text.to_owned());
        let (factor, reports) = text.split_once(' ').ok_or_else(invalid)?;
        let factor: f64 = factor.parse().map_err(|_| invalid())?;
        let reports = reports.parse().map_err(|_| invalid())?;
        if !(Self::LOWEST..=Self::HIGHEST).contains(&factor) {
            return Err(invalid());
        }
        Ok(Calibration { factor, mean: factor, reports })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reports: &[(u64, u64)]) -> Calibration {
        let mut calibration = Calibration::new();
        for (counted, reported) in reports {
            calibration.observe(Tokens(*counted), Tokens(*reported));
        }
        calibration
    }

    #[test]
    fn learns_the_ratio_of_an_unknown_tokenizer() {
        assert_eq!(Calibration::new().factor(), 1.0);
        let learnt = after(&[(1_000, 1_300), (2_000, 2_600), (3_000, 3_900)]);
        assert!((learnt.factor() - 1.3).abs() < 1e-9);
        assert_eq!(learnt.corrected(Tokens(1_000)), Tokens(1_300));
    }

    #[test]
    fn later_reports_weigh_a_fifth() {
        let mut learnt = after(&[(1_000, 1_000); 10]);
        assert!(learnt.observe(Tokens(1_000), Tokens(1_500)));
        assert!((learnt.factor() - 1.1).abs() < 1e-9);
    }

    #[test]
    fn the_factor_follows_only_what_matters() {
        let mut learnt = after(&[(1_000, 1_300); 10]);
        let before = learnt.factor();
        for reported in [1_310, 1_290, 1_320, 1_280, 1_315] {
            assert!(!learnt.observe(Tokens(1_000), Tokens(reported)), "{learnt:?}");
            assert_eq!(learnt.factor(), before);
        }
        // A change that lasts is followed, however small each step is.
        assert!((0..10).any(|_| learnt.observe(Tokens(1_000), Tokens(1_350))));
        assert!((learnt.factor() / 1.35 - 1.0).abs() < Calibration::TOLERANCE * 1.5);
    }

    #[test]
    fn ratios_are_clamped_and_implausible_reports_ignored() {
        assert_eq!(after(&[(1_000, 3_000)]).factor(), 2.0);
        assert_eq!(after(&[(1_000, 300)]).factor(), 0.5);
        for ignored in [(1_000, u64::MAX), (1_000_000, 10), (10, 19), (1_000, 0)] {
            assert_eq!(after(&[ignored]), Calibration::new(), "{ignored:?}");
        }
    }

    #[test]
    fn another_process_reads_the_same_factor() {
        let learnt = after(&[(1_000, 1_301), (3_000, 3_337), (7_777, 9_999)]);
        let read: Calibration = learnt.to_string().parse().unwrap();
        assert_eq!((read.factor(), read.reports()), (learnt.factor(), 3));
        for invalid in ["", "1.3", "1.3 x", "NaN 3", "inf 3", "17 3", "0.1 3", "1.3 7 7"] {
            assert!(invalid.parse::<Calibration>().is_err(), "{invalid}");
        }
    }
}
