//! The history of conversations whose clients do not resend it: a log of turns with a head.

use super::history::HISTORY_TIMEOUT_FACTOR;
use super::{Conversations, off_worker};
use crate::record::{self, LoggedTurn, RawMessage, RecordError, Room, Standing};
use crate::store::{Append, Appended, Delivery, Generation, Journal, LogRead, MessageId, Written};
use crate::{ConversationKey, Degraded};
use bytes::Bytes;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tidegate_engine::Waypoint;
use tokio::time::{Instant, sleep};

/// The turns of a conversation, the oldest first. Each names the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub generation: Generation,
    /// Whether the client certainly does not have the answer of the last turn.
    pub is_undelivered: bool,
    pub turns: Vec<Arc<LoggedTurn>>,
}

/// A turn to append to a log.
#[derive(Clone, Debug)]
pub struct NewTurn {
    pub generation: Generation,
    /// The head that the turn was run on: its own parent, or, if it is a retry, the turn that it replaces.
    pub expected: Option<MessageId>,
    pub turn: LoggedTurn,
    pub waypoint: Option<Waypoint>,
}

/// Why a turn was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// Another turn was appended first, or the conversation has expired.
    Conflict,
    /// The conversation was deleted since.
    Gone,
    /// The store did not say in time. The turn may be in the log or not.
    Unknown(Degraded),
}

/// Accounts for the long part of a log, on whichever thread decodes it.
pub type LogRoom = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// The pause before a turn is written again.
const APPEND_PAUSE: Duration = Duration::from_millis(50);

impl Conversations {
    /// Reads the log of a conversation. Never returns less than the whole of it: fails if there is no room for what is not in memory
    /// yet.
    pub async fn log(self: &Arc<Self>, key: ConversationKey, room: LogRoom) -> Result<Arc<Log>, Degraded> {
        let cached = self.logs.get(&key).unwrap_or_default();
        if let Some(log) = self.log_after(key, &cached, &room).await? {
            return Ok(log);
        }
        // Another process has replaced a turn, or the conversation is another one by now.
        match self.log_after(key, &Arc::default(), &room).await? {
            Some(log) => Ok(log),
            None => Err(Degraded::Corrupt),
        }
    }

    /// Reads what follows the known turns. `None` if the log does not continue them.
    async fn log_after(
        self: &Arc<Self>,
        key: ConversationKey,
        known: &Arc<Log>,
        room: &LogRoom,
    ) -> Result<Option<Arc<Log>>, Degraded> {
        let limit = self.options.timeout * HISTORY_TIMEOUT_FACTOR;
        let read = self.with_timeout(limit, self.store.log(key, known.turns.len())).await?;
        if !known.turns.is_empty() && known.generation != read.generation {
            return Ok(None);
        }
        if read.turns.is_empty() {
            let LogRead { generation, is_undelivered, .. } = read;
            let log = Log { generation, is_undelivered, turns: known.turns.clone() };
            return Ok((known.head() == read.head).then(|| Arc::new(log)));
        }
        let LogRead { generation, head, is_undelivered, .. } = read;
        let turns = self.decode_turns(key, read, room).await?;
        let mut log = Log { generation, is_undelivered, turns: known.turns.clone() };
        for turn in turns {
            if turn.parent != log.head() {
                return Ok(None);
            }
            log.turns.push(Arc::new(turn));
        }
        if log.head() != head {
            return Ok(None);
        }
        let log = Arc::new(log);
        self.logs.insert(key, log.clone());
        Ok(Some(log))
    }

