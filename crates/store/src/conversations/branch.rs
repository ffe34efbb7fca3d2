//! Conversations that are recognised by their content.
//!
//! Everybody of a tenant who begins with the same words would share such a conversation. So what was decided for a request is stored
//! under the digest at its end, where only a request finds it that continues exactly that one. Strangers share nothing but what is the
//! same for both. The messages and turns are recorded together, under the digest of the first message.

use super::Conversations;
use crate::record::{self, StoredFold};
use crate::store::{Generation, Recollection};
use crate::{ConversationKey, Degraded, Recalled};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegate_engine::{Digest, Waypoint};
use tokio::task::JoinSet;

/// Where the state of a request is, and where that of the request before it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where this request stores its state.
    pub own: Vec<ConversationKey>,
    /// Where the state of the previous request may be, the most likely first.
    pub previous: Vec<ConversationKey>,
    /// The same for clients that have changed the end of that request since.
    pub stems: Vec<ConversationKey>,
    /// Where there may be decisions for clients that have changed the last answers of that request since, the nearest first. Some are the
    /// request's own. Only decisions are stored there: strangers may have the same beginning.
    pub anchors: Vec<Anchor>,
    /// What rides on the state of the previous request.
    pub note: BranchNote,
    /// Whether the client has changed more than its last answers since, and will need far anchors again if it does that every time.
    pub is_changed: bool,
}

/// A place at an earlier answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub key: ConversationKey,
    /// About how many answers back it is, if the request stores its decisions there.
    pub distance: Option<u32>,
}

/// What a request stores for the next one of its branch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BranchState {
    pub waypoint: Option<Waypoint>,
    /// What was last decided for other models, which the branch may come back to.
    pub others: Vec<Waypoint>,
    /// The summary in use, so that the next request finds all of it in one place.
    pub fold: Option<StoredFold>,
    pub note: BranchNote,
}

/// What rides on the state of a request, besides its decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchNote {
    /// The generation of the recorded conversation. If that was deleted since, so is the branch.
    pub generation: Generation,
    /// What the branch has cost so far, in billionths of a dollar. Sent again, a request costs no more: nobody can tell a client that
    /// repeats itself from a stranger who says the same.
    pub spent: u64,
    /// The request that has asked for a summary that is not in use yet: summaries are made there, one at a time.
    pub folding: Option<ConversationKey>,
}

/// Branches are never deleted one by one.
const GENERATION: Generation = Generation(0);

impl Conversations {
    /// Recalls what was decided for the previous request of a branch, and notes in the branch what rides on it. `records` is where the
    /// conversation is recorded.
    pub async fn recall_branch(self: &Arc<Self>, records: ConversationKey, branch: &mut Branch) -> Recalled {
        let first = async |keys: &[ConversationKey]| match keys.first() {
            Some(key) => self.recall(*key).await,
            None => Recalled::default(),
        };
        let (recorded, own, previous) =
            tokio::join!(self.recall(records), first(&branch.own), first(&branch.previous));
        let generation = recorded.generation;
        let current = |recalled: &Recalled| BranchNote::of(recalled).generation == generation;
        let decides = |recalled: &Recalled| !recalled.memory.waypoints().is_empty() && current(recalled);
        // A request that was passed on unedited has decided nothing, but has cost something. What this very request has cost before
        // does not count: a stranger may have sent the same.
        let costs = |recalled: &Recalled| {
            let note = recalled.pinned.as_deref().and_then(BranchNote::parse);
            note.filter(|note| note.generation == generation).map(|note| note.spent)
        };
        let mut spent = costs(&previous);
        let mut found = Some(own).filter(decides);
        if let Some(found) = found.as_mut().filter(|_| decides(&previous)) {
            // The same messages may have been sent to another model. What was decided for this one is where the previous request is.
            found.memory = previous.memory.clone().with(&found.memory);
        }
        found = found.or_else(|| Some(previous).filter(decides));
        if found.is_none() || spent.is_none() {
            let earlier = branch.previous.iter().skip(1).chain(branch.stems.iter().skip(1));
            // Requests that end with this answer are not the one before, but perhaps those of strangers.
            let anchors = branch.anchors.iter().map(|anchor| &anchor.key);
            let others = branch.stems.first().into_iter().chain(anchors);
            let count = earlier.clone().count();
            let all = self.recall_all(earlier.chain(others).copied()).await;
            // The latest, which includes what those before it have cost.
            spent = spent.or_else(|| all[..count].iter().find_map(costs));
            if found.is_none() {
                branch.is_changed = all.iter().position(decides).is_none_or(|at| at >= count + NEAR);
                found = all.into_iter().find(decides);
            }
        }
        let spent = spent.unwrap_or_default();
        let Some(mut found) = found else {
            let Recalled { degraded, is_unavailable, .. } = recorded;
            branch.note = BranchNote { generation, spent, ..BranchNote::default() };
            return Recalled { generation, degraded, is_unavailable, ..Recalled::default() };
        };
        let note = BranchNote { spent, ..BranchNote::of(&found) };
        if let Some(key) = note.folding {
            let folds = self.recall(key).await.folds;
            let is_new = |fold: &StoredFold| !found.folds.iter().any(|known| known.covers == fold.covers);
            let new: Vec<StoredFold> = folds.into_iter().filter(is_new).collect();
            found.folds.extend(new);
        }
        let degraded = recorded.degraded.or(found.degraded);
        let is_unavailable = recorded.is_unavailable || found.is_unavailable;
        branch.note = note;
        Recalled { generation, pinned: None, degraded, is_unavailable, ..found }
    }

