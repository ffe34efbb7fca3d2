use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A number of tokens. Arithmetic saturates: it neither wraps around nor panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens(pub u64);

impl Tokens {
    pub const ZERO: Tokens = Tokens(0);
    pub const MAX: Tokens = Tokens(u64::MAX);

    /// Subtracts `other`; zero if `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_sub(other.0))
    }

    /// Multiplies by `ratio` and rounds down. Zero if `ratio` is negative or not a number.
    ///
    /// A ratio written in decimal is rarely exact in binary (`0.7 × 10` is `7.000000000000001` or `6.999…`), so a
    /// product within a millionth of a whole number is taken as that number.
    #[must_use]
    pub fn share(self, ratio: f64) -> Tokens {
        let product = self.0 as f64 * ratio;
        let nearest = product.round();
        let whole = if (product - nearest).abs() < 1e-6 { nearest } else { product.floor() };
        Tokens(whole as u64)
    }
}

impl Add for Tokens {
    type Output = Tokens;

    fn add(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(counts: I) -> Tokens {
        counts.fold(Tokens::ZERO, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_rounds_down_but_tolerates_binary_fractions() {
        assert_eq!(Tokens(131_072).share(0.90), Tokens(117_964));
        assert_eq!(Tokens(8_192).share(0.05), Tokens(409));
        assert_eq!(Tokens(10).share(0.7), Tokens(7));
        assert_eq!(Tokens(10).share(f64::NAN), Tokens::ZERO);
        assert_eq!(Tokens(10).share(-1.0), Tokens::ZERO);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Tokens(3).saturating_sub(Tokens(5)), Tokens::ZERO);
        assert_eq!(Tokens(u64::MAX) + Tokens(1), Tokens(u64::MAX));
    }
}
