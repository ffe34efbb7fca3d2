//! Describes the summary of a request.

use crate::case::CaseKind;
use crate::figures::{self, tokens};
use crate::{Case, Ending};
use tidegate_config::{FoldRole, Summarizer};
use tidegate_context::{DueFold, OwnKind, Place, is_awaited};
use tidegate_engine::{Cause, Message, Tokens};

/// A text that Tidegate adds to the request, as a message or in one of the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    Summary {
        tokens: Tokens,
        /// The number of messages that it covers, instructions not counted.
        covered: usize,
    },
    /// Replaces dropped messages.
    Marker,
    /// The notes pinned to the conversation.
    Memory { tokens: Tokens },
}

impl Insertion {
    /// The cost of the text; zero for a marker, which costs next to nothing.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        match self {
            Insertion::Summary { tokens, .. } | Insertion::Memory { tokens } => *tokens,
            Insertion::Marker => Tokens::ZERO,
        }
    }

    /// What it is, in a title.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Insertion::Summary { covered, .. } => {
                format!("a summary that stands for {}", figures::counted(*covered, "message"))
            }
            Insertion::Marker => "a marker for what is dropped".to_owned(),
            Insertion::Memory { .. } => "the pinned memory".to_owned(),
        }
    }
}

/// The titles of several texts.
#[must_use]
pub fn titles(own: &[Insertion]) -> String {
    own.iter().map(Insertion::title).collect::<Vec<_>>().join(" and ")
}

impl Case<'_> {
    /// Returns what Tidegate adds to the request, and where.
    pub fn insertions(&self) -> Vec<(Place, Insertion)> {
        if self.request.route.context.observe {
            return Vec::new();
        }
        let insertion = |(kind, place): &(OwnKind, Place)| Some((*place, self.insertion(*kind)?));
        self.places.iter().filter_map(insertion).collect()
    }

    fn insertion(&self, kind: OwnKind) -> Option<Insertion> {
        let (plan, messages) = (&self.assessment.decision.plan, &self.assessment.chat.messages);
        match kind {
            OwnKind::Notes => self.state.notes().map(|pinned| Insertion::Memory { tokens: pinned.tokens }),
            OwnKind::Summary => plan.folded.as_ref().map(|folded| {
                let is_talk = |message: &&Message| !message.role.is_instruction();
                let covered = messages[..folded.upto].iter().filter(is_talk).count();
                Insertion::Summary { tokens: folded.tokens, covered }
            }),
            OwnKind::Marker => Some(Insertion::Marker),
        }
    }

    /// Returns the summary in the request: the index of the message that it precedes or stands in, its tokens, and the number of
    /// messages covered.
    pub fn summary(&self) -> Option<(usize, Tokens, usize)> {
        self.insertions().into_iter().find_map(|(place, insertion)| match (place, insertion) {
            (place, Insertion::Summary { tokens, covered }) => Some((place.before(), tokens, covered)),
            (_, Insertion::Marker | Insertion::Memory { .. }) => None,
        })
    }

    /// Whether a summary is due but only the next request would get it.
    pub fn is_folded_later(&self) -> bool {
        let fold = &self.request.route.context.fold;
        self.summary().is_some() && self.due.as_ref().is_some_and(|due| !is_awaited(&due.job, fold))
    }

    /// Whether a summary is due but would not make the request shorter.
    pub fn is_summary_useless(&self) -> bool {
        self.due.is_some() && self.assessment.decision.plan.folded.is_none()
    }

    pub fn fold_role(&self) -> &'static str {
        match self.request.route.context.fold.role {
            FoldRole::User => "user",
            FoldRole::System => "system",
        }
    }

    /// Why a summary is due or was made.
    pub fn fold_cause(&self) -> Option<Cause> {
        let of_plan = self.assessment.decision.plan.cause.filter(|cause| figures::asks_for_summary(*cause));
        self.due.as_ref().map(|due| due.job.cause).or(of_plan.filter(|_| self.kind == CaseKind::Recorded))
    }
}

/// Describes why a summary is due.
pub fn cause(case: &Case<'_>) -> String {
    let Some(DueFold { job, .. }) = &case.due else { return "none: no summary is due".to_owned() };
    let sentence = match job.cause {
        Cause::Budget if job.is_urgent() => "the request would not fit otherwise",
        Cause::Budget => "the request uses as many tokens as fold.when allows",
        cause => figures::sentence(cause),
    };
    format!("{}: {sentence}", job.cause.name())
}

/// Describes how a running proxy may differ from this preview, with the most important note last.
pub fn notes(case: &Case<'_>) -> Vec<String> {
    if case.kind == CaseKind::Recorded {
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
        let made = if case.request.route.context.fold.summarizer == "extractive" {
            "made but not sent"
        } else {
            "not made"
        };
        notes.push(format!("`context.observe` is true: the summary would be {made}"));
    }
    notes.extend(later(case));
    notes
}

/// The notes that a view of the rewritten request alone needs.
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
