//! Conversations that are recognised by their content.
//!
//! Everybody of a tenant who begins with the same words would share such a conversation. So what was decided for a request is stored
//! under the digest at its end, where only a request finds it that continues exactly that one. Strangers share nothing but what is the
//! same for both. The messages and turns are recorded together, under the digest of the first message.

use super::Conversations;
use crate::record::{self, StoredFold};
use crate::store::Generation;
use crate::{ConversationKey, Degraded, Recalled};
use std::sync::Arc;
use tidegate_engine::{Digest, Waypoint};

/// Where the state of a request is, and where that of the request before it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where this request stores its state.
    pub own: Vec<ConversationKey>,
    /// Where the state of the previous request may be, the most likely first.
    pub previous: Vec<ConversationKey>,
    /// The same for clients that have changed the end of that request since.
    pub stems: Vec<ConversationKey>,
    /// What rides on the state of the previous request.
    pub note: BranchNote,
}

/// What rides on the state of a request, besides its decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchNote {
    /// The generation of the recorded conversation. If that was deleted since, so is the branch.
    pub generation: Generation,
    /// What the branch has cost so far, in billionths of a dollar.
    pub spent: u64,
    /// The request that has asked for a summary that is not in use yet: summaries are made there, one at a time.
    pub folding: Option<ConversationKey>,
}

/// Branches are never deleted one by one.
const GENERATION: Generation = Generation(0);

impl Conversations {
    /// Recalls what was decided for the previous request of a branch, and what rides on it. `records` is where the conversation is
    /// recorded.
    pub async fn recall_branch(
        self: &Arc<Self>,
        records: ConversationKey,
        branch: &Branch,
    ) -> (Recalled, BranchNote) {
        let first = async |keys: &[ConversationKey]| match keys.first() {
            Some(key) => self.recall(*key).await,
            None => Recalled::default(),
        };
        let (recorded, own, previous) =
            tokio::join!(self.recall(records), first(&branch.own), first(&branch.previous));
        let generation = recorded.generation;
        // A request that was passed on unedited has decided nothing, but has cost something.
        let mut spent = 0;
        let mut is_found = |recalled: &Recalled| {
            let note = BranchNote::of(recalled);
            let is_current = note.generation == generation;
            spent = if is_current { note.spent.max(spent) } else { spent };
            !recalled.memory.waypoints().is_empty() && is_current
        };
        let mut found = [own, previous].into_iter().find(&mut is_found);
        for key in branch.previous.iter().skip(1).chain(&branch.stems) {
            if found.is_some() {
                break;
            }
            found = Some(self.recall(*key).await).filter(&mut is_found);
        }
        let Some(mut found) = found else {
            let Recalled { degraded, is_unavailable, .. } = recorded;
            let note = BranchNote { generation, spent, ..BranchNote::default() };
            return (Recalled { generation, degraded, is_unavailable, ..Recalled::default() }, note);
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
        (Recalled { generation, pinned: None, degraded, is_unavailable, ..found }, note)
    }

    /// Stores the state of a request, with the summary in use, so that the next request finds all of it in one place.
    pub async fn save_branch(
        self: &Arc<Self>,
        own: &[ConversationKey],
        waypoint: Option<Waypoint>,
        fold: Option<StoredFold>,
        note: BranchNote,
    ) -> Result<(), Degraded> {
        for key in own {
            self.save_note(*key, note).await?;
            if let Some(fold) = &fold {
                self.fold(*key, GENERATION, fold.clone()).await?;
            }
            let entries = super::Entries { waypoint: waypoint.clone(), ..super::Entries::default() };
            self.journal(*key, entries).await?;
        }
        Ok(())
    }

    /// Notes what a branch has cost with a request. `before` rode on the state of the previous request.
    pub async fn add_spent(
        self: &Arc<Self>,
        key: ConversationKey,
        before: BranchNote,
        spent: u64,
    ) -> Result<(), Degraded> {
        let known = self.local.get(key).map(|cached| BranchNote::of(&cached.recalled(None)));
        let folding = known.map_or(before.folding, |known| known.folding);
        self.save_note(key, BranchNote { spent, folding, ..before }).await
    }

    /// Replaces what rides on the state of a request.
    async fn save_note(self: &Arc<Self>, key: ConversationKey, note: BranchNote) -> Result<(), Degraded> {
        let text = note.to_text();
        let record = record::encode_pin(key, &text, self.options.keyring.as_ref());
        self.local.pin(key, Some(text.into()));
        self.with_deadline(self.store.pin(key, Some(record))).await
    }

    /// Keeps the state of a request in this process only, because the store has just failed for the same request.
    pub fn keep_branch_locally(&self, own: &[ConversationKey], waypoint: Waypoint, note: BranchNote) {
        for key in own {
            self.local.pin(*key, Some(note.to_text().into()));
            self.local.add(*key, GENERATION, waypoint.clone(), false);
        }
    }
}

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
