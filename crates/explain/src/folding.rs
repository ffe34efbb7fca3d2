//! The summary that a request would get, made here by the built-in summarizer and kept nowhere.

use crate::case::Tense;
use crate::figures::{self, tokens};
use crate::{Case, Ending};
use tidegate_config::{FoldMode, FoldRole, Summarizer};
use tidegate_engine::{Cause, FoldJob, Memory, Strategy, Timestamp, Tokens, Verdict};
use tidegate_proxy::{Assessment, Question, SummaryMessage, summarize_offline};
use tidegate_wire::{Reader, Unreadable};

/// What was decided about a request once the summary that it is due was there.
#[derive(Debug)]
pub(crate) struct Folding {
    pub(crate) assessment: Assessment,
    pub(crate) summaries: Vec<SummaryMessage>,
    pub(crate) due: Option<Due>,
}

/// A summary that should be made.
#[derive(Debug)]
pub struct Due {
    job: FoldJob,
    /// What the request uses without it.
    without: Tokens,
}

/// A message of our own in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    Summary {
        tokens: Tokens,
        covered: usize,
    },
    /// It stands for messages that were dropped.
    Marker,
    /// What is pinned to the conversation.
    Memory {
        tokens: Tokens,
    },
}

/// So many summaries one request waits for in the proxy.
const MOST_FOLDS: usize = 3;

/// Makes the summary that `first` wants, if it wants one, and decides again.
pub(crate) fn fold(
    question: &Question<'_>,
    reader: &Reader,
    first: Assessment,
) -> Result<Folding, Unreadable> {
    let mut folding = Folding { assessment: first, summaries: Vec::new(), due: None };
    for _ in 0..MOST_FOLDS {
        let Folding { assessment, summaries, due } = &mut folding;
        let Some(job) = assessment.decision.wanted.clone() else { break };
        // The built-in summarizer starts from nothing here, so a second summary has to read what the first one did.
        let whole = FoldJob { messages: 0..job.messages.end, previous: None, ..job.clone() };
        let made = summarize_offline(question, &assessment.chat, &whole);
        let talk = assessment.chat.messages[..job.messages.end]
            .iter()
            .filter(|message| !message.role.is_instruction());
        let sent: Tokens = talk.map(|message| message.tokens).sum();
        // The proxy counts one that is as long as what it stands for as a failure, unless the history has to be cut to its limit.
        let is_for_limit = job.cause == Cause::Blocks;
        let is_no_gain = made.as_ref().is_some_and(|made| made.fold.tokens >= sent) && !is_for_limit;
        due.get_or_insert(Due { job, without: assessment.decision.plan.after });
        let Some(summary) = made.filter(|_| !is_no_gain) else {
            // As when a summarizer fails: what does not fit is dropped.
            if assessment.decision.plan.verdict == Verdict::OverBudget {
                let question = Question { summaries, ..*question };
                *assessment = question.truncate(reader, &Memory::default(), Timestamp(0))?;
            }
            break;
        };
        summaries.push(summary);
        let question = Question { summaries, ..*question };
        *assessment = question.assess(reader, &Memory::default(), Timestamp(0))?;
    }
    Ok(folding)
}

pub fn folds(strategy: Strategy) -> bool {
    match strategy {
        Strategy::Summarization | Strategy::Hybrid => true,
        Strategy::Passthrough | Strategy::Masking | Strategy::Window => false,
    }
}

