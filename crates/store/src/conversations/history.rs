//! The history of a conversation that its client holds, as far as it was recorded.

use super::Conversations;
use crate::record::{self, RawMessage, Room, Standing};
use crate::store::MessageId;
use crate::{ConversationKey, Degraded, Recalled};
use bytes::Bytes;
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
pub(super) const HISTORY_TIMEOUT_FACTOR: u32 = 8;

/// The messages that were recorded of a conversation, as they are stored: compressed, and encrypted if there is a key. What they hold
/// may be a thousand times as long.
#[derive(Debug)]
pub struct Records {
    conversations: Arc<Conversations>,
    key: ConversationKey,
    records: Vec<(MessageId, Bytes)>,
}

impl Conversations {
    /// Reads what was recorded of a conversation.
    pub async fn recorded(self: &Arc<Self>, key: ConversationKey) -> Result<Records, Degraded> {
        let limit = self.options.timeout * HISTORY_TIMEOUT_FACTOR;
        let records = self.with_timeout(limit, self.store.messages(key)).await?;
        Ok(Records { conversations: self.clone(), key, records })
    }
}

impl Records {
    /// The bytes of the records.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.records.iter().map(|(_, record)| record.len() as u64).sum()
    }

    /// All messages that became part of the conversation, in no particular order. Fails if there is no room for one.
    pub fn messages(&self, room: Room<'_>) -> Result<Vec<RawMessage>, Degraded> {
        self.those(|_| true, room)
    }

    /// Those of them that are wanted. The others are not even decompressed.
    pub fn those(
        &self,
        is_wanted: impl Fn(MessageId) -> bool,
        room: Room<'_>,
    ) -> Result<Vec<RawMessage>, Degraded> {
        let keyring = self.conversations.options.keyring.as_ref();
        let wanted = self.records.iter().filter(|(id, _)| is_wanted(*id));
        let decoded = wanted.map(|(id, record)| record::decode_message(self.key, *id, record, keyring, room));
        let kept = decoded.filter(|one| !one.as_ref().is_ok_and(|one| one.standing == Standing::Abandoned));
        kept.map(|one| one.map_err(Degraded::from)).collect()
    }
}

impl History {
    /// The path to the latest request that was decided.
    #[must_use]
    pub fn after(messages: Vec<RawMessage>, recalled: &Recalled) -> History {
        let latest = recalled.memory.waypoints().last();
        History::of(messages, latest.map(|waypoint| MessageId(waypoint.end.0)))
    }

    /// Finds the path from the beginning to `end`, and from there to the answer, in the tree of all messages. The chain of messages
    /// says which is the latest, not their times: clocks differ between processes.
    #[must_use]
    pub fn of(messages: Vec<RawMessage>, end: Option<MessageId>) -> History {
        let root = MessageId(Digest::default().0);
        let (instructions, others): (Vec<RawMessage>, Vec<RawMessage>) =
            messages.into_iter().filter(|one| one.standing == Standing::Kept).partition(is_instruction);
        let answer = others.iter().find(|one| Some(one.parent) == end).map(|answer| answer.id);
        let mut at = answer.or(end);
        let mut by_id: HashMap<MessageId, RawMessage> =
            others.into_iter().map(|message| (message.id, message)).collect();
        let mut by_position: HashMap<u32, RawMessage> = HashMap::new();
        for new in instructions {
            let known = by_position.get(&new.position);
            if known.is_none_or(|known| (known.at, known.id) < (new.at, new.id)) {
                by_position.insert(new.position, new);
            }
        }
        let mut instructions: Vec<RawMessage> = by_position.into_values().collect();
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
            standing: Standing::Kept,
        }
    }

    fn of(messages: Vec<RawMessage>, end: u8) -> History {
        History::of(messages, Some(MessageId([end; 32])))
    }

    const USER: &str = r#"{"role":"user","content":"x"}"#;
    const SYSTEM: &str = r#"{"content":"x","role":"system"}"#;

    #[test]
    fn history_is_the_path_to_the_end_and_its_answer() {
        let all = vec![
            message(1, 0, 10, USER),
            message(2, 1, 20, USER),
            message(3, 2, 30, USER),
            // Another branch, by a clock that runs ahead.
            message(4, 1, 60_000, USER),
            message(9, 0, 99, SYSTEM),
        ];
        let history = of(all, 2);
        let ids: Vec<u8> = history.messages.iter().map(|message| message.id.0[0]).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(history.instructions.len(), 1);
    }

    #[test]
    fn cycles_and_missing_parents_end_the_path() {
        let history = of(vec![message(1, 2, 10, USER), message(2, 1, 20, USER)], 1);
        assert_eq!(history.messages.len(), 2);
        assert_eq!(of(vec![message(3, 7, 1, USER)], 3).messages.len(), 1);
        assert_eq!(of(Vec::new(), 0), History::default());
    }
}
