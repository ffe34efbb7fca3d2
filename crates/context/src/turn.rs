//! The state machine: from the first look at a request to the plan that stands.

use crate::limits;
use crate::{
    Assessment, CompletedFold, ConversationState, DueFold, Ending, Figures, FoldFailure, FoldRequest,
    MadeFold, MeasureError, Measured, Measurement, Outcome, Rule, TurnInput, Unedited,
};
use std::sync::Arc;
use tidegate_config::{Fold, FoldMode};
use tidegate_engine::{Cause, FoldJob, Verdict};

/// One turn under way.
#[derive(Debug)]
pub struct Turn {
    input: Arc<TurnInput>,
    state: Arc<ConversationState>,
    wait: FoldWait,
    phase: Phase,
    folds_left: usize,
    /// The summary that was made for this request, and why.
    made: Option<(MadeFold, Cause)>,
    /// The limit that the conversation has reached.
    limit: Option<limits::LimitReached>,
    fold_failure: Option<FoldFailure>,
    /// Whether the failure is worth a report.
    is_degraded: bool,
    due: Option<DueFold>,
}

/// Which summaries a request waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoldWait {
    /// Urgent ones, and all where `fold.mode = "inline"`; only free ones where the route only observes.
    #[default]
    AsConfigured,
    /// Every one that is due: for showing what a request would become.
    Always,
}

/// What the driver reports.
#[derive(Debug)]
pub enum Event {
    Begin,
    Measured(Result<Box<Measured>, MeasureError>),
    Folded(Box<CompletedFold>),
    FoldFailed(FoldFailure),
}

/// What the driver does next.
#[derive(Debug)]
pub enum Action {
    Measure(Measurement),
    /// Have this summarized; the request waits for it.
    Fold(Box<FoldRequest>),
    Done(Box<Outcome>),
    /// Forward the client's own bytes.
    Untouched(MeasureError),
}

#[derive(Debug)]
enum Phase {
    New,
    Measuring,
    Folding(Box<Measured>, FoldJob),
    /// Summarizing has failed: the next measurement stands.
    Truncating,
    Ended,
}

/// The most summaries that one request waits for. Each reaches as far as it may, so a second one is rare. Blocks can take three:
/// for the limit of the history, for the total that the new summary is part of, and for the window.
const MAX_FOLDS: usize = 3;

/// The built-in summarizer.
const EXTRACTIVE: &str = "extractive";

impl Turn {
    #[must_use]
    pub fn new(input: TurnInput, state: impl Into<Arc<ConversationState>>) -> Turn {
        let mut state = state.into();
        if !state.is_rendered_for(&input) {
            Arc::make_mut(&mut state).render(&input);
        }
        Turn {
            input: Arc::new(input),
            state,
            wait: FoldWait::AsConfigured,
            phase: Phase::New,
            folds_left: MAX_FOLDS,
            made: None,
            limit: None,
            fold_failure: None,
            is_degraded: false,
            due: None,
        }
    }

    #[must_use]
    pub fn waiting_for(self, wait: FoldWait) -> Turn {
        Turn { wait, ..self }
    }

    #[must_use]
    pub fn input(&self) -> &Arc<TurnInput> {
        &self.input
    }

    /// What is known of the conversation by now.
    #[must_use]
    pub fn state(&self) -> &Arc<ConversationState> {
        &self.state
    }

    /// Takes the driver's report and says what to do next.
    pub fn advance(&mut self, event: Event) -> Action {
        match (std::mem::replace(&mut self.phase, Phase::Ended), event) {
            (Phase::New, Event::Begin) => self.measure(Rule::Decide, Phase::Measuring),
            (Phase::Measuring | Phase::Truncating, Event::Measured(Err(error))) => Action::Untouched(error),
            (Phase::Measuring, Event::Measured(Ok(measured))) => self.measured(measured),
            (Phase::Truncating, Event::Measured(Ok(measured))) => self.done(measured),
            (Phase::Folding(measured, job), Event::Folded(fold)) => {
                self.folded(&measured.assessment, &job, *fold)
            }
            (Phase::Folding(measured, job), Event::FoldFailed(failure)) => {
                self.fold_failed(measured, &job, failure)
            }
            _ => Action::Untouched(MeasureError::UnexpectedEvent),
        }
    }

    fn measure(&mut self, rule: Rule, phase: Phase) -> Action {
        self.phase = phase;
        Action::Measure(Measurement { input: self.input.clone(), state: self.state.clone(), rule })
    }

