//! Conversations without a name: what is read and written, in how many round trips.

use super::*;
use tidegate_engine::{CacheKey, Horizon, Memory};
use tokio::time::Instant;

const TRIP: Duration = Duration::from_millis(10);
const RECORDS: ConversationKey = ConversationKey([1; 16]);

fn key(number: u8) -> ConversationKey {
    ConversationKey([number; 16])
}

fn keys(numbers: &[u8]) -> Vec<ConversationKey> {
    numbers.iter().copied().map(key).collect()
}

/// The request that ends at `own` and continues the one that ended at `previous`. `anchors` are places and, if they are its own, distances.
fn branch(own: u8, previous: u8, anchors: &[(u8, Option<u32>)]) -> Branch {
    let anchors = anchors.iter().map(|(number, distance)| Anchor { key: key(*number), distance: *distance });
    Branch {
        own: keys(&[own, own + 100]),
        previous: keys(&[previous, previous - 1]),
        stems: keys(&[own + 99, previous + 99]),
        anchors: anchors.collect(),
        note: BranchNote::default(),
        is_changed: false,
    }
}

fn decided(end: u8, model: u64) -> Waypoint {
    let horizon = Horizon { length: u32::from(end), cut_at: None };
    Waypoint { end: Digest([end; 32]), cache: CacheKey { model, head: 7 }, horizon, ..Waypoint::default() }
}

fn state(waypoint: Waypoint) -> BranchState {
    BranchState { waypoint: Some(waypoint), ..BranchState::default() }
}

async fn recall(replica: &Arc<Conversations>, branch: &Branch) -> (Vec<Waypoint>, u128) {
    let start = Instant::now();
    let recalled = replica.recall_branch(RECORDS, &mut branch.clone()).await;
    (recalled.memory.waypoints().to_vec(), start.elapsed().as_millis() / TRIP.as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_adds_messages_costs_one_round_trip_and_others_up_to_three() {
    let store = Flaky::distant(TRIP);
    let saved = state(decided(20, 1));
    let start = Instant::now();
    replica(&store, None).save_branch(&branch(20, 19, &[(10, Some(2)), (9, None)]), saved).await.unwrap();
    assert_eq!(start.elapsed(), 2 * TRIP, "what rides on the state comes first");
    let other = replica(&store, None);
    assert_eq!(recall(&other, &branch(21, 20, &[])).await, (vec![decided(20, 1)], 1));
    assert_eq!(
        recall(&other, &branch(31, 30, &[(11, Some(2)), (10, None)])).await,
        // The anchor says where the decisions are.
        (vec![decided(20, 1)], 3)
    );
    assert_eq!(recall(&other, &branch(31, 30, &[(11, Some(2)), (9, None)])).await, (vec![], 2));
    // A summary is being made where the earlier request was.
    let note = BranchNote { folding: Some(key(20)), ..BranchNote::default() };
    other.save_branch(&branch(21, 20, &[]), BranchState { note, ..state(decided(21, 1)) }).await.unwrap();
    assert_eq!(recall(&other, &branch(22, 21, &[])).await, (vec![decided(21, 1)], 2));
}

#[tokio::test(start_paused = true)]
async fn a_far_anchor_is_written_when_it_says_something_new() {
    let store = Flaky::shared();
    let (writer, reader) = (replica(&store, None), replica(&store, None));
    let mut last = Vec::new();
    for (end, frontier) in [(40, None), (41, None), (56, None), (57, None), (58, Some(Digest([3; 32])))] {
        let saved = state(Waypoint { frontier, ..decided(end, 1) });
        writer
            .save_branch(&branch(end, end - 1, &[(10, Some(2)), (9, Some(16)), (8, Some(4))]), saved)
            .await
            .unwrap();
        let newest =
            async |number| reader.recall(key(number)).await.memory.waypoints().last().unwrap().end.0[0];
        last.push((newest(10).await, newest(9).await));
    }
    assert_eq!(last, [(40, 40), (41, 40), (56, 40), (57, 57), (58, 58)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_for_another_model_moves_on_with_the_branch() {
    let replica = replica(&Flaky::shared(), None);
    replica.save_branch(&branch(20, 19, &[]), state(decided(20, 1))).await.unwrap();
    let (found, _) = recall(&replica, &branch(21, 20, &[])).await;
    let others = Memory::of(found).of_other_models(CacheKey { model: 2, head: 7 });
    assert_eq!(others, [decided(20, 1)]);
    replica.save_branch(&branch(21, 20, &[]), BranchState { others, ..state(decided(21, 2)) }).await.unwrap();
    let (mut found, _) = recall(&replica, &branch(22, 21, &[])).await;
    found.sort_by_key(|waypoint| waypoint.end.0[0]);
    assert_eq!(found, [decided(20, 1), decided(21, 2)]);
    // The same messages to the first model again: there is more about it where the previous request was.
    replica.save_branch(&branch(22, 21, &[]), state(decided(22, 2))).await.unwrap();
    let (found, _) = recall(&replica, &branch(22, 21, &[])).await;
    let ends: Vec<u8> = found.iter().map(|waypoint| waypoint.end.0[0]).collect();
    assert_eq!((ends.len(), ends.contains(&20), ends.last()), (3, true, Some(&22)));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_changes_more_than_its_last_answers_has_all_anchors_written() {
    let replica = replica(&Flaky::shared(), None);
    let anchors = [(11, Some(2)), (10, None), (9, Some(4)), (8, Some(8)), (7, Some(16))];
    let written = async |numbers: [u8; 4]| {
        let mut written = Vec::new();
        for number in numbers {
            written.push(!replica.recall(key(number)).await.memory.waypoints().is_empty());
        }
        written
    };
    replica.save_branch(&branch(20, 19, &anchors), state(decided(20, 1))).await.unwrap();
    assert_eq!(written([11, 9, 8, 7]).await, [true, false, false, true]);
    // The next request has nothing in common with it but what is before the farthest anchor.
    let mut changed = branch(31, 30, &[(13, Some(2)), (12, None), (6, Some(4)), (5, Some(8)), (7, Some(16))]);
    assert_eq!(replica.recall_branch(RECORDS, &mut changed).await.memory.waypoints(), [decided(20, 1)]);
    assert!(changed.is_changed);
    replica.save_branch(&changed, state(decided(31, 1))).await.unwrap();
    assert_eq!(written([13, 6, 5, 7]).await, [true; 4]);
    // One that has changed its last two answers needs the nearest alone.
    let mut changed = branch(41, 40, &[(14, Some(2)), (13, None), (6, Some(4))]);
    assert_eq!(replica.recall_branch(RECORDS, &mut changed).await.memory.waypoints(), [decided(31, 1)]);
    assert!(!changed.is_changed);
}