    /// Recalls several conversations at once, so that they take no longer than one.
    async fn recall_all(self: &Arc<Self>, keys: impl Iterator<Item = ConversationKey>) -> Vec<Recalled> {
        let mut recalls = JoinSet::new();
        for (at, key) in keys.enumerate() {
            let this = self.clone();
            recalls.spawn(async move { (at, this.recall(key).await) });
        }
        let mut all = recalls.join_all().await;
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, recalled)| recalled).collect()
    }

    /// Stores the state of a request where the next one looks for it.
    pub async fn save_branch(self: &Arc<Self>, branch: &Branch, state: BranchState) -> Result<(), Degraded> {
        let mut writes = JoinSet::new();
        let first = branch.own.first().copied();
        for (key, mut note) in self.places(branch, &state) {
            // A stranger who has sent the same request may go on by now: what that has cost must stay known.
            if first == Some(key)
                && let Some(known) = self.known_note(key).filter(|known| known.generation == note.generation)
            {
                note.spent = note.spent.max(known.spent);
            }
            let (this, state) = (self.clone(), BranchState { note, ..state.clone() });
            // The other places say where the decisions are.
            let elsewhere = first.filter(|first| *first != key);
            writes.spawn(async move { this.save_at(key, elsewhere, state).await });
        }
        writes.join_all().await.into_iter().collect()
    }

    /// Stores the state of a request in one place. The waypoints come last, because what has one is used.
    async fn save_at(
        self: &Arc<Self>,
        key: ConversationKey,
        elsewhere: Option<ConversationKey>,
        state: BranchState,
    ) -> Result<(), Degraded> {
        let BranchState { waypoint, others, fold, note } = state;
        let save_fold = async {
            match fold {
                Some(fold) => self.fold(key, GENERATION, fold).await.map(drop),
                None => Ok(()),
            }
        };
        tokio::try_join!(self.save_note(key, note), save_fold)?;
        let mut writes = JoinSet::new();
        for waypoint in others.into_iter().chain(waypoint).map(Some) {
            let this = self.clone();
            let entries = super::Entries { waypoint, ..super::Entries::default() };
            writes.spawn(async move { this.write_journal(key, entries, elsewhere).await });
        }
        writes.join_all().await.into_iter().collect()
    }

    /// Reads the waypoints of which the store has only said where they are. One that is not there has expired, or is being written.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        mut recollection: Recollection,
    ) -> Result<Recollection, Degraded> {
        let elsewhere: BTreeSet<ConversationKey> =
            recollection.waypoints.iter().filter_map(|waypoint| record::decode_reference(waypoint)).collect();
        if elsewhere.is_empty() {
            return Ok(recollection);
        }
        let mut reads = JoinSet::new();
        for key in elsewhere {
            let this = self.clone();
            reads.spawn(async move { (key, this.with_deadline(this.store.recall(key)).await) });
        }
        let mut found = BTreeMap::new();
        for (key, read) in reads.join_all().await {
            let is_whole = |waypoint: &Bytes| record::decode_reference(waypoint).is_none();
            found.insert(key, read?.waypoints.into_iter().filter(is_whole).collect::<Vec<_>>());
        }
        // The newest last, where several requests of the same end are found at once.
        let mut waypoints = Vec::new();
        for waypoint in recollection.waypoints.into_iter().rev() {
            match record::decode_reference(&waypoint) {
                Some(key) => waypoints.extend(found.remove(&key).unwrap_or_default().into_iter().rev()),
                None => waypoints.push(waypoint),
            }
        }
        waypoints.reverse();
        recollection.waypoints = waypoints;
        Ok(recollection)
    }

    /// Notes what a branch has cost with a request. `before` rode on the state of the previous request.
    pub async fn add_spent(
        self: &Arc<Self>,
        key: ConversationKey,
        before: BranchNote,
        spent: u64,
    ) -> Result<(), Degraded> {
        let folding = self.known_note(key).map_or(before.folding, |known| known.folding);
        self.save_note(key, BranchNote { spent, folding, ..before }).await
    }

    /// What rides on the state of a request, as far as this process knows.
    fn known_note(&self, key: ConversationKey) -> Option<BranchNote> {
        self.local.get(key).map(|cached| BranchNote::of(&cached.recalled(None)))
    }

    /// Replaces what rides on the state of a request.
    async fn save_note(self: &Arc<Self>, key: ConversationKey, note: BranchNote) -> Result<(), Degraded> {
        let text = note.to_text();
        let record = record::encode_pin(key, &text, self.options.keyring.as_ref());
        self.local.pin(key, Some(text.into()));
        self.with_deadline(self.store.pin(key, Some(record))).await
    }

    /// Keeps the state of a request in this process only, because the store has just failed for the same request.
    pub fn keep_branch_locally(&self, branch: &Branch, state: &BranchState) {
        for (key, note) in self.places(branch, state) {
            self.local.pin(key, Some(note.to_text().into()));
            for waypoint in state.others.iter().chain(&state.waypoint) {
                self.local.add(key, GENERATION, waypoint.clone(), false);
            }
        }
    }

    /// Where a request stores its state, and what rides on it there.
    ///
    /// Few clients need anchors but the nearest. For one that has not, so far, some far ones do, which are only written when something else
    /// was decided or when the conversation has grown by as many messages: to change that much once costs more than a decision that is
    /// a few requests old.
    fn places(&self, branch: &Branch, state: &BranchState) -> Vec<(ConversationKey, BranchNote)> {
        let is_known = |anchor: &Anchor, distance: u32| {
            let Some(cached) = self.local.get(anchor.key) else { return false };
            let note = cached.pinned().and_then(BranchNote::parse).unwrap_or_default();
            let known = cached.waypoints();
            let mut new = state.others.iter().chain(&state.waypoint);
            (note.generation, note.folding) == (state.note.generation, state.note.folding)
                && new.all(|waypoint| known.iter().any(|known| known.stands_for(waypoint, distance)))
        };
        let is_written = |anchor: &&Anchor| match anchor.distance {
            None => false,
            Some(NEAREST) => true,
            Some(_) if branch.is_changed => true,
            Some(distance) => distance >= FAR && !is_known(anchor, distance),
        };
        let own = branch.own.iter().map(|key| (*key, state.note));
        // What a stranger with the same beginning has cost is nobody else's business.
        let note = BranchNote { spent: 0, ..state.note };
        own.chain(branch.anchors.iter().filter(is_written).map(|anchor| (anchor.key, note))).collect()
    }
}

