//! Properties of masking, over generated conversations that grow turn by turn, branch and are retried.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use proptest::prelude::*;
use std::num::NonZeroU32;
use tidegate_engine::{
    BudgetPolicy, CacheKey, CachePricing, Capacity, Conversation, Decision, Digest, Keep, Kind, MaskPolicy,
    Memory, Message, Pace, Policy, Role, Strategy as ContextStrategy, Timestamp, Tokens, Verdict, decide,
};

/// A generated message without its digest.
#[derive(Clone, Debug)]
struct Draft {
    role: Role,
    kind: Kind,
    tokens: u64,
    masked: Option<u64>,
}

fn draft() -> impl Strategy<Value = Draft> {
    let speech =
        |role| (1u64..400).prop_map(move |tokens| Draft { role, kind: Kind::Speech, tokens, masked: None });
    let observation = |role| {
        (1u64..4000, prop::option::weighted(0.8, 1u64..40)).prop_map(move |(tokens, masked)| Draft {
            role,
            kind: Kind::Observation,
            tokens,
            masked,
        })
    };
    prop_oneof![
        1 => speech(Role::System),
        2 => speech(Role::User),
        6 => speech(Role::Assistant),
        6 => observation(Role::Tool),
        1 => observation(Role::User),
        1 => speech(Role::Other),
    ]
}

fn keep() -> impl Strategy<Value = Keep> {
    let some = || (1u32..12).prop_map(|count| NonZeroU32::new(count).unwrap());
    prop_oneof![
        4 => some().prop_map(Keep::Turns),
        1 => some().prop_map(Keep::UserTurns),
        1 => some().prop_map(Keep::Messages),
        1 => (1u64..20_000).prop_map(|tokens| Keep::Tokens(Tokens(tokens))),
    ]
}

fn pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        Just(Pace::EveryTurn),
        (1u32..6).prop_map(|size| Pace::Batch(NonZeroU32::new(size).unwrap())),
        Just(Pace::BreakEven),
    ]
}

