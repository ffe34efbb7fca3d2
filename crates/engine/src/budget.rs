use crate::{ContextWindow, Tokens};

/// How the input budget of a request follows from its model's context window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetPolicy {
    /// The window to assume for a model whose window nobody knows; `None` to assume nothing.
    pub fallback_window: Option<Tokens>,
    pub refuse_at: RefuseAt,
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

/// Which requests are refused for their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefuseAt {
    /// Those that exceed the window beyond doubt, less the answer that they ask for if the window is a published one, or the operator's own
    /// limit of the input. The upstream judges all others.
    #[default]
    Window,
    /// Those that exceed the input budget.
    Budget,
}

/// What is known about the room that a request has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    pub window: ContextWindow,
    pub answer: AnswerRoom,
    /// The length of the answer that the request asks for; `None` if it does not limit it.
    pub requested_output: Option<Tokens>,
    pub accuracy: Accuracy,
    /// The tokens of parts that are counted by a rule of thumb, and may cost nothing.
    pub estimated: Tokens,
}

/// Whether the answer takes room from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRoom {
    /// Input and answer share the window.
    Shared,
    /// The window is for the input alone.
    Separate,
}

/// How far a count of tokens can be above the upstream's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accuracy {
    Exact,
    /// At most this many times.
    Within(f64),
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
    pub window: ContextWindow,
    /// The part of the window that may be used: the safety ratio and the cap applied. `None` if nothing limits it.
    pub safe: Option<Tokens>,
    /// Reserved for the answer.
    pub output: Tokens,
    /// Reserved for what cannot be counted.
    pub overhead: Tokens,
    /// The input budget, above which edits are made. Zero if the reserves use up the window; then no request fits. `None` if the
    /// window is unknown and nothing else limits the input; then every request fits.
    pub input: Option<Tokens>,
    /// A request with more tokens, as counted, is refused. `None` if the upstream judges.
    pub refuse_above: Option<Tokens>,
}

impl Default for BudgetPolicy {
    fn default() -> BudgetPolicy {
        BudgetPolicy {
            fallback_window: None,
            refuse_at: RefuseAt::Window,
            safety_ratio: 1.0,
            window_cap: None,
            max_context_ratio: 1.0,
            max_input: None,
            output_reserve: OutputReserve { cap: Some(Tokens(2048)), ratio: 0.20, min: Tokens(0) },
            overhead_reserve: OverheadReserve { min: Tokens(1024), ratio: 0.05, fixed: Tokens(0) },
        }
    }
}

impl Capacity {
    /// A window that input and answer share, for a request that is counted exactly and does not limit its answer.
    #[must_use]
    pub fn of(window: ContextWindow) -> Capacity {
        Capacity {
            window,
            answer: AnswerRoom::Shared,
            requested_output: None,
            accuracy: Accuracy::Exact,
            estimated: Tokens::ZERO,
        }
    }

    /// A published window of this size.
    #[must_use]
    pub fn known(window: Tokens) -> Capacity {
        Capacity::of(ContextWindow::Known(window))
    }

    /// The number of tokens, as counted, above which the upstream refuses the request beyond doubt.
    fn certain_limit(&self) -> Option<Tokens> {
        let window = self.window.certain()?;
        let asked = self.requested_output.unwrap_or_default();
        let input = match (self.answer, self.window) {
            (AnswerRoom::Separate, _) => window,
            // Some servers shorten an answer that has no room, so only one without any room is refused beyond doubt.
            (AnswerRoom::Shared, ContextWindow::Configured(_)) => window.saturating_sub(asked.min(Tokens(1))),
            (AnswerRoom::Shared, _) => window.saturating_sub(asked),
        };
        let counted = match self.accuracy {
            Accuracy::Exact => input,
            Accuracy::Within(times) => Tokens((input.0 as f64 * times.max(1.0)).ceil() as u64),
        };
        Some(counted + self.estimated)
    }
}

impl BudgetPolicy {
    /// Computes the budget of a request.
    ///
    /// ```text
    /// safe     = min(window × safety_ratio, window_cap)
    /// output   = requested_output, else the output reserve
    /// overhead = the overhead reserve
    /// input    = min(safe − output − overhead, window × max_context_ratio, max_input)
    /// ```
    #[must_use]
    pub fn budget(&self, capacity: &Capacity) -> Budget {
        let window = match (capacity.window, self.fallback_window) {
            (ContextWindow::Unknown, Some(tokens)) => ContextWindow::Fallback(tokens),
            (window, _) => window,
        };
        let size = window.tokens();
        let share = |ratio: f64| size.map(|size| size.share(ratio));
        let safe = least([share(self.safety_ratio), self.window_cap, None]);
        let reserve = self.output_reserve;
        let output = capacity.requested_output.unwrap_or_else(|| {
            let by_ratio = safe.map(|safe| safe.share(reserve.ratio));
            least([by_ratio, by_ratio.and(reserve.cap), None]).unwrap_or_default().max(reserve.min)
        });
        let OverheadReserve { min, ratio, fixed } = self.overhead_reserve;
        let overhead = min.max(share(ratio).unwrap_or_default()) + fixed;
        let unreserved = safe.map(|safe| safe.saturating_sub(output).saturating_sub(overhead));
        let input = least([unreserved, share(self.max_context_ratio), self.max_input]);
        let refuse_above = match self.refuse_at {
            RefuseAt::Window => {
                least([Capacity { window, ..*capacity }.certain_limit(), self.max_input, None])
            }
            RefuseAt::Budget => input,
        };
        Budget { window, safe, output, overhead, input, refuse_above }
    }
}

