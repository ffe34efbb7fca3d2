use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_summary::Summary;

/// The stored form of a summary, opaque to the store. Members are added, never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoldState {
    pub summary: Summary,
    /// Whether the user's last request stays beside the summary.
    pub keeps_request: bool,
    /// The covered messages that stay beside it, each by the number of messages before it.
    pub kept: Vec<usize>,
    /// Those of them that an entry of a model's summary names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anchored: Vec<usize>,
    /// How many messages the conversation had.
    pub seen: usize,
    #[serde(flatten)]
    pub author: Author,
}

/// Who wrote a summary, and what that cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Author {
    /// The summarizer's model, or `extractive`.
    #[serde(rename = "author")]
    pub model: String,
    pub calls: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

impl FoldState {
    /// Returns `None` for a state that cannot be read; the conversation then goes on without it.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<FoldState> {
        serde_json::from_slice(bytes).ok()
    }

    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        // Only strings, numbers and lists: serializing cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_is_flat_and_reads_back() {
        let author = Author { model: "m".to_owned(), calls: 2, prompt_tokens: 3, completion_tokens: 4 };
        let state = FoldState { kept: vec![1], seen: 5, author, ..FoldState::default() };
        let json: serde_json::Value = serde_json::from_slice(&state.to_bytes()).unwrap();
        assert_eq!((&json["author"], &json["calls"], &json["seen"]), (&"m".into(), &2.into(), &5.into()));
        assert_eq!(FoldState::from_bytes(&state.to_bytes()), Some(state));
        assert_eq!(FoldState::from_bytes(b"{"), None);
    }
}