    /// Decodes turns, on a blocking thread if they are long. A short record may hold a long text.
    async fn decode_turns(
        self: &Arc<Self>,
        key: ConversationKey,
        read: LogRead,
        room: &LogRoom,
    ) -> Result<Vec<LoggedTurn>, Degraded> {
        let bytes: usize = read.turns.iter().map(Bytes::len).sum();
        let this = self.clone();
        let decode = move |room: Room<'_>| -> Result<Vec<LoggedTurn>, RecordError> {
            let keyring = this.options.keyring.as_ref();
            read.turns.iter().map(|record| record::decode_turn(key, record, keyring, room)).collect()
        };
        let mut decoded = Err(RecordError::NoRoom);
        if bytes <= super::INLINE_ENCODE_BYTES {
            let left = Cell::new(super::INLINE_ENCODE_BYTES as u64);
            decoded = decode(&|bytes| {
                left.set(left.get().saturating_sub(bytes));
                left.get() > 0
            });
        }
        if decoded == Err(RecordError::NoRoom) {
            let room = room.clone();
            decoded =
                off_worker(self.options.timeout * HISTORY_TIMEOUT_FACTOR, move || decode(&*room)).await?;
        }
        decoded.map_err(Degraded::from)
    }

    /// Appends a turn, whose client does not have its answer yet. The store may be unavailable for a while: writing the same turn again is harmless.
    pub async fn append(self: &Arc<Self>, key: ConversationKey, new: NewTurn) -> Result<(), NotKept> {
        let NewTurn { generation, expected, turn, waypoint } = new;
        let encoded = self.encode_append(key, expected, &turn, waypoint.as_ref()).await;
        let append = encoded.map_err(NotKept::Unknown)?;
        let deadline = Instant::now() + self.options.timeout * HISTORY_TIMEOUT_FACTOR;
        let appended = loop {
            match self.with_deadline(self.store.append(key, generation, append.clone())).await {
                Ok(appended) => break appended,
                Err(degraded) if Instant::now() >= deadline => return Err(NotKept::Unknown(degraded)),
                Err(_) => sleep(APPEND_PAUSE).await,
            }
        };
        match appended {
            Appended::Done => {
                if let Some(waypoint) = waypoint {
                    self.local.add(key, generation, waypoint, true);
                }
                self.save_folds(key, generation).await;
                Ok(())
            }
            Appended::Conflict => Err(NotKept::Conflict),
            Appended::Gone => Err(NotKept::Gone),
        }
    }

    /// Notes whether the client has the answer of the turn that the log ends with. The store may be unavailable for a while.
    pub async fn note_delivery(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
        head: MessageId,
        delivery: Delivery,
    ) -> Result<Written, Degraded> {
        let deadline = Instant::now() + self.options.timeout * HISTORY_TIMEOUT_FACTOR;
        loop {
            match self.with_deadline(self.store.note_delivery(key, generation, head, delivery)).await {
                Err(_) if Instant::now() < deadline => sleep(APPEND_PAUSE).await,
                written => return written,
            }
        }
    }

    /// Records the messages of a turn that failed, was refused or aborted. They are not part of the history.
    pub async fn abandon(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
        mut messages: Vec<RawMessage>,
    ) -> Result<Written, Degraded> {
        messages.iter_mut().for_each(|message| message.standing = Standing::Abandoned);
        let journal = Journal { messages: self.encode(key, messages).await?, waypoint: None };
        self.with_deadline(self.store.journal(key, generation, journal)).await
    }

    async fn encode_append(
        self: &Arc<Self>,
        key: ConversationKey,
        expected: Option<MessageId>,
        turn: &LoggedTurn,
        waypoint: Option<&Waypoint>,
    ) -> Result<Append, Degraded> {
        let (this, turn) = (self.clone(), turn.clone());
        let waypoint = waypoint.map(record::encode_waypoint);
        let bytes: usize = turn.messages.iter().map(|(_, message)| message.json.len()).sum();
        let encode = move || {
            let keyring = this.options.keyring.as_ref();
            let raw = turn.instructions.iter().chain(turn.messages.iter().map(|(_, message)| message));
            Append {
                expected,
                head: turn.head,
                replaces: expected != turn.parent,
                record: record::encode_turn(key, &turn, keyring),
                messages: raw
                    .map(|message| (message.id, record::encode_message(key, message, keyring)))
                    .collect(),
                waypoint,
            }
        };
        if bytes <= super::INLINE_ENCODE_BYTES {
            return Ok(encode());
        }
        off_worker(self.options.timeout * HISTORY_TIMEOUT_FACTOR, encode).await
    }
}

impl Log {
    /// The id of the last message; `None` if there is none.
    #[must_use]
    pub fn head(&self) -> Option<MessageId> {
        self.turns.last().map(|turn| turn.head)
    }

    /// The instructions that the client sent last before the whole conversation. Those in the middle of it stay in their turns.
    #[must_use]
    pub fn instructions(&self) -> Vec<&RawMessage> {
        let leading = |turn: &'_ Arc<LoggedTurn>| turn.instructions.iter().any(RawMessage::is_leading);
        let last = self.turns.iter().rev().find(|turn| leading(turn));
        let instructions = last.into_iter().flat_map(|turn| &turn.instructions);
        instructions.filter(|instruction| instruction.is_leading()).collect()
    }

    /// All messages but instructions.
    pub fn messages(&self) -> impl Iterator<Item = &RawMessage> {
        self.turns.iter().flat_map(|turn| turn.messages.iter().map(|(_, message)| message))
    }

    pub(crate) fn bytes(&self) -> usize {
        let turns = self.turns.iter().map(|turn| {
            let instructions = turn.instructions.iter().map(|one| one.json.len());
            let messages = turn.messages.iter().map(|(_, one)| one.json.len() + 128);
            instructions.sum::<usize>() + messages.sum::<usize>() + size_of::<LoggedTurn>()
        });
        turns.sum::<usize>() + size_of::<Log>()
    }
}
