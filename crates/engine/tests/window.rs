//! Properties of the window strategy, over generated conversations.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use proptest::prelude::*;
use tidegate_engine::{
    BudgetPolicy, CacheKey, CachePricing, Capacity, Conversation, Decision, Digest, Kind, Memory, Message,
    Policy, Role, Strategy as ContextStrategy, Timestamp, Tokens, Verdict, WindowPolicy, decide,
    unresolved_from,
};

const MARKER: Tokens = Tokens(12);

fn script() -> impl Strategy<Value = Vec<(Role, u64)>> {
    let turn = (any::<bool>(), 1u64..400, prop::collection::vec(1u64..900, 0..3));
    prop::collection::vec(turn, 1..60).prop_map(|turns| {
        let mut script = vec![(Role::System, 60), (Role::User, 40)];
        for (user, assistant, results) in turns {
            if user {
                script.push((Role::User, 30));
            }
            script.push((Role::Assistant, assistant));
            script.extend(results.into_iter().map(|tokens| (Role::Tool, tokens)));
        }
        script.push((Role::User, 50));
        script
    })
}

fn messages(script: &[(Role, u64)]) -> Vec<Message> {
    let message = |(index, (role, tokens)): (usize, &(Role, u64))| {
        let mut digest = Digest::default();
        digest.0[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        let (kind, tokens) = (Kind::of(*role), Tokens(*tokens));
        Message {
            role: *role,
            kind,
            digest,
            tokens,
            size: tokens,
            masked: None,
            trimmed: None,
            joined: *role == Role::Tool,
        }
    };
    script.iter().enumerate().map(message).collect()
}

fn window() -> impl Strategy<Value = WindowPolicy> {
    (1usize..6, 1usize..8, 0usize..20, 0usize..20, 0.05..0.4f64, 0.2..0.6f64).prop_map(
        |(head_min, tail_min, more_head, more_tail, head_ratio, tail_ratio)| WindowPolicy {
            head_ratio,
            tail_ratio,
            head_max: head_min + more_head,
            tail_max: tail_min + more_tail,
            head_min,
            tail_min,
        },
    )
}

fn decided(messages: &[Message], budget: u64, window: WindowPolicy, memory: &Memory) -> Decision {
    let mut figures = BudgetPolicy::default().budget(&Capacity::known(Tokens(1_000_000)));
    figures.input = Some(Tokens(budget));
    let conversation = Conversation {
        messages,
        cache: CacheKey::default(),
        fixed: Tokens(3),
        budget: figures,
        economy: CachePricing::WITHOUT_CACHE,
        marker: MARKER,
        pinned: Tokens(9),
    };
    let policy = Policy { strategy: ContextStrategy::Window, window, ..Policy::default() };
    decide(&conversation, memory, &policy, Timestamp(0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_head_and_a_tail_stay_and_calls_keep_their_results(script in script(), window in window(), budget in 500u64..12_000) {
        let messages = messages(&script);
        let plan = decided(&messages, budget, window, &Memory::default()).plan;
        let request = messages.iter().rposition(Message::is_user_turn).unwrap();
        for index in &plan.dropped {
            prop_assert!(!messages[*index].role.is_instruction() && *index != request);
            prop_assert!(*index < unresolved_from(&messages));
        }
        // The dropped messages are one run, apart from instructions, the last user turn, and the question of a loop that the run splits.
        let talk: Vec<usize> = (0..messages.len()).filter(|&index| !messages[index].role.is_instruction() && index != request).collect();
        if let (Some(first), Some(last)) = (plan.dropped.first(), plan.dropped.last()) {
            let [from, to] = [first, last].map(|end| talk.iter().position(|index| index == end).unwrap());
            let kept: Vec<usize> = talk[from..=to].iter().copied().filter(|index| !plan.dropped.contains(index)).collect();
            prop_assert!(kept.len() <= 1 && kept.iter().all(|&index| messages[index].is_user_turn()), "{:?}", kept);
            prop_assert!(from >= window.head_min.min(talk.len()));
            prop_assert!(talk.len() - to - 1 + kept.len() >= window.tail_min.min(talk.len()));
        }
        for (index, message) in messages.iter().enumerate().filter(|(_, message)| message.role == Role::Tool) {
            let call = messages[..index].iter().rposition(|message| message.role == Role::Assistant).unwrap();
            prop_assert_eq!(plan.dropped.contains(&index), plan.dropped.contains(&call), "{:?}", message);
        }
        let left: u64 = (0..messages.len()).filter(|index| !plan.dropped.contains(index)).map(|index| messages[index].tokens.0).sum();
        let marker = if plan.dropped.is_empty() { 0 } else { MARKER.0 };
        prop_assert_eq!(plan.after, Tokens(left + marker + 12));
        prop_assert_eq!(plan.verdict == Verdict::Fits, plan.after <= Tokens(budget));
    }

    #[test]
    fn the_same_middle_stays_dropped_until_the_request_no_longer_fits(script in script(), window in window(), budget in 2_000u64..12_000) {
        let all = messages(&script);
        let mut memory = Memory::default();
        let mut before: Option<Vec<usize>> = None;
        for end in (2..=all.len()).filter(|&end| all.get(end).is_none_or(|next| next.role == Role::Assistant)) {
            let decision = decided(&all[..end], budget, window, &memory);
            let Some(waypoint) = decision.waypoint else { break };
            let retry = decided(&all[..end], budget, window, &{ let mut memory = memory.clone(); memory.add(waypoint.clone()); memory });
            prop_assert_eq!(&retry.plan.dropped, &decision.plan.dropped, "a retry");
            if let Some(before) = before.filter(|_| decision.plan.cause.is_none()) {
                // The last user turn of the previous request is part of the history now, and may be inside the gap.
                prop_assert!(decision.plan.dropped.iter().filter(|index| all[**index].role != Role::User)
                    .eq(before.iter().filter(|index| all[**index].role != Role::User)));
            }
            memory.add(waypoint);
            before = Some(decision.plan.dropped);
        }
    }
}

#[test]
fn a_request_that_fits_is_not_cut_however_many_messages_it_has() {
    let script: Vec<(Role, u64)> =
        (0..101).map(|index| (if index % 2 == 0 { Role::User } else { Role::Assistant }, 10)).collect();
    let messages = messages(&script);
    let fits = decided(&messages, 2_000, WindowPolicy::default(), &Memory::default());
    assert!(fits.plan.dropped.is_empty() && fits.plan.cause.is_none());
    assert_eq!(fits.plan.window.unwrap().cut, None);
    let tight = decided(&messages, 600, WindowPolicy::default(), &Memory::default());
    let figures = tight.plan.window.unwrap();
    // 600 minus 3 fixed, 9 pinned and the 10 tokens of the open turn.
    assert_eq!((figures.scaffold, figures.room, figures.history), (Tokens(22), Tokens(578), Tokens(1_000)));
    let cut = figures.cut.unwrap();
    assert_eq!((cut.planned, cut.kept), ((14, 20), (14, 20)));
    assert_eq!((cut.average, cut.head_room, cut.tail_room), (Tokens(10), Tokens(144), Tokens(404)));
    assert_eq!(tight.plan.dropped, (14..80).collect::<Vec<_>>());
}

/// For example, if the next request is for a model with a larger window.
#[test]
fn nothing_is_dropped_any_more_once_everything_fits() {
    let script: Vec<(Role, u64)> =
        (0..101).map(|index| (if index % 2 == 0 { Role::User } else { Role::Assistant }, 10)).collect();
    let messages = messages(&script);
    let mut memory = Memory::default();
    memory.add(decided(&messages, 600, WindowPolicy::default(), &memory).waypoint.unwrap());
    assert_eq!(decided(&messages, 700, WindowPolicy::default(), &memory).plan.dropped.len(), 66);
    assert!(decided(&messages, 2_000, WindowPolicy::default(), &memory).plan.dropped.is_empty());
}

/// A tool loop: the prefix changes only when the history has grown by a good part of the room.
#[test]
fn a_new_cut_lasts_for_several_requests() {
    let mut script = vec![(Role::User, 40)];
    let (mut memory, mut edited, mut changed) = (Memory::default(), 0, 0);
    let mut before: Vec<usize> = Vec::new();
    for _ in 0..60 {
        script.extend([(Role::Assistant, 60), (Role::Tool, 120)]);
        let decision = decided(&messages(&script), 3_500, WindowPolicy::default(), &memory);
        memory.add(decision.waypoint.unwrap());
        if !decision.plan.dropped.is_empty() {
            edited += 1;
            changed += usize::from(decision.plan.dropped != before);
        }
        before = decision.plan.dropped;
    }
    assert!(edited > 35 && changed * 3 <= edited, "{changed} of {edited}");
}
