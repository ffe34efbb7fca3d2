//! A stored summary, and the message that it becomes in a request.

use crate::look::Look;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_config::FoldRole;
use tidegate_engine::{Fold, Tokens};
use tidegate_store::StoredFold;
use tidegate_summary::{Section, Summary, cap, render, without};
use tidegate_tokens::chat::message_tokens;
use tidegate_tokens::{Encoding, count};
use tidegate_wire::{Dialect, OwnRole};

/// What is kept of a summary, opaque to the store. Members are added, never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    pub(crate) summary: Summary,
    pub(crate) keeps_request: bool,
    /// The messages that stay beside it, each by how many come before it.
    pub(crate) kept: Vec<usize>,
    /// How many messages the conversation had.
    pub(crate) seen: usize,
    /// Who wrote it, and what that cost.
    pub(crate) author: String,
    pub(crate) calls: u32,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
}

/// A summary as it can stand in a request.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryMessage {
    pub fold: Fold,
    /// The message, a JSON object; empty where what is pinned says everything already.
    pub json: Bytes,
    summary: Summary,
    covered: usize,
    /// Whether it never had anything to say but how many messages it stands for.
    is_bare: bool,
}

impl State {
    /// Nothing for a state that cannot be read: the conversation goes on without it.
    pub(crate) fn of(fold: &StoredFold) -> Option<State> {
        serde_json::from_slice(&fold.state).ok()
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        // Strings and numbers only: there is nothing in it that JSON cannot say.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

impl SummaryMessage {
    pub(crate) fn of(stored: &StoredFold, look: &Look<'_>) -> Option<SummaryMessage> {
        let state = State::of(stored)?;
        let covered = usize::try_from(stored.covered).unwrap_or(usize::MAX);
        let is_bare = state.summary.is_empty();
        let summary = match look.pinned {
            Some(pinned) if look.blocks.dedupe => without(&state.summary, pinned),
            Some(_) | None => state.summary,
        };
        let fold = Fold {
            covers: stored.covers,
            keeps_request: state.keeps_request,
            seen: state.seen,
            kept: state.kept,
            ..Fold::default()
        };
        let whole = SummaryMessage { fold, json: Bytes::new(), summary, covered, is_bare };
        Some(match look.blocks.summary_max {
            Some(most) => whole.within(most, look),
            None if whole.summary.is_empty() && !is_bare => whole,
            None => whole.shown(look),
        })
    }

    /// With so much of the summary as fits into `most`, in the unit of the limits.
    pub(crate) fn within(&self, most: Tokens, look: &Look<'_>) -> SummaryMessage {
        let summary = cap(&self.summary, self.covered, &|text| look.size(text) <= most);
        let shown = SummaryMessage { summary, json: Bytes::new(), ..self.clone() };
        // A summary that is rid of everything is no longer there; one that found nothing worth saying still says how many messages
        // it stands for, if there is room for that.
        let fits = || look.size(&render(&shown.summary, self.covered)) <= most;
        if shown.summary.is_empty() && !(self.is_bare && fits()) {
            let fold = Fold { tokens: Tokens::ZERO, size: Tokens::ZERO, ..shown.fold };
            return SummaryMessage { fold, ..shown };
        }
        shown.shown(look)
    }

    /// As the message that it becomes.
    fn shown(self, look: &Look<'_>) -> SummaryMessage {
        let text = render(&self.summary, self.covered);
        let (tokens, size) = (tokens(&text, look.role, look.encoding), look.size_of_own(&text));
        SummaryMessage { fold: Fold { tokens, size, ..self.fold }, json: message(look.role, &text), ..self }
    }
}

/// How long a summary is before anything is taken from it, and how many of its lines what is pinned says already.
pub(crate) fn before_blocks(fold: &StoredFold, look: &Look<'_>) -> (u64, usize) {
    let Some(state) = State::of(fold) else { return (0, 0) };
    let whole = render(&state.summary, usize::try_from(fold.covered).unwrap_or(usize::MAX));
    let lines = |summary: &Summary| {
        let text = summary.summary_text.lines().filter(|line| !line.trim().is_empty()).count();
        text + Section::ALL.iter().map(|section| summary.list(*section).len()).sum::<usize>()
    };
    let left = match look.pinned {
        Some(pinned) if look.blocks.dedupe => lines(&without(&state.summary, pinned)),
        Some(_) | None => lines(&state.summary),
    };
    (look.size(&whole).0, lines(&state.summary) - left)
}

/// What a summary with this text costs.
pub(crate) fn tokens(text: &str, role: FoldRole, encoding: Encoding) -> Tokens {
    message_tokens(encoding, name(role), None) + count(encoding, text)
}

/// A message of our own.
pub(crate) fn message(role: FoldRole, text: &str) -> Bytes {
    let role = match role {
        FoldRole::User => OwnRole::User,
        FoldRole::System => OwnRole::System,
    };
    Dialect::Chat.own_message(role, text)
}

/// What stands where the middle of a conversation is left out.
pub(crate) fn gap_marker(messages: usize) -> String {
    let (verb, noun) = if messages == 1 { ("is", "message") } else { ("are", "messages") };
    format!(
        "[{messages} {noun} from the middle of this conversation {verb} left out here to fit the context window.]"
    )
}

/// What stands where messages are missing that no summary covers.
pub(crate) fn marker(turns: usize) -> String {
    format!(
        "[{turns} earlier turns of this conversation are missing here: they did not fit and could not be summarized in time. \
         They are not lost, and will be summarized later.]"
    )
}

fn name(role: FoldRole) -> &'static str {
    match role {
        FoldRole::User => "user",
        FoldRole::System => "system",
    }
}
