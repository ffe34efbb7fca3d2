//! A turn of a conversation whose history is kept here, from its beginning until its client has its answer, or it is abandoned.

use crate::host::archive;
use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use std::sync::Arc;
use tidegate_engine::Waypoint;
use tidegate_store::{
    ConversationKey, Delivery, Generation, LoggedTurn, MessageId, NewTurn, NotKept, RawMessage, TurnLease,
    Written,
};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// A turn that may run: no other of its conversation does.
#[derive(Debug)]
pub(crate) struct OpenTurn {
    pub(crate) lease: TurnLease,
    pub(crate) generation: Generation,
    /// The head of the log as it was read.
    pub(crate) expected: Option<MessageId>,
    /// The head before this turn. It differs if this is a retry of the last turn.
    pub(crate) parent: Option<MessageId>,
    /// The number of messages before this turn, without instructions.
    pub(crate) restored: usize,
    /// A hash of the messages that the client sent.
    pub(crate) request: [u8; 32],
    pub(crate) idempotency: Option<[u8; 32]>,
}

/// What a turn adds to its conversation, besides the answer.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) instructions: Vec<RawMessage>,
    /// Each with a hash of what it says.
    pub(crate) messages: Vec<([u8; 32], RawMessage)>,
    pub(crate) waypoint: Option<Waypoint>,
}

/// A turn that is in the log. No other runs before its client has the end of the answer. If this is dropped instead, the store is
/// told: the client may say the same again, and must not have said it twice then. A process that is killed tells nobody, so the log
/// says the same until just before the end of the answer is released.
#[derive(Debug)]
pub(crate) struct KeptTurn {
    gateway: Arc<Gateway>,
    tasks: TaskTracker,
    key: ConversationKey,
    generation: Generation,
    head: MessageId,
    /// Until the client has the answer.
    lease: Option<TurnLease>,
}

impl KeptTurn {
    /// The connection of the client has got the end of the answer.
    pub(crate) fn delivered(mut self) {
        self.lease = None;
    }
}

impl Drop for KeptTurn {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        // There is no runtime if the process ends while the answer is under way.
        let Ok(runtime) = Handle::try_current() else { return };
        let (gateway, key, generation, head) = (self.gateway.clone(), self.key, self.generation, self.head);
        let note = async move {
            let note = gateway.conversations.note_delivery(key, generation, head, Delivery::Undelivered);
            let _ = note.await;
            drop(lease);
        };
        drop(self.tasks.spawn_on(note, &runtime));
    }
}

/// A turn that has been decided. Unless it is kept, dropping it records its messages as abandoned.
#[derive(Debug)]
pub(crate) struct HeldTurn {
    gateway: Arc<Gateway>,
    tasks: TaskTracker,
    identity: Identity,
    route: String,
    /// Until the turn is kept or abandoned.
    open: Option<(OpenTurn, Sent)>,
}

impl HeldTurn {
    pub(crate) fn new(
        gateway: &Arc<Gateway>,
        tasks: &TaskTracker,
        identity: Identity,
        route: &str,
        open: OpenTurn,
        sent: Sent,
    ) -> HeldTurn {
        if let Some(archive) = &gateway.archive {
            let messages = sent.messages.iter().map(|(_, message)| message);
            for message in sent.instructions.iter().chain(messages) {
                archive::message(archive, &identity, route, message);
            }
        }
        let (gateway, tasks) = (gateway.clone(), tasks.clone());
        HeldTurn { gateway, tasks, identity, route: route.to_owned(), open: Some((open, sent)) }
    }

    /// Replaces the decision that goes into the log with the turn.
    pub(crate) fn decide_again(&mut self, waypoint: Option<Waypoint>) {
        if let Some((_, sent)) = &mut self.open {
            sent.waypoint = waypoint;
        }
    }

    /// Appends the turn to the log, with an answer that is complete. `None` if that was done before.
    pub(crate) fn keep(
        &mut self,
        hash: [u8; 32],
        answer: RawMessage,
    ) -> Option<JoinHandle<Result<KeptTurn, NotKept>>> {
        let (open, sent) = self.open.take()?;
        let (gateway, identity) = (self.gateway.clone(), self.identity.clone());
        if let Some(archive) = &gateway.archive {
            archive::message(archive, &identity, &self.route, &answer);
        }
        let OpenTurn { lease, generation, expected, parent, request, idempotency, .. } = open;
        let Sent { instructions, mut messages, waypoint } = sent;
        let (tasks, key, head) = (self.tasks.clone(), identity.key, answer.id);
        Some(self.tasks.spawn(async move {
            messages.push((hash, answer));
            let turn = LoggedTurn { parent, head, request, idempotency, instructions, messages };
            let sent = sent_messages(&turn);
            let new = NewTurn { generation, expected, turn, waypoint };
            let appended = gateway.conversations.append(key, new).await;
            if let Err(NotKept::Conflict) = appended {
                let _ = gateway.conversations.abandon(key, generation, sent).await;
            }
            // Before the client can have the end of the answer: whoever has it must never lose the turn to a retry.
            let released = match appended {
                Ok(()) => release(&gateway, key, generation, head).await,
                Err(not_kept) => Err(not_kept),
            };
            let kept = KeptTurn { gateway, tasks, key, generation, head, lease: Some(lease) };
            match released {
                Ok(()) => Ok(kept),
                // Another turn is the last one.
                Err(not_kept @ (NotKept::Conflict | NotKept::Gone)) => {
                    kept.delivered();
                    Err(not_kept)
                }
                // It may be in the log, but its client gets an error.
                Err(NotKept::Unknown(degraded)) => Err(NotKept::Unknown(degraded)),
            }
        }))
    }
}

/// Notes that the client may have the answer of a turn from now on.
async fn release(
    gateway: &Gateway,
    key: ConversationKey,
    generation: Generation,
    head: MessageId,
) -> Result<(), NotKept> {
    match gateway.conversations.note_delivery(key, generation, head, Delivery::Delivered).await {
        Ok(Written::Done) => Ok(()),
        Ok(Written::Gone) => Err(NotKept::Gone),
        Err(degraded) => Err(NotKept::Unknown(degraded)),
    }
}

/// What the client sent, without the answer.
fn sent_messages(turn: &LoggedTurn) -> Vec<RawMessage> {
    let (_, sent) = turn.messages.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
    turn.instructions.iter().chain(sent.iter().map(|(_, message)| message)).cloned().collect()
}

/// A turn that failed, was refused or aborted is in the raw timeline only, and marked there.
impl Drop for HeldTurn {
    fn drop(&mut self) {
        let Some((open, sent)) = self.open.take() else { return };
        // There is no runtime if the process ends while the answer is under way.
        let Ok(runtime) = Handle::try_current() else { return };
        let (gateway, key) = (self.gateway.clone(), self.identity.key);
        let abandon = async move {
            let messages = sent.messages.into_iter().map(|(_, message)| message);
            let messages: Vec<RawMessage> = sent.instructions.into_iter().chain(messages).collect();
            let _ = gateway.conversations.abandon(key, open.generation, messages).await;
            drop(open.lease);
        };
        drop(self.tasks.spawn_on(abandon, &runtime));
    }
}