impl Budget {
    /// Whether a request of this many tokens is within the input budget.
    #[must_use]
    pub fn fits(&self, tokens: Tokens) -> bool {
        self.input.is_none_or(|input| tokens <= input && input > Tokens::ZERO)
    }

    /// The same budget for an upstream that takes no more than `input`. Then the upstream judges, and nobody else.
    #[must_use]
    pub fn at_most(self, input: Tokens) -> Budget {
        let input = self.input.map_or(input, |budget| budget.min(input));
        Budget { input: Some(input), refuse_above: None, ..self }
    }

    /// How far a request of this many tokens exceeds the input budget.
    #[must_use]
    pub fn excess(&self, tokens: Tokens) -> Tokens {
        self.input.map_or(Tokens::ZERO, |input| tokens.saturating_sub(input))
    }
}

/// The smallest of the limits that there are.
fn least(limits: [Option<Tokens>; 3]) -> Option<Tokens> {
    limits.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(window: u64, requested_output: Option<u64>) -> Capacity {
        Capacity { requested_output: requested_output.map(Tokens), ..Capacity::known(Tokens(window)) }
    }

    #[test]
    fn an_unknown_window_limits_nothing() {
        let budget = BudgetPolicy::default().budget(&Capacity::of(ContextWindow::Unknown));
        assert_eq!((budget.safe, budget.input, budget.refuse_above), (None, None, None));
        assert!(budget.fits(Tokens(u64::MAX)));
        let capped = BudgetPolicy { max_input: Some(Tokens(500)), ..BudgetPolicy::default() };
        let budget = capped.budget(&Capacity::of(ContextWindow::Unknown));
        assert_eq!((budget.input, budget.refuse_above), (Some(Tokens(500)), Some(Tokens(500))));
    }

    #[test]
    fn an_unknown_model_gets_the_fallback_window_where_there_is_one() {
        let policy = BudgetPolicy { fallback_window: Some(Tokens(8192)), ..BudgetPolicy::default() };
        let budget = policy.budget(&Capacity::of(ContextWindow::Unknown));
        assert_eq!(budget.window, ContextWindow::Fallback(Tokens(8192)));
        assert_eq!(budget.output, Tokens(1638));
        assert_eq!(budget.overhead, Tokens(1024));
        assert_eq!(budget.input, Some(Tokens(8192 - 1638 - 1024)));
        assert_eq!(budget.refuse_above, None, "it is only assumed");
        let strict = BudgetPolicy { refuse_at: RefuseAt::Budget, ..policy };
        assert_eq!(strict.budget(&Capacity::of(ContextWindow::Unknown)).refuse_above, budget.input);
    }

    #[test]
    fn the_requested_output_replaces_the_output_reserve() {
        let budget = BudgetPolicy::default().budget(&known(100_000, Some(30_000)));
        assert_eq!(budget.output, Tokens(30_000));
        assert_eq!(budget.input, Some(Tokens(100_000 - 30_000 - 5_000)));
    }

    #[test]
    fn the_budget_is_zero_if_the_reserves_use_up_the_window() {
        let budget = BudgetPolicy::default().budget(&known(1_000, None));
        assert_eq!(budget.input, Some(Tokens::ZERO));
        assert!(!budget.fits(Tokens::ZERO));
        assert_eq!(budget.refuse_above, Some(Tokens(1_000)), "reserves do not refuse");
    }

    #[test]
    fn only_what_certainly_exceeds_the_window_is_refused() {
        let limit = |capacity: Capacity| BudgetPolicy::default().budget(&capacity).refuse_above;
        let size = Tokens(10_000);
        assert_eq!(limit(known(10_000, Some(3_000))), Some(Tokens(7_000)));
        let separate = Capacity { answer: AnswerRoom::Separate, ..known(10_000, Some(3_000)) };
        assert_eq!(limit(separate), Some(size));
        let estimated = Capacity { accuracy: Accuracy::Within(4.0), ..known(10_000, None) };
        assert_eq!(limit(estimated), Some(Tokens(40_000)));
        let with_images = Capacity { estimated: Tokens(500), ..known(10_000, None) };
        assert_eq!(limit(with_images), Some(Tokens(10_500)));
        let configured = Capacity::of(ContextWindow::Configured(size));
        assert_eq!(limit(configured), Some(size));
        for asked in [1, 3_000, 10_000, 20_000] {
            let asking = Capacity { requested_output: Some(Tokens(asked)), ..configured };
            assert_eq!(limit(asking), Some(Tokens(9_999)), "{asked}");
        }
        for uncertain in [ContextWindow::Learnt(size), ContextWindow::Typical(size), ContextWindow::Unknown] {
            assert_eq!(limit(Capacity::of(uncertain)), None, "{uncertain:?}");
        }
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
        let small = policy.budget(&known(131_072, None));
        assert_eq!((small.safe, small.output), (Some(Tokens(117_964)), Tokens(23_592)));
        assert_eq!(small.input, Some(Tokens(94_372 - 10_500)));
        let large = policy.budget(&known(1_000_000, None));
        assert_eq!((large.safe, large.output), (Some(Tokens(300_000)), Tokens(60_000)));
        assert_eq!(large.input, Some(Tokens(240_000 - 10_500)));
    }
}
