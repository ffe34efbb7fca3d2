/// The maximum number of bytes of an answer that are kept. The client gets a longer one in full; only our copy is truncated.
pub(crate) const ANSWER_CAP: usize = 4 << 20;
/// The maximum number of tool calls and finish reasons that are kept: their indexes come from the upstream and are not trusted.
pub(crate) const LIST_CAP: usize = 256;
/// The longest finish reason that is kept.
const REASON_CAP: usize = 256;

/// An upstream's answer, read while its bytes pass to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub id: Option<String>,
    pub model: Option<String>,
    pub usage: Option<Usage>,
    /// One for each finished choice, in the order in which they finished.
    pub finish_reasons: Vec<String>,
    /// The text of the first choice.
    pub content: Option<String>,
    /// The refusal of the first choice.
    pub refusal: Option<String>,
    /// The tool calls of the first choice.
    pub tool_calls: Vec<AnswerCall>,
    /// The other members of the first choice's message, by name.
    pub(crate) members: Vec<(String, Member)>,
    /// The first choice's message as it came, if it came as a whole.
    pub(crate) whole: Option<String>,
    /// The blocks of the answer, in dialects that have them.
    pub(crate) blocks: Vec<AnswerBlock>,
    /// Whether the answer holds an error instead of, or after, its choices.
    pub failed: bool,
    /// Whether the answer ended before its end. Its usage is then what the upstream had counted at its beginning.
    pub partial: bool,
    /// Whether part of the answer was too long to keep.
    pub truncated: bool,
    kept: usize,
}

/// Stands for an answer without any words or calls in a history that is kept here, because the APIs do not take an empty message back.
pub(crate) const NO_ANSWER: &str = "[no answer]";

/// The members in which servers of chat completions put what the model thinks.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// A tool call in an answer, assembled from its deltas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerCall {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub arguments: String,
    /// The other members of the call, by name.
    pub(crate) members: Vec<(String, Member)>,
}

/// A block of an answer, assembled from its deltas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerBlock {
    /// All members of the block, by name.
    pub(crate) members: Vec<(String, Member)>,
    /// The input of a call, if it came in deltas.
    pub(crate) input: String,
    /// The index of the call in the answer's list, if it is one.
    pub(crate) call: Option<usize>,
}

/// The value of a member that has no meaning here, assembled from its deltas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    Text(String),
    /// Anything else, as JSON.
    Json(String),
}

impl Member {
    pub(crate) fn json(&self) -> String {
        match self {
            Member::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Member::Json(json) => json.clone(),
        }
    }
}

/// Adds a member to the inside of an object.
pub(crate) fn push_member(object: &mut String, key: &str, json: &str) {
    if !object.is_empty() {
        object.push(',');
    }
    object.push_str(&serde_json::Value::from(key).to_string());
    object.push(':');
    object.push_str(json);
}

/// The upstream's own token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    /// Tokens of the prompt that were written to the cache.
    pub cache_write_tokens: u64,
    pub reasoning_tokens: u64,
}

impl Answer {
    /// Everything that the model has written, as far as it was kept.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let reasoning = self.members.iter().filter_map(|(name, member)| match member {
            Member::Text(text) if REASONING.contains(&name.as_str()) => Some(text.as_str()),
            Member::Text(_) | Member::Json(_) => None,
        });
        let thinking = self.blocks.iter().filter_map(|block| block.text("thinking"));
        let said = self.content.as_deref().into_iter().chain(self.refusal.as_deref());
        said.chain(self.tool_calls.iter().map(|call| call.arguments.as_str()))
            .chain(reasoning)
            .chain(thinking)
    }

    /// Adds the reason why a choice is finished.
    pub(crate) fn finish(&mut self, reason: &str) {
        if self.finish_reasons.len() < LIST_CAP {
            self.finish_reasons.push(reason.chars().take(REASON_CAP).collect());
        }
    }

    /// Appends to a text of the answer, unless that would exceed the cap.
    pub(crate) fn append(&mut self, to: &mut String, text: &str) {
        if self.kept.saturating_add(text.len()) > ANSWER_CAP {
            self.truncated = true;
        } else if !self.truncated {
            // Once something is missing, appending would join texts that are not adjacent.
            self.kept += text.len();
            to.push_str(text);
        }
    }
}