/// The distance of the anchor that is always written: many clients change their last two answers.
const NEAREST: u32 = 2;

/// The least distance of the others that are written for a client that has not changed more so far.
const FAR: u32 = 16;

/// The places of a client that changes no more than its last two answers: at the last one, and at the two nearest anchors.
const NEAR: usize = 3;

impl Recalled {
    /// The summary of a prefix, if it is stored.
    #[must_use]
    pub fn fold(&self, covers: Digest) -> Option<&StoredFold> {
        self.folds.iter().find(|fold| fold.covers == covers)
    }
}

impl BranchNote {
    fn of(recalled: &Recalled) -> BranchNote {
        recalled.pinned.as_deref().and_then(BranchNote::parse).unwrap_or_default()
    }

    fn to_text(self) -> String {
        let folding = self.folding.map(|key| key.to_string()).unwrap_or_default();
        format!("{} {} {folding}", self.generation.0, self.spent)
    }

    fn parse(text: &str) -> Option<BranchNote> {
        let mut parts = text.split(' ');
        let generation = Generation(parts.next()?.parse().ok()?);
        let spent = parts.next()?.parse().ok()?;
        let folding = parts.next().and_then(|key| key.parse().ok());
        Some(BranchNote { generation, spent, folding })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_parse_as_they_print() {
        let key = ConversationKey([7; 16]);
        for folding in [None, Some(key)] {
            let note = BranchNote { generation: Generation(u64::MAX), spent: 12, folding };
            assert_eq!(BranchNote::parse(&note.to_text()), Some(note));
        }
        assert_eq!(BranchNote::parse("remember the milk"), None);
    }
}
