//! A stored summary, and the message that it becomes in a request.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_config::FoldRole;
use tidegate_engine::{Fold, Tokens};
use tidegate_store::StoredFold;
use tidegate_summary::{Summary, render};
use tidegate_tokens::chat::message_tokens;
use tidegate_tokens::{Encoding, count};

/// What is kept of a summary, opaque to the store. Members are added, never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    pub(crate) summary: Summary,
    pub(crate) keeps_request: bool,
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
    /// The message, a JSON object.
    pub json: Bytes,
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
    pub(crate) fn of(fold: &StoredFold, role: FoldRole, encoding: Encoding) -> Option<SummaryMessage> {
        let state = State::of(fold)?;
        let text = render(&state.summary, usize::try_from(fold.covered).unwrap_or(usize::MAX));
        let fold = Fold {
            covers: fold.covers,
            tokens: tokens(&text, role, encoding),
            keeps_request: state.keeps_request,
            seen: state.seen,
        };
        Some(SummaryMessage { fold, json: message(role, &text) })
    }
}

/// What a summary with this text costs.
pub(crate) fn tokens(text: &str, role: FoldRole, encoding: Encoding) -> Tokens {
    message_tokens(encoding, name(role), None) + count(encoding, text)
}

/// A message of our own.
pub(crate) fn message(role: FoldRole, text: &str) -> Bytes {
    serde_json::json!({ "role": name(role), "content": text }).to_string().into()
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
