use crate::Tokens;

/// How the input budget of a request is made from its model's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetPolicy {
    /// The window of a model that nobody knows.
    pub fallback_window: Tokens,
    /// The share of the window that is used at all.
    pub safety_ratio: f64,
    /// The most that is used of any window, however large.
    pub window_cap: Option<Tokens>,
    /// The largest share of the window that the input may take.
    pub max_context_ratio: f64,
    /// The most input tokens, whatever the window.
    pub max_input: Option<Tokens>,
    pub output_reserve: OutputReserve,
    pub overhead_reserve: OverheadReserve,
}

/// What is left free for the answer when the request itself does not say how long it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputReserve {
    pub cap: Option<Tokens>,
    pub ratio: f64,
    pub min: Tokens,
}

/// What is left free for things that nobody counts: templates, hidden system text, estimation error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverheadReserve {
    pub min: Tokens,
    pub ratio: f64,
    pub fixed: Tokens,
}

/// The arithmetic of one request, line by line, so that it can be shown as it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub window: Tokens,
    pub safe: Tokens,
    pub output: Tokens,
    pub overhead: Tokens,
    /// What the input may use; zero where the reserves eat the whole window, and then nothing fits.
    pub input: Tokens,
}

impl Default for BudgetPolicy {
    fn default() -> BudgetPolicy {
        BudgetPolicy {
            fallback_window: Tokens(8192),
            safety_ratio: 1.0,
            window_cap: None,
            max_context_ratio: 1.0,
            max_input: None,
            output_reserve: OutputReserve { cap: Some(Tokens(2048)), ratio: 0.20, min: Tokens(0) },
            overhead_reserve: OverheadReserve { min: Tokens(1024), ratio: 0.05, fixed: Tokens(0) },
        }
    }
}

impl BudgetPolicy {
    /// The budget for a model with this window (`None`: unknown) and a request that asks for at most
    /// `requested_output` tokens of answer (`None`: it does not say).
    #[must_use]
    pub fn budget(&self, window: Option<Tokens>, requested_output: Option<Tokens>) -> Budget {
        let window = window.unwrap_or(self.fallback_window);
        let safe = at_most(window.share(self.safety_ratio), self.window_cap);
        let reserve = self.output_reserve;
        let output = requested_output
            .unwrap_or_else(|| at_most(safe.share(reserve.ratio), reserve.cap).max(reserve.min));
        let overhead = self.overhead_reserve.min.max(window.share(self.overhead_reserve.ratio))
            + self.overhead_reserve.fixed;
        let input = safe.saturating_sub(output).saturating_sub(overhead);
        let input = at_most(input.min(window.share(self.max_context_ratio)), self.max_input);
        Budget { window, safe, output, overhead, input }
    }
}

fn at_most(count: Tokens, cap: Option<Tokens>) -> Tokens {
    cap.map_or(count, |cap| count.min(cap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_on_the_fallback_window() {
        let budget = BudgetPolicy::default().budget(None, None);
        assert_eq!(budget.window, Tokens(8192));
        assert_eq!(budget.output, Tokens(1638));
        assert_eq!(budget.overhead, Tokens(1024));
        assert_eq!(budget.input, Tokens(8192 - 1638 - 1024));
    }

    #[test]
    fn the_request_says_how_long_its_answer_may_be() {
        let budget = BudgetPolicy::default().budget(Some(Tokens(100_000)), Some(Tokens(30_000)));
        assert_eq!(budget.output, Tokens(30_000));
        assert_eq!(budget.input, Tokens(100_000 - 30_000 - 5_000));
    }

    #[test]
    fn a_budget_that_the_reserves_eat_is_zero() {
        let budget = BudgetPolicy::default().budget(Some(Tokens(1_000)), None);
        assert_eq!(budget.input, Tokens::ZERO);
    }

    #[test]
    fn the_caps_apply_in_order() {
        let policy = BudgetPolicy {
            safety_ratio: 0.90,
            window_cap: Some(Tokens(300_000)),
            output_reserve: OutputReserve { cap: None, ratio: 0.20, min: Tokens(1024) },
            overhead_reserve: OverheadReserve { min: Tokens(0), ratio: 0.0, fixed: Tokens(10_500) },
            ..BudgetPolicy::default()
        };
        let small = policy.budget(Some(Tokens(131_072)), None);
        assert_eq!((small.safe, small.output), (Tokens(117_964), Tokens(23_592)));
        assert_eq!(small.input, Tokens(94_372 - 10_500));
        let large = policy.budget(Some(Tokens(1_000_000)), None);
        assert_eq!((large.safe, large.output), (Tokens(300_000), Tokens(60_000)));
        assert_eq!(large.input, Tokens(240_000 - 10_500));
    }
}
