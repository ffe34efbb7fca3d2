use crate::Tokens;

/// How the input budget of a request follows from its model's context window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetPolicy {
    /// The window of an unknown model.
    pub fallback_window: Tokens,
    /// The share of the window that may be used for input and output together.
    pub safety_ratio: f64,
    /// The maximum number of tokens to use of any window, however large.
    pub window_cap: Option<Tokens>,
    /// The maximum share of the window for the input.
    pub max_context_ratio: f64,
    /// The maximum number of input tokens, whatever the window.
    pub max_input: Option<Tokens>,
    pub output_reserve: OutputReserve,
    pub overhead_reserve: OverheadReserve,
}

/// The tokens reserved for the answer if the request does not limit it: `max(min, min(cap, ratio × safe))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputReserve {
    pub cap: Option<Tokens>,
    pub ratio: f64,
    pub min: Tokens,
}

/// The tokens reserved for what cannot be counted (chat templates, hidden system text, estimation error):
/// `max(min, ratio × window) + fixed`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverheadReserve {
    pub min: Tokens,
    pub ratio: f64,
    pub fixed: Tokens,
}

/// The budget of one request, with its intermediate results, so that the arithmetic can be shown to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub window: Tokens,
    /// The part of the window that may be used: the safety ratio and the cap applied.
    pub safe: Tokens,
    /// Reserved for the answer.
    pub output: Tokens,
    /// Reserved for what cannot be counted.
    pub overhead: Tokens,
    /// The input budget. Zero if the reserves use up the window; then no request fits.
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
    /// Computes the budget of a request. `window` is `None` if the model is unknown, and `requested_output` is `None` if the
    /// request does not limit its answer.
    ///
    /// ```text
    /// safe     = min(window × safety_ratio, window_cap)
    /// output   = requested_output, else the output reserve
    /// overhead = the overhead reserve
    /// input    = min(safe − output − overhead, window × max_context_ratio, max_input)
    /// ```
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
    fn an_unknown_model_gets_the_fallback_window() {
        let budget = BudgetPolicy::default().budget(None, None);
        assert_eq!(budget.window, Tokens(8192));
        assert_eq!(budget.output, Tokens(1638));
        assert_eq!(budget.overhead, Tokens(1024));
        assert_eq!(budget.input, Tokens(8192 - 1638 - 1024));
    }

    #[test]
    fn the_requested_output_replaces_the_output_reserve() {
        let budget = BudgetPolicy::default().budget(Some(Tokens(100_000)), Some(Tokens(30_000)));
        assert_eq!(budget.output, Tokens(30_000));
        assert_eq!(budget.input, Tokens(100_000 - 30_000 - 5_000));
    }

    #[test]
    fn the_budget_is_zero_if_the_reserves_use_up_the_window() {
        let budget = BudgetPolicy::default().budget(Some(Tokens(1_000)), None);
        assert_eq!(budget.input, Tokens::ZERO);
    }

    #[test]
    fn the_safety_ratio_the_cap_and_the_reserves_apply_in_order() {
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
