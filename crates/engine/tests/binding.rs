//! Reasoning that is bound to what stood before it: a simulated provider remembers what every signed answer was made after, and refuses
//! a request in which that has changed.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use proptest::prelude::*;
use std::collections::HashMap;
use std::num::NonZeroU32;
use tidegate_engine::{
    BudgetPolicy, CacheKey, CachePricing, Capacity, Conversation, Decision, Digest, Fold, FoldJob,
    FoldPolicy, Keep, Kind, MaskPolicy, Memory, Message, Pace, Plan, Policy, Role,
    Strategy as ContextStrategy, Timestamp, Tokens, Trigger, TrimPolicy, Verdict, decide,
};

const SUMMARY: Tokens = Tokens(60);

#[derive(Clone, Debug)]
struct Case {
    /// Each assistant message with whether it is signed, the sizes of its results, and whether the user speaks before it.
    turns: Vec<(bool, Vec<u64>, bool)>,
    policy: Policy,
    budget: u64,
    discount: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let turn = (prop::bool::weighted(0.6), prop::collection::vec(50u64..1_500, 0..3), any::<bool>());
    let strategies = prop_oneof![
        Just(ContextStrategy::Masking),
        Just(ContextStrategy::Hybrid),
        Just(ContextStrategy::Summarization),
        Just(ContextStrategy::Window),
    ];
    let pace = prop_oneof![
        Just(Pace::EveryTurn),
        Just(Pace::BreakEven),
        (1u32..4).prop_map(|size| Pace::Batch(NonZeroU32::new(size).unwrap())),
    ];
    let keep = || (1u32..5).prop_map(|count| Keep::Turns(NonZeroU32::new(count).unwrap()));
    // How many of the first answers have no reasoning: other models made them.
    (
        prop::collection::vec(turn, 2..30),
        0usize..12,
        strategies,
        (pace, keep(), keep(), any::<bool>()),
        1_500u64..15_000,
        any::<bool>(),
    )
        .prop_map(|(mut turns, unsigned, strategy, (pace, mask, fold, trims), budget, discount)| {
            for (is_signed, ..) in turns.iter_mut().take(unsigned) {
                *is_signed = false;
            }
            if strategy == ContextStrategy::Window {
                turns.iter_mut().for_each(|(.., speaks)| *speaks = false);
            }
            let when = Trigger { turns: NonZeroU32::new(4), budget_ratio: Some(0.7), ..Trigger::default() };
            let policy = Policy {
                strategy,
                mask: MaskPolicy { keep: mask, pace },
                trim: trims.then_some(TrimPolicy { after: mask, pace }),
                fold: FoldPolicy { when, keep: fold, prune_keep: fold, ..FoldPolicy::default() },
                ..Policy::default()
            };
            Case { turns, policy, budget, discount }
        })
}

/// The messages of a conversation, and which of them are signed.
fn messages(case: &Case) -> (Vec<Message>, Vec<bool>) {
    let (mut messages, mut signed) = (Vec::new(), Vec::new());
    let mut add = |role: Role, tokens: u64, is_signed: bool| {
        let mut digest = Digest::default();
        digest.0[..8].copy_from_slice(&(messages.len() as u64 + 1).to_le_bytes());
        let is_result = role == Role::Tool;
        messages.push(Message {
            role,
            kind: Kind::of(role),
            digest,
            tokens: Tokens(tokens),
            size: Tokens(tokens),
            masked: is_result.then_some(Tokens(20)),
            trimmed: (is_result && tokens > 300).then_some(Tokens(200)),
            joined: is_result,
        });
        signed.push(is_signed);
    };
    add(Role::User, 40, false);
    for (number, (is_signed, results, speaks)) in case.turns.iter().enumerate() {
        if *speaks && number > 0 {
            add(Role::User, 30, false);
        }
        add(Role::Assistant, 60, *is_signed);
        results.iter().for_each(|tokens| add(Role::Tool, *tokens, false));
    }
    (messages, signed)
}

fn decided(case: &Case, messages: &[Message], signed: &[bool], memory: &Memory, now: u64) -> Decision {
    let mut budget = BudgetPolicy::default().budget(&Capacity::known(Tokens(1_000_000)));
    budget.input = Some(Tokens(case.budget));
    let cached = if case.discount { 0.1 } else { 1.0 };
    let conversation = Conversation {
        messages,
        cache: CacheKey::default(),
        fixed: Tokens(3),
        budget,
        economy: CachePricing { write: 1.0, cached, cache_life: 300_000 },
        marker: Tokens(15),
        pinned: Tokens::ZERO,
    };
    let bound = signed[..messages.len()].iter().rposition(|signed| *signed).map_or(0, |last| last + 1);
    decide(&conversation, memory, &Policy { bound, ..case.policy }, Timestamp(now))
}

