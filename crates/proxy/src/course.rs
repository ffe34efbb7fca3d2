//! From the first look at a request to the plan that stands: which summaries it waits for, and what if there are none.
//!
//! The proxy takes this course with a store and a network, and whoever rehearses a conversation takes it without either.

use tidegate_config::{Context, FoldMode};
use tidegate_engine::{Cause, Decision, FoldJob, Verdict};

/// Where a request is on its way to a plan.
#[derive(Debug)]
pub(crate) struct Course {
    /// How many more summaries it may wait for.
    left: usize,
    /// Why a summary that it waited for is not there.
    pub(crate) trouble: Option<&'static str>,
    is_cut: bool,
    is_done: bool,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Have this summary made and decide again, or say that there is none.
    Fold(FoldJob),
    /// Decide again as if summarizing had failed.
    Truncate,
    /// The plan stands.
    Stand,
}

/// So many summaries one request waits for. Each reaches as far as it may, so a second one is rare. Blocks can take three: for the limit
/// of the history, for the total that the new summary is part of, and for the window.
const MOST_FOLDS: usize = 3;

impl Course {
    pub(crate) fn new() -> Course {
        Course { left: MOST_FOLDS, trouble: None, is_cut: false, is_done: false }
    }

    pub(crate) fn next(&mut self, context: &Context, decision: &Decision) -> Step {
        if self.is_cut {
            (self.is_cut, self.is_done) = (false, true);
            return Step::Truncate;
        }
        match decision.wanted.as_ref().filter(|job| !self.is_done && self.left > 0 && waits(context, job)) {
            Some(job) => {
                self.left -= 1;
                Step::Fold(job.clone())
            }
            None => Step::Stand,
        }
    }

    /// The summary that was wanted could not be made, or, where one could not be made a moment ago, was not tried.
    pub(crate) fn failed(
        &mut self,
        reason: &'static str,
        was_tried: bool,
        job: &FoldJob,
        decision: &Decision,
    ) {
        // A history that has a limit keeps to it, with a marker for what is missing.
        self.is_cut = decision.plan.verdict == Verdict::OverBudget || job.cause == Cause::Blocks;
        self.is_done = true;
        self.trouble = (was_tried || self.is_cut).then_some(reason);
    }

    /// The summary that the next request should find.
    pub(crate) fn later<'a>(&self, context: &Context, decision: &'a Decision) -> Option<&'a FoldJob> {
        decision.wanted.as_ref().filter(|_| self.trouble.is_none() && !context.observe)
    }
}

/// Whether a request waits for a summary.
fn waits(context: &Context, job: &FoldJob) -> bool {
    !context.observe && (job.is_urgent() || context.fold.mode == FoldMode::Inline)
}
