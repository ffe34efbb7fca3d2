//! The history of a conversation, for clients that do not resend it.

use super::Conversations;
use crate::record::{self, RawMessage};
use crate::store::MessageId;
use crate::{ConversationKey, Degraded, Recalled};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_engine::Digest;

/// The messages from the beginning of a conversation to its newest message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub messages: Vec<RawMessage>,
    /// The instructions, the newest for each position.
    pub instructions: Vec<RawMessage>,
}

/// How many times longer than other operations reading a whole conversation may take.
const HISTORY_TIMEOUT_FACTOR: u32 = 8;

impl Conversations {
    /// Reads the history of a conversation. If the store is unavailable, the history comes from this process, and the second
    /// value says why it may be incomplete.
    pub async fn history(self: &Arc<Self>, key: ConversationKey) -> (Arc<History>, Option<Degraded>) {
        let limit = self.options.timeout * HISTORY_TIMEOUT_FACTOR;
        match self.with_timeout(limit, self.store.messages(key)).await {
            Ok(records) => {
                let keyring = self.options.keyring.as_ref();
                let mut damage = None;
                let mut decode = |(id, record): &(MessageId, bytes::Bytes)| {
                    let message = record::decode_message(key, *id, record, keyring);
                    message.map_err(|error| damage = Some(error.into())).ok()
                };
                let messages = records.iter().filter_map(&mut decode).collect();
                let stored = History::of(messages);
                // This process may know messages that could not be written yet.
                let cached = self.histories.get(&key).filter(|cached| cached.continues(&stored));
                let history = cached.unwrap_or_else(|| Arc::new(stored));
                self.histories.insert(key, Arc::clone(&history));
                (history, damage)
            }
            Err(degraded) => (self.histories.get(&key).unwrap_or_default(), Some(degraded)),
        }
    }

    /// Appends new messages to the history that this process holds, if any.
    pub fn note(&self, key: ConversationKey, messages: &[RawMessage]) {
        let Some(known) = self.histories.get(&key) else { return };
        let mut history = History::clone(&known);
        for message in messages {
            let last = history.messages.last().map_or(MessageId(Digest::default().0), |last| last.id);
            if message.parent == last && !is_instruction(message) {
                history.messages.push(message.clone());
            }
        }
        self.histories.insert(key, Arc::new(history));
    }
}

impl History {
    /// Whether this history extends the other.
    fn continues(&self, other: &History) -> bool {
        let end = other.messages.last().map(|message| message.id);
        self.messages.len() > other.messages.len()
            && (end.is_none() || self.messages.iter().any(|message| Some(message.id) == end))
    }

    /// Finds the path from the beginning to the newest message in the tree of all messages.
    #[must_use]
    pub fn of(messages: Vec<RawMessage>) -> History {
        let root = MessageId(Digest::default().0);
        let mut by_id: HashMap<MessageId, RawMessage> =
            messages.into_iter().map(|message| (message.id, message)).collect();
        // Instructions are not part of the chain: no message has one as its parent.
        let (instructions, others): (Vec<_>, Vec<_>) =
            by_id.values().partition(|message| is_instruction(message));
        let newest = others.iter().max_by_key(|message| (message.at, message.position, message.id));
        let mut at = newest.map(|message| message.id);
        let mut by_position: HashMap<u32, &RawMessage> = HashMap::new();
        for new in instructions {
            let known = by_position.get(&new.position);
            if known.is_none_or(|known| (known.at, known.id) < (new.at, new.id)) {
                by_position.insert(new.position, new);
            }
        }
        let mut instructions: Vec<RawMessage> = by_position.into_values().cloned().collect();
        instructions.sort_by_key(|instruction| instruction.position);
        let mut path = Vec::new();
        // Damaged records may form a cycle.
        let mut seen = HashSet::new();
        while let Some(id) = at.filter(|id| *id != root && seen.insert(*id)) {
            let Some(message) = by_id.remove(&id) else { break };
            at = Some(message.parent);
            path.push(message);
        }
        path.reverse();
        History { messages: path, instructions }
    }
}

/// Whether a message is an instruction, according to the role in its JSON.
fn is_instruction(message: &RawMessage) -> bool {
    #[derive(serde::Deserialize)]
    struct Role<'a> {
        #[serde(borrow, default)]
        role: std::borrow::Cow<'a, str>,
    }
    let role = serde_json::from_slice::<Role<'_>>(&message.json).map(|role| role.role);
    role.is_ok_and(|role| matches!(&*role, "system" | "developer"))
}

impl Recalled {
    /// Notes why this may be incomplete, unless a reason is already known.
    pub fn degrade(&mut self, degraded: Option<Degraded>) {
        self.degraded = self.degraded.or(degraded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: u8, parent: u8, at: u64, json: &'static str) -> RawMessage {
        let position = u32::from(id);
        RawMessage {
            id: MessageId([id; 32]),
            parent: MessageId([parent; 32]),
            position,
            at,
            json: json.into(),
        }
    }

    const USER: &str = r#"{"role":"user","content":"x"}"#;
    const SYSTEM: &str = r#"{"content":"x","role":"system"}"#;

    #[test]
    fn history_is_the_path_to_the_newest_message() {
        let all = vec![
            message(1, 0, 10, USER),
            message(2, 1, 20, USER),
            message(3, 2, 30, USER),
            // An abandoned branch.
            message(4, 1, 25, USER),
            message(9, 0, 99, SYSTEM),
        ];
        let history = History::of(all);
        let ids: Vec<u8> = history.messages.iter().map(|message| message.id.0[0]).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(history.instructions.len(), 1);
    }

    #[test]
    fn cycles_and_missing_parents_end_the_path() {
        let history = History::of(vec![message(1, 2, 10, USER), message(2, 1, 20, USER)]);
        assert_eq!(history.messages.len(), 2);
        assert_eq!(History::of(vec![message(3, 7, 1, USER)]).messages.len(), 1);
        assert_eq!(History::of(Vec::new()), History::default());
    }
}