impl Case<'_> {
    /// Our own messages, each with the client's before which it stands.
    pub fn insertions(&self) -> Vec<(usize, Insertion)> {
        let (plan, messages) = (&self.assessment.decision.plan, &self.assessment.chat.messages);
        if self.request.route.context.observe {
            return Vec::new();
        }
        let mut insertions = Vec::new();
        let talk = messages.iter().enumerate().filter(|(_, message)| !message.role.is_instruction());
        let first = talk.clone().next().map(|(first, _)| first);
        if let Some(pinned) = self.pinned.as_ref().filter(|pinned| !pinned.json.is_empty()) {
            insertions.extend(first.map(|first| (first, Insertion::Memory { tokens: pinned.tokens })));
        }
        if let Some(folded) = &plan.folded {
            let covered = talk.take_while(|(at, _)| *at < folded.upto).count();
            let summary = Insertion::Summary { tokens: folded.tokens, covered };
            // One that has nothing to say beside what is pinned is not there.
            let is_there = |one: &SummaryMessage| one.fold.covers == folded.covers && !one.json.is_empty();
            let first = first.filter(|_| self.summaries.iter().any(is_there));
            insertions.extend(first.map(|first| (first, summary)));
        }
        insertions.extend(plan.dropped.first().map(|&first| (first, Insertion::Marker)));
        insertions
    }

    /// The summary in the request, with the message before which it stands.
    pub fn summary(&self) -> Option<(usize, Tokens, usize)> {
        self.insertions().into_iter().find_map(|(before, insertion)| match insertion {
            Insertion::Summary { tokens, covered } => Some((before, tokens, covered)),
            Insertion::Marker | Insertion::Memory { .. } => None,
        })
    }

    /// Whether a summary is due and this very request would go out without it, and only the next one with it.
    pub fn is_folded_later(&self) -> bool {
        let waits =
            |due: &Due| due.job.is_urgent() || self.request.route.context.fold.mode == FoldMode::Inline;
        self.summary().is_some() && self.due.as_ref().is_some_and(|due| !waits(due))
    }

    /// Whether a summary is due and would not make the request shorter.
    pub fn is_summary_useless(&self) -> bool {
        self.due.is_some() && self.assessment.decision.plan.folded.is_none()
    }

    pub fn fold_role(&self) -> &'static str {
        match self.request.route.context.fold.role {
            FoldRole::User => "user",
            FoldRole::System => "system",
        }
    }

    pub fn fold_cause(&self) -> Option<Cause> {
        let of_plan = self.assessment.decision.plan.cause.filter(|cause| figures::asks_for_summary(*cause));
        self.due.as_ref().map(|due| due.job.cause).or(of_plan.filter(|_| self.tense == Tense::Has))
    }
}

/// Why a summary is due.
pub fn cause(case: &Case<'_>) -> String {
    let Some(Due { job, .. }) = &case.due else { return "none: no summary is due".to_owned() };
    let sentence = match job.cause {
        Cause::Budget if job.is_urgent() => "the request would not fit otherwise",
        Cause::Budget => "the request uses as many tokens as fold.when allows",
        cause => figures::sentence(cause),
    };
    format!("{}: {sentence}", job.cause.name())
}

/// What is otherwise in a running proxy, the most important last.
pub fn notes(case: &Case<'_>) -> Vec<String> {
    if case.tense == Tense::Has {
        return Vec::new();
    }
    let mut notes = vec![
        "no earlier summary is known: in a running conversation turns count from the last one, and the next one takes it in"
            .to_owned(),
    ];
    if case.due.is_some() {
        notes.extend(stand_in(case));
    }
    if case.is_summary_useless() {
        notes.push("the summary would not be shorter than what it stands for, so there is none".to_owned());
    }
    if case.due.is_some() && case.request.route.context.observe {
        notes.push("`context.observe` is true: no summary would be made".to_owned());
    }
    notes.extend(later(case));
    notes
}

/// What has to be said beside a view that shows nothing but the request.
pub fn caveats(case: &Case<'_>) -> Vec<String> {
    let shown = case.ending() != Ending::Refused && case.summary().is_some();
    let stand_in = shown.then(|| stand_in(case)).flatten();
    stand_in.into_iter().chain(later(case)).collect()
}

fn stand_in(case: &Case<'_>) -> Option<String> {
    let name = &case.request.route.context.fold.summarizer;
    match case.request.settings.summarizers.get(name) {
        Some(Summarizer::Llm(_)) => {
            Some(format!("`{name}` is not asked here: the built-in summarizer stands in for it"))
        }
        Some(Summarizer::Extractive) | None => None,
    }
}

fn later(case: &Case<'_>) -> Option<String> {
    let due = case.due.as_ref().filter(|_| case.is_folded_later())?;
    Some(format!(
        "`fold.mode` is \"background\": this very request would go out without the summary, with {} input tokens, and the \
         next one with it",
        tokens(due.without)
    ))
}
