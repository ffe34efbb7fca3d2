//! What is answered. The server writes these and the command reads them, so that they cannot disagree.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_context::TurnRecord;
use tidegate_store::{ConversationKey, Head, Pinned, RawMessage, RecordError, StoredFold};

/// One conversation without what was said in it. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The 32 digits that it is kept under.
    pub id: String,
    /// What its client calls it.
    pub name: String,
    pub tenant: String,
    pub route: String,
    pub model: String,
    pub strategy: String,
    pub first: u64,
    pub last: u64,
    pub requests: u64,
    pub turns: u64,
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    /// What its turns cost, as far as their prices are known; null where none is.
    pub cost_usd: Option<f64>,
    /// What they would have cost as the client sent them, estimated; null where that is. An older process does not tell.
    #[serde(default)]
    pub unedited_cost_usd: Option<f64>,
    /// How many turns had brought nothing new at its last one, where that was worth a hint.
    pub stop_hint: Option<u32>,
    /// Requests that were refused, and that went without something they should have had.
    pub refusals: u64,
    pub degraded: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationPage {
    pub conversations: Vec<Summary>,
    /// How many there are; unknown under a filter, for which all of them would have to be read.
    pub total: Option<usize>,
    pub offset: usize,
    pub limit: usize,
    /// How many were looked at for this page.
    pub scanned: usize,
    /// The offset to go on from; none at the end.
    pub next: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnPage {
    pub conversation: Summary,
    /// What is pinned to it.
    #[serde(flatten)]
    pub memory: MemoryPage,
    /// The oldest first, with everything that was recorded of each.
    pub turns: Vec<TurnRecord>,
    pub turns_total: usize,
    pub turns_offset: usize,
    pub turns_limit: usize,
    /// All of them on every page, the newest last. An older process has none to tell.
    #[serde(default)]
    pub summaries: Vec<FoldEntry>,
    /// Why they may not be all; absent if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summaries_degraded: Option<String>,
}

/// What is pinned to a conversation: it is in every request that is edited at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryPage {
    /// Null if nothing is.
    pub memory: Option<String>,
    /// Why what is there cannot be read; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_degraded: Option<String>,
}

/// What stands for old messages of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoldEntry {
    /// The id of the last message that it covers.
    pub covers: String,
    /// How many messages that is.
    pub covered: u32,
    /// When it was made.
    pub at: u64,
    /// Who wrote it: a model, or `extractive`.
    pub author: String,
    /// What that cost.
    pub calls: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Lists of entries, each with a `text`, and a `summary_text`; null if it cannot be read.
    pub summary: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessagePage {
    pub messages: Vec<MessageEntry>,
    pub total: usize,
    pub offset: usize,
    pub limit: usize,
    /// Whether messages are recorded at all (`store.raw`).
    pub recorded: bool,
    pub unreadable: Unreadable,
}

/// A message with its place. Exactly one of `message` and `text` is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageEntry {
    /// The digest of the conversation up to it, in hexadecimal digits.
    pub id: String,
    /// The message before it; all zeros before the first.
    pub parent: String,
    /// Its index in the request that brought it.
    pub position: u32,
    /// When it was first seen.
    pub at: u64,
    /// The client's own bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
    /// The same where they are no JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Messages that are there and cannot be shown, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unreadable {
    pub count: usize,
    /// Encrypted with a key that is not given.
    pub no_key: usize,
    pub damaged: usize,
    /// Written by a newer version.
    pub newer: usize,
}

impl Summary {
    pub(crate) fn of(key: ConversationKey, head: &Head) -> Summary {
        let label = |name| head.labels.get(name).cloned().unwrap_or_default();
        let count = |name| head.counts.get(name).copied().unwrap_or_default();
        Summary {
            id: key.to_string(),
            name: label("name"),
            tenant: label("tenant"),
            route: label("route"),
            model: label("model"),
            strategy: label("strategy"),
            first: head.first,
            last: head.last,
            requests: count("requests"),
            turns: count("turns"),
            tokens_before: count("tokens_before"),
            tokens_after: count("tokens_after"),
            prompt_tokens: count("prompt_tokens"),
            completion_tokens: count("completion_tokens"),
            cached_tokens: count("cached_tokens"),
            cost_usd: usd(count("cost_nanousd")),
            unedited_cost_usd: usd(count("unedited_cost_nanousd")),
            stop_hint: label("stop_hint").parse().ok(),
            refusals: count("refusals"),
            degraded: count("degraded"),
        }
    }
}

/// A turn whose price is not known adds nothing, so that nothing at all means that none was.
fn usd(nano: u64) -> Option<f64> {
    // Billions of dollars would have to be spent before a float is off by a billionth.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    (nano > 0).then(|| nano as f64 / 1e9)
}

impl MemoryPage {
    pub(crate) fn of(pinned: Pinned) -> MemoryPage {
        let memory_degraded = pinned.unreadable.map(|error| error.reason().to_owned());
        MemoryPage { memory: pinned.text, memory_degraded }
    }
}

impl MessageEntry {
    pub(crate) fn of(message: &RawMessage) -> MessageEntry {
        let raw = serde_json::from_slice::<Box<RawValue>>(&message.json).ok();
        let text = raw.is_none().then(|| String::from_utf8_lossy(&message.json).into_owned());
        MessageEntry {
            id: hex(&message.id.0),
            parent: hex(&message.parent.0),
            position: message.position,
            at: message.at,
            message: raw,
            text,
        }
    }
}

impl FoldEntry {
    pub(crate) fn of(fold: &StoredFold) -> FoldEntry {
        // The rest of what is stored is for whoever folds again.
        let told: FoldEntry = serde_json::from_slice(&fold.state).unwrap_or_default();
        FoldEntry { covers: fold.covers.to_string(), covered: fold.covered, at: fold.at.0, ..told }
    }
}

impl Unreadable {
    pub(crate) fn of(errors: &[RecordError]) -> Unreadable {
        let mut unreadable = Unreadable { count: errors.len(), ..Unreadable::default() };
        for error in errors {
            match error {
                RecordError::NoKey => unreadable.no_key += 1,
                RecordError::Damaged => unreadable.damaged += 1,
                RecordError::Newer(_) => unreadable.newer += 1,
            }
        }
        unreadable
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    tidegate_engine::Digest(*bytes).to_string()
}
