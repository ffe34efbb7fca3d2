//! Checks the database after a kill.

use crate::open;
use crate::scenario::{LANES, MESSAGES, Write, deleted_in, key, message, message_id, turn_record, waypoint};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tidegate_store::{EmbeddedStore, MessageId, Store, WAYPOINTS};

pub(crate) type Acknowledged = Vec<Write>;

/// How many numbers of a conversation are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kept {
    journalled: u64,
    counted: u64,
}

/// What was found in each round. It must not change afterwards, except by being deleted as a whole.
#[derive(Default)]
pub(crate) struct Verdict {
    kept: BTreeMap<(u64, u64), Kept>,
}

impl Verdict {
    /// Compares what this round wrote and deleted with what it acknowledged, and checks the previous rounds.
    pub(crate) fn check(&mut self, directory: &Path, round: u64, acknowledged: &[Write]) {
        run(async {
            let store = open(directory);
            for lane in 0..LANES {
                let kept = examine(&store, round, lane).await;
                let at_least = |wanted: &dyn Fn(&Write) -> Option<u64>| {
                    acknowledged.iter().filter_map(wanted).max().map_or(0, |number| number + 1)
                };
                let journalled = at_least(&|write| match write {
                    Write::Journal { lane: of, number } if *of == lane => Some(*number),
                    Write::Journal { .. } | Write::Count { .. } | Write::Delete { .. } => None,
                });
                let counted = at_least(&|write| match write {
                    Write::Count { lane: of, number } if *of == lane => Some(*number),
                    Write::Journal { .. } | Write::Count { .. } | Write::Delete { .. } => None,
                });
                let context = format!("round {round}, lane {lane}: {kept:?}");
                // One more may have been written without being acknowledged.
                assert!((journalled..=journalled + 1).contains(&kept.journalled), "{context}, {journalled}");
                assert!((counted..=counted + 1).contains(&kept.counted), "{context}, {counted}");
                assert!(kept.journalled - kept.counted <= 1, "{context}");
                self.kept.insert((round, lane), kept);
                for old in deleted_in(round) {
                    let found = examine(&store, old, lane).await;
                    let is_deleted = acknowledged.contains(&Write::Delete { round: old, lane });
                    let expected = if is_deleted { Kept::default() } else { self.kept[&(old, lane)] };
                    assert!(found == expected || found == Kept::default(), "{context}: {found:?} of {old}");
                    self.kept.insert((old, lane), found);
                }
            }
            for old in round.saturating_sub(2)..round {
                self.examine_round(&store, old).await;
            }
            let listed = self.kept.values().filter(|kept| kept.counted > 0).count();
            assert_eq!(store.list(0, 1).await.unwrap().total, listed, "round {round}");
        });
    }

    /// Checks the conversations of all rounds.
    pub(crate) fn check_all(&self, directory: &Path, rounds: u64) {
        run(async {
            let store = open(directory);
            for round in 0..rounds {
                self.examine_round(&store, round).await;
            }
            let listing = store.list(0, usize::MAX).await.unwrap();
            assert_eq!(listing.conversations.len(), listing.total);
            assert!(listing.conversations.is_sorted_by_key(|(_, head)| std::cmp::Reverse(head.last)));
        });
    }

    async fn examine_round(&self, store: &EmbeddedStore, round: u64) {
        for lane in 0..LANES {
            assert_eq!(
                examine(store, round, lane).await,
                self.kept[&(round, lane)],
                "round {round}, lane {lane}"
            );
        }
    }
}

/// Checks that a conversation is consistent. Returns how much of it is stored.
async fn examine(store: &EmbeddedStore, round: u64, lane: u64) -> Kept {
    let context = format!("round {round}, lane {lane}");
    let key = key(round, lane);
    let messages: BTreeMap<MessageId, Bytes> = store.messages(key).await.unwrap().into_iter().collect();
    let journalled = messages.len() as u64 / MESSAGES;
    let expected: BTreeMap<MessageId, Bytes> = (0..journalled)
        .flat_map(|number| (0..MESSAGES).map(move |part| (number, part)))
        .map(|(number, part)| (message_id(number, part), message(number, part)))
        .collect();
    assert!(messages == expected, "{context}: the messages are not those of {journalled} journals");
    let first_waypoint = journalled.saturating_sub(WAYPOINTS as u64);
    let waypoints: Vec<Bytes> = (first_waypoint..journalled).map(waypoint).collect();
    assert_eq!(store.recall(key).await.unwrap().waypoints, waypoints, "{context}");

    let turns: BTreeSet<Bytes> = store.turns(key).await.unwrap().into_iter().collect();
    let counted = turns.len() as u64;
    assert_eq!(turns, (0..counted).map(turn_record).collect(), "{context}");
    match store.head(key).await.unwrap() {
        None => assert_eq!(counted, 0, "{context}"),
        Some(head) => {
            let counts: Vec<_> = head.counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
            let numbers = (0..counted).sum();
            assert_eq!(
                counts,
                [("numbers", numbers), ("requests", counted), ("turns", counted.div_ceil(2))],
                "{context}"
            );
            assert_eq!(head.labels["newest"], (counted - 1).to_string(), "{context}");
            assert_eq!((head.first, head.last), (1_000, 999 + counted), "{context}");
        }
    }
    Kept { journalled, counted }
}

fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
}