fn fold(job: &FoldJob, messages: &[Message]) -> Fold {
    let kept = FoldJob::places(messages, &job.kept(messages, &[], SUMMARY));
    let (covers, keeps_request, seen) = (job.covers, job.keeps_request, job.seen);
    Fold { covers, tokens: SUMMARY, size: SUMMARY, keeps_request, seen, kept, ..Fold::default() }
}

/// What stands before a message in a forwarded request, and the message: for each, its index and what was done to it.
fn before(plan: &Plan, end: usize) -> Vec<(usize, &'static str)> {
    let removed = |index: usize| {
        plan.dropped.contains(&index)
            || plan.folded.as_ref().is_some_and(|folded| folded.removed.contains(&index))
    };
    let state = |index: usize| match (plan.masked.contains(&index), plan.trimmed.contains(&index)) {
        _ if removed(index) => None,
        (true, _) => Some((index, "masked")),
        (false, true) => Some((index, "trimmed")),
        (false, false) => Some((index, "whole")),
    };
    let summary = plan.folded.as_ref().map(|folded| (folded.upto, "covered"));
    summary.into_iter().chain((0..end).filter_map(state)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reasoning_is_never_invalidated(case in case()) {
        let (all, signed) = messages(&case);
        let mut memory = Memory::default();
        let mut made_after = HashMap::new();
        let answers = (1..=all.len()).filter(|&end| all.get(end).is_some_and(|next| next.role == Role::Assistant));
        for (number, end) in answers.enumerate() {
            let mut decision = decided(&case, &all[..end], &signed, &memory, number as u64 * 1_000);
            if let Some(job) = decision.wanted.clone() {
                memory.add_fold(fold(&job, &all[..end]));
                if number % 2 == 0 {
                    decision = decided(&case, &all[..end], &signed, &memory, number as u64 * 1_000);
                }
            }
            let plan = &decision.plan;
            let goes = |index: usize| !before(plan, index + 1).iter().any(|(kept, what)| *kept == index && *what == "whole");
            for index in (0..end).filter(|index| signed[*index] && !goes(*index)) {
                prop_assert_eq!(&made_after[&index], &before(plan, index), "{} at {}", index, end);
            }
            prop_assert!(plan.verdict != Verdict::Refused);
            made_after.insert(end, before(plan, end));
            memory.add(decision.waypoint.unwrap());
        }
    }

    /// What stands behind the last reasoning is edited as ever.
    #[test]
    fn without_reasoning_everything_is_edited_as_before(case in case()) {
        let (all, signed) = messages(&case);
        let unsigned = vec![false; signed.len()];
        let plain = decided(&case, &all, &unsigned, &Memory::default(), 0);
        prop_assert_eq!(plain.plan.bound, 0);
        let left = decide_alone(&case, &all);
        prop_assert!(left.plan.is_left_alone && left.plan.masked.is_empty() && left.plan.dropped.is_empty());
        prop_assert!(left.plan.folded.is_none() && left.plan.before == left.plan.after && left.wanted.is_none());
        let mut memory = Memory::default();
        memory.add(left.waypoint.unwrap());
        prop_assert!(memory.leaves_alone(&all, CacheKey::default()));
        prop_assert!(!Memory::default().leaves_alone(&all, CacheKey::default()));
    }
}

fn decide_alone(case: &Case, messages: &[Message]) -> Decision {
    let alone = Case { policy: Policy { leaves_alone: true, ..case.policy }, ..case.clone() };
    decided(&alone, messages, &vec![false; messages.len()], &Memory::default(), 0)
}

/// Otherwise the property would hold for an engine that edits nothing.
#[test]
fn results_behind_the_last_reasoning_are_masked() {
    let mut turns = vec![(true, vec![900], false); 2];
    turns.extend(vec![(false, vec![900], false); 6]);
    let keep = Keep::Turns(NonZeroU32::MIN);
    let policy = Policy {
        strategy: ContextStrategy::Masking,
        mask: MaskPolicy { keep, pace: Pace::EveryTurn },
        ..Policy::default()
    };
    let case = Case { turns, policy, budget: 100_000, discount: false };
    let (all, signed) = messages(&case);
    let plan = decided(&case, &all, &signed, &Memory::default(), 0).plan;
    assert_eq!((plan.bound, &plan.masked[..]), (4, &[][..]), "the first result stands before reasoning");
    // Masked before there was any, it stays so.
    let mut memory = Memory::default();
    let early = decided(&case, &all[..3], &[false; 3], &memory, 0);
    assert_eq!(early.plan.masked, [] as [usize; 0]);
    let early = decided(&case, &all[..5], &[false; 5], &memory, 0);
    assert_eq!(early.plan.masked, [2]);
    memory.add(early.waypoint.unwrap());
    let plan = decided(&case, &all, &signed, &memory, 1).plan;
    assert_eq!(plan.masked, [2, 4, 6, 8, 10, 12, 14][..plan.masked.len()]);
    assert!(plan.masked.len() >= 5, "{:?}", plan.masked);
}