    fn measured(&mut self, mut measured: Box<Measured>) -> Action {
        let decision = &mut measured.assessment.decision;
        match self.made {
            // The reason for the summary is the reason for this plan.
            Some((_, cause)) => _ = decision.plan.cause.get_or_insert(cause),
            None => {
                self.limit = self.limit_reached(&measured.assessment);
                if let Some(limit) = self.limit {
                    let is_observed = self.input.context.observe;
                    let ending = if is_observed { Ending::Forward } else { Ending::Limit(limit) };
                    return self.ended(measured, ending);
                }
            }
        }
        let decision = &measured.assessment.decision;
        if let Some(job) = &decision.wanted {
            self.due.get_or_insert_with(|| DueFold { job: job.clone(), without: decision.plan.after });
        }
        match decision.wanted.clone().filter(|job| self.folds_left > 0 && self.waits_for(job)) {
            Some(job) => {
                self.folds_left -= 1;
                let request = self.fold_request(&measured.assessment, job.clone());
                self.phase = Phase::Folding(measured, job);
                Action::Fold(Box::new(request))
            }
            None => self.done(measured),
        }
    }

    fn folded(&mut self, assessment: &Assessment, job: &FoldJob, completed: CompletedFold) -> Action {
        let CompletedFold { fold, stands_in_for } = completed;
        if let Some(failure) = stands_in_for {
            (self.fold_failure, self.is_degraded) = (Some(failure), true);
        }
        let covers = fold.covers;
        let kept = fold.state.kept.len();
        Arc::make_mut(&mut self.state).add_fold(fold, &self.input);
        let tokens = self.state.summary(covers).map(|summary| summary.fold.tokens).unwrap_or_default();
        let made = MadeFold {
            has_pruned: job.prunes(&assessment.chat.messages, kept),
            unpruned: job.spared.map(|spared| spared.rest + self.input.scaled(tokens)),
        };
        self.made = Some((made, job.cause));
        self.measure(Rule::Decide, Phase::Measuring)
    }

    fn fold_failed(&mut self, measured: Box<Measured>, job: &FoldJob, failure: FoldFailure) -> Action {
        // A history that has a limit keeps to it, with a marker for what is missing.
        let truncates =
            measured.assessment.decision.plan.verdict != Verdict::Fits || job.cause == Cause::Blocks;
        self.fold_failure = Some(failure);
        self.is_degraded = failure.is_failed_attempt() || truncates;
        if truncates { self.measure(Rule::Truncate, Phase::Truncating) } else { self.done(measured) }
    }

    fn done(&mut self, measured: Box<Measured>) -> Action {
        let is_refused = measured.assessment.decision.plan.verdict == Verdict::Refused;
        let ending =
            if is_refused && !self.input.context.observe { Ending::OverBudget } else { Ending::Forward };
        self.ended(measured, ending)
    }

    fn ended(&mut self, measured: Box<Measured>, ending: Ending) -> Action {
        let Measured { assessment, pieces, stop_hint } = *measured;
        let (input, state) = (&*self.input, &*self.state);
        let made = self.made.map(|(made, _)| made);
        let recalled = state.memory.recall(&assessment.chat.messages, assessment.chat.cache);
        let figures = Figures::new(&assessment, input, state, recalled.as_ref(), made, stop_hint);
        let figures = Figures { limit: self.limit, ..figures };
        let unedited = Unedited::new(&assessment, input, recalled);
        let is_forwarded = ending == Ending::Forward && self.limit.is_none();
        let is_wanted = is_forwarded && self.fold_failure.is_none() && self.may_fold();
        let deferred = assessment.decision.wanted.clone().filter(|_| is_wanted);
        let deferred = deferred.map(|job| self.fold_request(&assessment, job));
        Action::Done(Box::new(Outcome {
            ending,
            assessment,
            pieces,
            figures,
            unedited,
            fold_failure: self.fold_failure.filter(|_| self.is_degraded),
            deferred,
            due: self.due.take(),
        }))
    }

    fn fold_request(&self, assessment: &Assessment, job: FoldJob) -> FoldRequest {
        let (input, state) = (self.input.clone(), self.state.clone());
        FoldRequest { input, state, chat: assessment.chat.clone(), job }
    }

    fn limit_reached(&self, assessment: &Assessment) -> Option<limits::LimitReached> {
        limits::check(&self.input.limits, &assessment.chat.messages, self.input.spent)
    }

    fn waits_for(&self, job: &FoldJob) -> bool {
        let context = &self.input.context;
        match self.wait {
            FoldWait::Always => true,
            FoldWait::AsConfigured => self.may_fold() && is_awaited(job, &context.fold),
        }
    }

    /// Whether summaries are made at all. A route that only observes makes those that cost nothing, to know what they would save.
    fn may_fold(&self) -> bool {
        let context = &self.input.context;
        !context.observe || context.fold.summarizer == EXTRACTIVE
    }
}

/// Whether a request waits for its summary where the policy makes any.
#[must_use]
pub fn is_awaited(job: &FoldJob, fold: &Fold) -> bool {
    job.is_urgent() || fold.mode == FoldMode::Inline
}
