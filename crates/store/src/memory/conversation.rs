//! One conversation in memory.

use crate::Head;
use crate::store::{
    Append, Appended, FOLDS, FoldWritten, Journal, MessageId, Recollection, Turn, WAYPOINTS, Written,
};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// The approximate cost of an entry in addition to its bytes.
pub(super) const ENTRY_OVERHEAD: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) waypoints: VecDeque<Bytes>,
    pub(super) folds: VecDeque<(MessageId, Bytes)>,
    pub(super) messages: BTreeMap<MessageId, Bytes>,
    pub(super) exchanges: BTreeMap<MessageId, Bytes>,
    pub(super) turns: HashMap<[u8; 16], Bytes>,
    pub(super) ends: HashSet<MessageId>,
    pub(super) head: Option<Head>,
    pub(super) pinned: Option<Bytes>,
    pub(super) log: Vec<Bytes>,
    pub(super) log_head: Option<MessageId>,
    pub(super) is_undelivered: bool,
    pub(super) touched: u64,
    pub(super) bytes: usize,
}

impl Conversation {
    pub(super) fn journal(&mut self, journal: Journal) -> Written {
        for (id, record) in journal.messages {
            let bytes = record.len() + ENTRY_OVERHEAD;
            self.messages.entry(id).or_insert_with(|| {
                self.bytes += bytes;
                record
            });
        }
        self.add_waypoint(journal.waypoint);
        Written::Done
    }

    pub(super) fn add_waypoint(&mut self, waypoint: Option<Bytes>) {
        let Some(waypoint) = waypoint else { return };
        self.bytes += waypoint.len() + ENTRY_OVERHEAD;
        self.waypoints.push_back(waypoint);
        if self.waypoints.len() > WAYPOINTS
            && let Some(oldest) = self.waypoints.pop_front()
        {
            self.bytes -= oldest.len() + ENTRY_OVERHEAD;
        }
    }

    pub(super) fn append(&mut self, append: Append) -> Appended {
        if self.log_head == Some(append.head) {
            return Appended::Done;
        }
        if self.log_head != append.expected || (append.replaces && self.log.is_empty()) {
            return Appended::Conflict;
        }
        if append.replaces
            && let Some(replaced) = self.log.pop()
        {
            self.bytes -= replaced.len() + ENTRY_OVERHEAD;
        }
        self.bytes += append.record.len() + ENTRY_OVERHEAD;
        self.log.push(append.record);
        self.log_head = Some(append.head);
        self.is_undelivered = true;
        for (id, record) in append.messages {
            self.bytes += record.len() + ENTRY_OVERHEAD;
            if let Some(replaced) = self.messages.insert(id, record) {
                self.bytes -= replaced.len() + ENTRY_OVERHEAD;
            }
        }
        self.add_waypoint(append.waypoint);
        Appended::Done
    }

    pub(super) fn fold(&mut self, covers: MessageId, record: Bytes) -> FoldWritten {
        if let Some((_, kept)) = self.folds.iter().find(|(known, _)| *known == covers) {
            return if *kept == record { FoldWritten::Stored } else { FoldWritten::Other };
        }
        self.bytes += record.len() + ENTRY_OVERHEAD;
        self.folds.push_back((covers, record));
        if self.folds.len() > FOLDS
            && let Some((_, oldest)) = self.folds.pop_front()
        {
            self.bytes -= oldest.len() + ENTRY_OVERHEAD;
        }
        FoldWritten::Stored
    }

    pub(super) fn recollection(&self) -> Recollection {
        let waypoints = self.waypoints.iter().cloned().collect();
        let folds = self.folds.iter().map(|(_, record)| record.clone()).collect();
        Recollection { waypoints, folds, pinned: self.pinned.clone(), ..Recollection::default() }
    }

    pub(super) fn pin(&mut self, record: Option<Bytes>) {
        let size = |record: &Option<Bytes>| record.as_ref().map_or(0, |record| record.len() + ENTRY_OVERHEAD);
        self.bytes = self.bytes + size(&record) - size(&self.pinned);
        self.pinned = record;
    }

    pub(super) fn count(&mut self, turn: Turn) -> Written {
        if self.turns.contains_key(&turn.id) {
            return Written::Done;
        }
        self.bytes += turn.record.len() + ENTRY_OVERHEAD;
        self.turns.insert(turn.id, turn.record);
        let is_new = turn.end.is_some_and(|end| self.ends.insert(end));
        self.head.get_or_insert_default().add(turn.at, is_new, &turn.counts, turn.labels);
        Written::Done
    }
}
