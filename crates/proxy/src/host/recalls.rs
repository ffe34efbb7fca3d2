//! What the model has recalled for one answer, and what the upstream has billed for it: each time that the model asked us, the upstream gave
//! an answer that the client does not see, to a prompt of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_context::RecallResult;
use tidegate_engine::Tokens;
use tidegate_wire::Usage;

#[derive(Debug, Default)]
pub(crate) struct Recalls(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    hidden: Vec<Hidden>,
    /// What the next prompt has more than the first one, by our own count.
    added: Tokens,
    calls: u32,
    found: u32,
}

/// An answer that the client does not see.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    reported: Option<Usage>,
    /// What its prompt had more than the first one, and what it said, by our own count.
    added: Tokens,
    said: Tokens,
}

impl Recalls {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an answer that said this much, and what the upstream reported for it.
    pub(crate) fn answered(&self, reported: Option<Usage>, said: Tokens) {
        let mut state = self.state();
        let added = state.added;
        state.hidden.push(Hidden { reported, added, said });
        state.added = added + said;
    }

    /// Adds a call, and what its result costs in the next prompt.
    pub(crate) fn called(&self, result: RecallResult, tokens: Tokens) {
        let mut state = self.state();
        state.calls += 1;
        state.found += u32::from(result == RecallResult::Found);
        state.added += tokens;
    }

    /// What the next prompt has more than the first one.
    pub(crate) fn added(&self) -> Tokens {
        self.state().added
    }

    /// The number of calls, and of those that an original answered.
    pub(crate) fn calls(&self) -> (u32, u32) {
        let state = self.state();
        (state.calls, state.found)
    }

    /// What each of the answers was billed for, given our count of the first prompt: where the upstream reported nothing, that is an
    /// estimate.
    pub(crate) fn billed(&self, first: Tokens) -> Vec<Usage> {
        let usage = |hidden: &Hidden| {
            hidden.reported.unwrap_or(Usage {
                prompt_tokens: (first + hidden.added).0,
                completion_tokens: hidden.said.0,
                ..Usage::default()
            })
        };
        self.state().hidden.iter().map(usage).collect()
    }

    /// Whether the upstream has reported the usage of all these answers.
    pub(crate) fn is_reported(&self) -> bool {
        self.state().hidden.iter().all(|hidden| hidden.reported.is_some())
    }

    /// What was reported for all answers, given what was reported for the last one.
    pub(crate) fn added_to(&self, last: Option<Usage>) -> Option<Usage> {
        self.state().hidden.iter().filter_map(|hidden| hidden.reported).chain(last).reduce(plus)
    }

    /// What the upstream reported for the request as it was forwarded first, given the usage of the last answer.
    pub(crate) fn of_first(&self, last: Option<Usage>) -> Option<Usage> {
        self.state().hidden.first().map_or(last, |first| first.reported)
    }
}

fn plus(one: Usage, other: Usage) -> Usage {
    Usage {
        prompt_tokens: one.prompt_tokens + other.prompt_tokens,
        completion_tokens: one.completion_tokens + other.completion_tokens,
        cached_tokens: one.cached_tokens + other.cached_tokens,
        cache_write_tokens: one.cache_write_tokens + other.cache_write_tokens,
        reasoning_tokens: one.reasoning_tokens + other.reasoning_tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt_tokens: u64) -> Usage {
        Usage { prompt_tokens, completion_tokens: 1, ..Usage::default() }
    }

    #[test]
    fn without_recalls_the_only_answer_counts() {
        let recalls = Recalls::default();
        assert_eq!(
            (recalls.added_to(Some(usage(7))), recalls.of_first(Some(usage(7)))),
            (Some(usage(7)), Some(usage(7)))
        );
        assert_eq!(
            (recalls.added_to(None), recalls.billed(Tokens(9)), recalls.is_reported()),
            (None, vec![], true)
        );
    }

    #[test]
    fn each_answer_has_its_own_prompt() {
        let recalls = Recalls::default();
        recalls.answered(Some(usage(1_000)), Tokens(10));
        recalls.called(RecallResult::Found, Tokens(500));
        recalls.answered(None, Tokens(20));
        recalls.called(RecallResult::Unknown, Tokens(30));
        let estimated = Usage { prompt_tokens: 900 + 510, completion_tokens: 20, ..Usage::default() };
        assert_eq!(recalls.billed(Tokens(900)), [usage(1_000), estimated]);
        assert_eq!((recalls.calls(), recalls.added(), recalls.is_reported()), ((2, 1), Tokens(560), false));
        // What our count of the first prompt is compared with is not the usage of a later one.
        assert_eq!(recalls.of_first(Some(usage(1_600))), Some(usage(1_000)));
        assert_eq!(recalls.added_to(Some(usage(1_600))).unwrap().prompt_tokens, 2_600);
        let unreported = Recalls::default();
        unreported.answered(None, Tokens(1));
        assert_eq!(unreported.of_first(Some(usage(1_600))), None);
    }
}
