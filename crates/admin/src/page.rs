//! The JSON pages of the API. The server serializes these types and the client deserializes them, so that
//! they cannot disagree.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_context::TurnRecord;
use tidegate_store::{ConversationKey, Head, Pinned, RawMessage, RecordError, Standing, StoredFold};

/// A conversation without its messages. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConversationSummary {
    /// The 32 digits of its key.
    pub id: String,
    /// The name its client gave it.
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
    /// The cost of the turns whose price is known; null if none is.
    pub cost_usd: Option<f64>,
    /// The estimated cost of the same turns unedited. Older versions do not report it.
    #[serde(default)]
    pub unedited_cost_usd: Option<f64>,
    /// The number of turns without progress reported by the last turn, if it had a stop hint.
    pub stop_hint: Option<u32>,
    /// Refused requests.
    pub refusals: u64,
    /// Requests that the upstream answered with an error, or not at all. Older versions do not report them.
    pub errors: u64,
    /// Turns whose plan was only observed.
    pub observed: u64,
    /// What all turns would have forwarded and cost if every plan had been applied; zero and null if all were, or if the price
    /// is unknown.
    pub tokens_planned: u64,
    pub planned_cost_usd: Option<f64>,
    /// Requests forwarded without something they should have had, such as stored memory.
    pub degraded: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationPage {
    pub conversations: Vec<ConversationSummary>,
    /// The total number; null with a filter, because counting would read every conversation.
    pub total: Option<usize>,
    pub offset: usize,
    pub limit: usize,
    /// The number of conversations examined for this page.
    pub scanned: usize,
    /// The offset to continue from; null at the end.
    pub next: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnPage {
    pub conversation: ConversationSummary,
    /// The memory pinned to it.
    #[serde(flatten)]
    pub memory: MemoryPage,
    /// One page of turns, oldest first, as recorded.
    pub turns: Vec<TurnRecord>,
    pub turns_total: usize,
    pub turns_offset: usize,
    pub turns_limit: usize,
    /// All summaries, newest last, on every page. Older versions do not report them.
    #[serde(default)]
    pub summaries: Vec<FoldEntry>,
    /// Why the list may be incomplete; absent if it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summaries_degraded: Option<String>,
}

/// The memory pinned to a conversation. Tidegate adds it to every request that it edits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryPage {
    /// Null if nothing is pinned.
    pub memory: Option<String>,
    /// Why the pinned memory cannot be read; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_degraded: Option<String>,
}

/// A summary that replaces old messages of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoldEntry {
    /// The id of the last message that it covers.
    pub covers: String,
    /// The number of messages it covers.
    pub covered: u32,
    /// When it was written.
    pub at: u64,
    /// The model that wrote it, or `extractive`.
    pub author: String,
    /// The number of summarizer calls it took.
    pub calls: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The summary's fields, as lists of entries with a `text`, and its `summary_text`; null if it cannot be
    /// read.
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
    pub unreadable: UnreadableCounts,
}

/// A recorded message. Exactly one of `message` and `text` is present.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageEntry {
    /// The digest of the conversation up to this message, in hexadecimal.
    pub id: String,
    /// The id of the previous message; all zeros for the first.
    pub parent: String,
    /// Its index in the request that first contained it.
    pub position: u32,
    /// When it was first seen.
    pub at: u64,
    /// Whether its turn failed, was refused or was aborted, so that it is not part of the history that Tidegate keeps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
    /// The message as the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
    /// The same as a string, if it is not valid JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The number of stored messages that cannot be read, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadableCounts {
    pub count: usize,
    /// Encrypted with a key that is not configured.
    pub no_key: usize,
    pub damaged: usize,
    /// Written by a newer version.
    pub newer: usize,
    /// Behind the first 256 MiB of a conversation, which are read at once.
    #[serde(default)]
    pub too_long: usize,
}

impl ConversationSummary {
    pub(crate) fn new(key: ConversationKey, head: &Head) -> ConversationSummary {
        let label = |name| head.labels.get(name).cloned().unwrap_or_default();
        let count = |name| head.counts.get(name).copied().unwrap_or_default();
        ConversationSummary {
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
            errors: count("errors"),
            observed: count("observed"),
            // The other turns have been forwarded as planned.
            tokens_planned: match count("observed") {
                0 => 0,
                _ => count("tokens_after").saturating_sub(count("tokens_observed")) + count("tokens_planned"),
            },
            planned_cost_usd: usd(count("planned_cost_nanousd")).and_then(|_| {
                usd(count("cost_nanousd").saturating_sub(count("observed_cost_nanousd"))
                    + count("planned_cost_nanousd"))
            }),
            degraded: count("degraded"),
        }
    }
}

impl ConversationSummary {
    /// What would have been forwarded if every plan had been applied.
    pub(crate) fn tokens_as_planned(&self) -> u64 {
        if self.observed > 0 { self.tokens_planned } else { self.tokens_after }
    }
}

/// Turns without a known price add zero, so zero means that no price was known.
fn usd(nano: u64) -> Option<f64> {
    // A float is exact to a billionth up to billions of dollars.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    (nano > 0).then(|| nano as f64 / 1e9)
}

impl MemoryPage {
    pub(crate) fn new(pinned: Pinned) -> MemoryPage {
        let memory_degraded = pinned.unreadable.map(|error| error.reason().to_owned());
        MemoryPage { memory: pinned.text, memory_degraded }
    }
}

impl MessageEntry {
    pub(crate) fn new(message: &RawMessage) -> MessageEntry {
        let raw = serde_json::from_slice::<Box<RawValue>>(&message.json).ok();
        let text = raw.is_none().then(|| String::from_utf8_lossy(&message.json).into_owned());
        MessageEntry {
            id: hex(&message.id.0),
            parent: hex(&message.parent.0),
            position: message.position,
            at: message.at,
            abandoned: message.standing == Standing::Abandoned,
            message: raw,
            text,
        }
    }
}

impl FoldEntry {
    pub(crate) fn new(fold: &StoredFold) -> FoldEntry {
        // The remaining members are only needed to fold again.
        let stored: FoldEntry = serde_json::from_slice(&fold.state).unwrap_or_default();
        FoldEntry { covers: fold.covers.to_string(), covered: fold.covered, at: fold.at.0, ..stored }
    }
}

impl UnreadableCounts {
    pub(crate) fn new(errors: &[RecordError]) -> UnreadableCounts {
        let mut unreadable = UnreadableCounts { count: errors.len(), ..UnreadableCounts::default() };
        for error in errors {
            match error {
                RecordError::NoKey => unreadable.no_key += 1,
                RecordError::Damaged => unreadable.damaged += 1,
                RecordError::Newer(_) => unreadable.newer += 1,
                RecordError::NoRoom => unreadable.too_long += 1,
            }
        }
        unreadable
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    tidegate_engine::Digest(*bytes).to_string()
}
