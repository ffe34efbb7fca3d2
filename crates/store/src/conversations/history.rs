//! The history of a conversation whose client does not resend it.

use super::Conversations;
use crate::record::{self, RawMessage};
use crate::store::MessageId;
use crate::{ConversationKey, Recalled};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_engine::Digest;

/// Everything that was said on the way to the newest message, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub messages: Vec<RawMessage>,
    /// What instructs: of those at one place the newest.
    pub instructions: Vec<RawMessage>,
}

/// A whole conversation may take so much longer than a waypoint.
const WHOLE: u32 = 8;

impl Conversations {
    /// What was said in a conversation up to its newest message. Without the store it is what this process knows of it, and the
    /// second part says why.
    pub async fn history(self: &Arc<Self>, key: ConversationKey) -> (Arc<History>, Option<&'static str>) {
        let limit = self.options.timeout * WHOLE;
        match self.waited_for(limit, self.store.messages(key)).await {
            Ok(records) => {
                let keyring = self.options.keyring.as_ref();
                let mut damage = None;
                let mut read = |(id, record): &(MessageId, bytes::Bytes)| {
                    let message = record::decode_message(key, *id, record, keyring);
                    message.map_err(|error| damage = Some(error.reason())).ok()
                };
                let messages = records.iter().filter_map(&mut read).collect();
                let stored = History::of(messages);
                // What could not be written is known here, and is written with the next request.
                let mine = self.histories.get(&key).filter(|mine| mine.continues(&stored));
                let history = mine.unwrap_or_else(|| Arc::new(stored));
                self.histories.insert(key, Arc::clone(&history));
                (history, damage)
            }
            Err(reason) => (self.histories.get(&key).unwrap_or_default(), Some(reason)),
        }
    }
}

impl Conversations {
    /// Adds what was just said to what this process knows of a history that it holds.
    pub fn note(&self, key: ConversationKey, said: &[RawMessage]) {
        let Some(known) = self.histories.get(&key) else { return };
        let mut history = History::clone(&known);
        for message in said {
            let last = history.messages.last().map_or(MessageId(Digest::default().0), |last| last.id);
            if message.parent == last && !is_instruction(message) {
                history.messages.push(message.clone());
            }
        }
        self.histories.insert(key, Arc::new(history));
    }
}

impl History {
    /// Whether it goes on where the other ends.
    fn continues(&self, other: &History) -> bool {
        let end = other.messages.last().map(|message| message.id);
        self.messages.len() > other.messages.len()
            && (end.is_none() || self.messages.iter().any(|message| Some(message.id) == end))
    }

    /// The way from the beginning to the newest message, in a tree of all that was ever said.
    #[must_use]
    pub fn of(messages: Vec<RawMessage>) -> History {
        let begins = MessageId(Digest::default().0);
        let mut by_id: HashMap<MessageId, RawMessage> =
            messages.into_iter().map(|message| (message.id, message)).collect();
        // Instructions stand outside the chain: nothing follows on them, and what is said is told from them by its text.
        let (instructions, said): (Vec<_>, Vec<_>) = by_id.values().partition(|one| is_instruction(one));
        let newest = said.iter().max_by_key(|message| (message.at, message.position, message.id));
        let mut at = newest.map(|message| message.id);
        let mut places: HashMap<u32, &RawMessage> = HashMap::new();
        for one in instructions {
            let newer = places.get(&one.position).is_none_or(|known| (known.at, known.id) < (one.at, one.id));
            if newer {
                places.insert(one.position, one);
            }
        }
        let mut instructions: Vec<RawMessage> = places.into_values().cloned().collect();
        instructions.sort_by_key(|one| one.position);
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        while let Some(id) = at.filter(|id| *id != begins && seen.insert(*id)) {
            let Some(message) = by_id.remove(&id) else { break };
            at = Some(message.parent);
            path.push(message);
        }
        path.reverse();
        History { messages: path, instructions }
    }
}

/// Whether a message instructs. Its role is read out of the text, which is a client's own or of our making.
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
    /// Adds why it may not be all that there is.
    pub fn degrade(&mut self, reason: Option<&'static str>) {
        self.degraded = self.degraded.or(reason);
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

    const SAID: &str = r#"{"role":"user","content":"x"}"#;
    const INSTRUCTS: &str = r#"{"content":"x","role":"system"}"#;

    #[test]
    fn it_is_the_way_to_the_newest_message() {
        let all = vec![
            message(1, 0, 10, SAID),
            message(2, 1, 20, SAID),
            message(3, 2, 30, SAID),
            // Another branch, given up before.
            message(4, 1, 25, SAID),
            message(9, 0, 99, INSTRUCTS),
        ];
        let history = History::of(all);
        let ids: Vec<u8> = history.messages.iter().map(|message| message.id.0[0]).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(history.instructions.len(), 1);
    }

    #[test]
    fn a_damaged_tree_ends_somewhere() {
        let history = History::of(vec![message(1, 2, 10, SAID), message(2, 1, 20, SAID)]);
        assert_eq!(history.messages.len(), 2);
        assert_eq!(History::of(vec![message(3, 7, 1, SAID)]).messages.len(), 1);
        assert_eq!(History::of(Vec::new()), History::default());
    }
}