fn economy() -> impl Strategy<Value = CachePricing> {
    prop_oneof![
        Just(CachePricing::WITHOUT_CACHE),
        Just(CachePricing { write: 1.0, cached: 0.1, cache_life: 300_000 }),
        Just(CachePricing { write: 1.25, cached: 0.1, cache_life: 300_000 }),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    drafts: Vec<Draft>,
    policy: Policy,
    economy: CachePricing,
    window: u64,
    /// Milliseconds between two requests.
    gap: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (prop::collection::vec(draft(), 1..80), keep(), pace(), economy(), 2_000u64..200_000, 0u64..600_000)
        .prop_map(|(drafts, keep, pace, economy, window, gap)| Case {
            drafts,
            policy: Policy {
                strategy: ContextStrategy::Masking,
                mask: MaskPolicy { keep, pace },
                ..Policy::default()
            },
            economy,
            window,
            gap,
        })
}

/// Adds digests that depend on everything before them, as the real chain does. From index `branch` on, they are those of another
/// conversation.
fn messages(drafts: &[Draft], branch: usize) -> Vec<Message> {
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    let mut digest = Digest::default();
    let mut out = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        if !draft.role.is_instruction() {
            for value in [draft.tokens, draft.role as u64, index as u64, u64::from(index >= branch)] {
                state = (state ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
            }
            digest.0[..8].copy_from_slice(&state.to_le_bytes());
        }
        out.push(Message {
            role: draft.role,
            kind: draft.kind,
            digest,
            tokens: Tokens(draft.tokens),
            size: Tokens(draft.tokens),
            masked: draft.masked.map(Tokens),
            trimmed: None,
            joined: draft.role == Role::Tool && index > 0,
        });
    }
    out
}

/// The end of each request: before every assistant message, and at the end.
fn ends(drafts: &[Draft]) -> Vec<usize> {
    let before_assistant = drafts.iter().enumerate().filter(|(_, draft)| draft.role == Role::Assistant);
    let mut ends: Vec<usize> = before_assistant.map(|(index, _)| index).filter(|&index| index > 0).collect();
    ends.push(drafts.len());
    ends
}

fn decided(case: &Case, messages: &[Message], memory: &Memory, now: u64) -> Decision {
    let budget = BudgetPolicy::default().budget(&Capacity::known(Tokens(case.window)));
    let conversation = Conversation {
        messages,
        cache: CacheKey::default(),
        fixed: Tokens(3),
        budget,
        economy: case.economy,
        marker: Tokens(15),
        pinned: Tokens::ZERO,
    };
    decide(&conversation, memory, &case.policy, Timestamp(now))
}

/// Plays the whole conversation and calls `check` with each request's messages, its decision, the memory and the time.
fn play(
    case: &Case,
    mut check: impl FnMut(&[Message], &Decision, &Memory, u64) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let all = messages(&case.drafts, usize::MAX);
    let mut memory = Memory::default();
    for (number, end) in ends(&case.drafts).into_iter().enumerate() {
        let now = number as u64 * case.gap;
        let decision = decided(case, &all[..end], &memory, now);
        check(&all[..end], &decision, &memory, now)?;
        if let Some(waypoint) = decision.waypoint.clone() {
            memory.add(waypoint);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Only observations are masked, never in the unresolved tail, and never if it would not shrink them.
    #[test]
    fn nothing_sacred_is_masked(case in case()) {
        play(&case, |messages, decision, _, _| {
            let tail = messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0);
            for &index in &decision.plan.masked {
                let message = &messages[index];
                prop_assert_eq!(message.kind, Kind::Observation);
                prop_assert!(index < tail, "the unresolved tail was masked");
                prop_assert!(message.masked.is_some_and(|masked| masked < message.tokens), "message {index} did not shrink");
            }
            prop_assert!(decision.plan.masked.is_sorted());
            Ok(())
        })?;
    }

    #[test]
    fn a_request_is_over_budget_only_if_it_does_not_fit_with_every_allowed_mask(case in case()) {
        play(&case, |messages, decision, _, _| {
            let plan = &decision.plan;
            let masked = |index| plan.masked.contains(&index);
            let after: u64 = messages.iter().enumerate().map(|(index, message)| match message.masked {
                Some(tokens) if masked(index) => tokens.0,
                _ => message.tokens.0,
            }).sum();
            prop_assert_eq!(plan.after, Tokens(after + 3));
            prop_assert_eq!(plan.before, Tokens(messages.iter().map(|message| message.tokens.0).sum::<u64>() + 3));
            let fits = plan.budget.fits(plan.after);
            prop_assert_eq!(plan.verdict == Verdict::Fits, fits);
            if !fits {
                prop_assert_eq!(plan.postponed, 0, "over budget with maskable observations left");
            }
            Ok(())
        })?;
    }

    /// Also for a retry, which finds the waypoint of the first attempt.
    #[test]
    fn the_same_request_gets_the_same_plan(case in case()) {
        play(&case, |messages, decision, memory, now| {
            prop_assert_eq!(&decided(&case, messages, memory, now), decision);
            let mut memory = memory.clone();
            if let Some(waypoint) = decision.waypoint.clone() {
                memory.add(waypoint);
                for later in [now, now + 1_000, now + 10_000_000] {
                    let retry = decided(&case, messages, &memory, later);
                    prop_assert_eq!(&retry.plan.masked, &decision.plan.masked);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn masks_stay_and_new_ones_have_a_cause(case in case()) {
        let mut before: Option<Vec<usize>> = None;
        play(&case, |_, decision, _, _| {
            if let Some(before) = &before {
                prop_assert!(before.iter().all(|index| decision.plan.masked.contains(index)));
                if decision.plan.cause.is_none() {
                    prop_assert_eq!(before, &decision.plan.masked);
                }
            }
            if decision.waypoint.is_some() {
                before = Some(decision.plan.masked.clone());
            }
            Ok(())
        })?;
    }

    /// A branch, an edited message or a regenerated answer: only what was decided for the common messages is repeated, and a
    /// conversation that has none in common is decided as if it were the first.
    #[test]
    fn a_branch_gets_only_what_was_decided_for_the_common_messages(case in case(), at in 0usize..80) {
        // Instructions are not part of the digest, so the branches differ from the first other message on.
        let parted = case.drafts.iter().skip(at).position(|draft| !draft.role.is_instruction());
        let at = parted.map_or(case.drafts.len(), |steps| at + steps);
        let mut memory = Memory::default();
        let mut masked = Vec::new();
        let all = messages(&case.drafts, usize::MAX);
        for end in ends(&case.drafts) {
            let decision = decided(&case, &all[..end], &memory, 0);
            if let Some(waypoint) = decision.waypoint.clone() {
                memory.add(waypoint);
                masked.extend(decision.plan.masked);
            }
        }
        let branch = messages(&case.drafts, at);
        let plan = decided(&case, &branch, &memory, 0).plan;
        for index in &plan.masked {
            prop_assert!(*index < plan.edge || (*index < at && masked.contains(index)), "{index} of {plan:?}");
        }
        if case.drafts[..at.min(case.drafts.len())].iter().all(|draft| draft.role.is_instruction()) {
            prop_assert_eq!(plan, decided(&case, &branch, &Memory::default(), 0).plan);
        }
    }

    #[test]
    fn every_turn_postpones_nothing_and_a_batch_less_than_its_size(case in case()) {
        play(&case, |_, decision, _, _| {
            let plan = &decision.plan;
            match case.policy.mask.pace {
                Pace::EveryTurn => prop_assert_eq!(plan.postponed, 0),
                Pace::Batch(size) => prop_assert!(plan.postponed < size.get() as usize),
                Pace::BreakEven => {}
            }
            Ok(())
        })?;
    }

    #[test]
    fn passthrough_changes_nothing(case in case()) {
        let policy = Policy { strategy: ContextStrategy::Passthrough, ..case.policy };
        let case = Case { policy, ..case };
        play(&case, |_, decision, _, _| {
            prop_assert!(decision.plan.masked.is_empty() && decision.waypoint.is_none());
            prop_assert_eq!(decision.plan.before, decision.plan.after);
            Ok(())
        })?;
    }
}
