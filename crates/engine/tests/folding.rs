//! Properties of folding, over generated conversations. A simulated host makes every summary that the engine wants, at once or for
//! the next request, or fails to.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use proptest::prelude::*;
use std::num::NonZeroU32;
use tidegate_engine::{
    BudgetPolicy, CacheKey, CachePricing, Capacity, Conversation, Decision, Digest, Fold, FoldJob, FoldPace,
    FoldPolicy, Keep, Kind, MaskPolicy, Memory, Message, Pace, Policy, Role, Strategy as ContextStrategy,
    Timestamp, Tokens, Trigger, Verdict, decide, truncate, unresolved_from,
};

const SUMMARY: Tokens = Tokens(60);
const MARKER: Tokens = Tokens(15);

/// When the host makes summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// Before the request goes out.
    Inline,
    /// For the next request, unless this one does not fit.
    Background,
    /// Never.
    Failing,
}

#[derive(Clone, Debug)]
struct Case {
    /// The role, kind and tokens of each message.
    script: Vec<(Role, Kind, u64)>,
    policy: Policy,
    window: u64,
    host: Host,
}

/// Turns of an optional user message, an assistant message, and the results of its calls.
fn script() -> impl Strategy<Value = Vec<(Role, Kind, u64)>> {
    let turn =
        (prop::option::weighted(0.4, 1u64..300), 1u64..200, prop::collection::vec(1u64..1500, 0..4), 0u8..20);
    prop::collection::vec(turn, 1..40).prop_map(|turns| {
        let mut script = vec![(Role::System, Kind::Speech, 50), (Role::User, Kind::Speech, 40)];
        for (user, assistant, results, odd) in turns {
            script.extend(user.map(|tokens| (Role::User, Kind::Speech, tokens)));
            if odd == 0 {
                script.push((Role::System, Kind::Speech, 10));
            }
            script.push((Role::Assistant, Kind::Speech, assistant));
            script.extend(results.into_iter().map(|tokens| (Role::Tool, Kind::Observation, tokens)));
            if odd == 1 {
                script.push((Role::User, Kind::Observation, 300));
            }
        }
        script
    })
}

fn keep() -> impl Strategy<Value = Keep> {
    let some = || (1u32..8).prop_map(|count| NonZeroU32::new(count).unwrap());
    prop_oneof![
        3 => some().prop_map(Keep::Turns),
        1 => some().prop_map(Keep::UserTurns),
        1 => some().prop_map(Keep::Messages),
        1 => (1u64..4_000).prop_map(|tokens| Keep::Tokens(Tokens(tokens))),
    ]
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let some = |count| NonZeroU32::new(count);
    prop_oneof![
        (0.1..1.0f64).prop_map(|ratio| Trigger { budget_ratio: Some(ratio), ..Trigger::default() }),
        (1u32..12).prop_map(move |count| Trigger { user_turns: some(count), ..Trigger::default() }),
        (1u32..12).prop_map(move |count| Trigger { turns: some(count), ..Trigger::default() }),
        (1u32..20).prop_map(move |count| Trigger { messages: some(count), ..Trigger::default() }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let strategies = prop_oneof![Just(ContextStrategy::Summarization), Just(ContextStrategy::Hybrid)];
    let hosts = prop_oneof![2 => Just(Host::Inline), 2 => Just(Host::Background), 1 => Just(Host::Failing)];
    let pace = prop_oneof![Just(FoldPace::AtTrigger), Just(FoldPace::BreakEven)];
    (script(), strategies, keep(), (trigger(), keep(), keep(), any::<bool>(), pace), 3_000u64..40_000, hosts)
        .prop_map(|(script, strategy, mask, (when, keep, prune_keep, pin_task, pace), window, host)| {
            let fold = FoldPolicy { when, keep, prune_keep, pin_task, pace, ..FoldPolicy::default() };
            let mask = MaskPolicy { keep: mask, pace: Pace::BreakEven };
            Case { script, policy: Policy { strategy, mask, fold, ..Policy::default() }, window, host }
        })
}

fn messages(script: &[(Role, Kind, u64)]) -> Vec<Message> {
    let mut digest = Digest::default();
    let message = |(index, (role, kind, tokens)): (usize, &(Role, Kind, u64))| {
        if !role.is_instruction() {
            digest.0[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        }
        let masked = (*kind == Kind::Observation).then_some(Tokens(20));
        Message {
            role: *role,
            kind: *kind,
            digest,
            tokens: Tokens(*tokens),
            size: Tokens(*tokens),
            masked,
            trimmed: None,
            joined: *role == Role::Tool,
        }
    };
    script.iter().enumerate().map(message).collect()
}

/// The end of each request: before every assistant message, and at the end.
fn ends(script: &[(Role, Kind, u64)]) -> Vec<usize> {
    let speaks = |index: &usize| script.get(*index).is_none_or(|(role, ..)| *role == Role::Assistant);
    (1..=script.len()).filter(speaks).collect()
}

fn conversation<'a>(case: &Case, messages: &'a [Message]) -> Conversation<'a> {
    let budget = BudgetPolicy::default().budget(&Capacity::known(Tokens(case.window)));
    let economy = CachePricing { write: 1.0, cached: 0.1, cache_life: 300_000 };
    Conversation {
        messages,
        cache: CacheKey::default(),
        fixed: Tokens(3),
        budget,
        economy,
        marker: MARKER,
        pinned: Tokens::ZERO,
    }
}

/// Makes the summary that a job asks for. It rests on every fifth message.
fn fold(job: &FoldJob, messages: &[Message]) -> Fold {
    let anchors: Vec<usize> = job.messages.clone().step_by(5).collect();
    let kept = FoldJob::places(messages, &job.kept(messages, &anchors, SUMMARY));
    Fold {
        covers: job.covers,
        tokens: SUMMARY,
        size: SUMMARY,
        keeps_request: job.keeps_request,
        seen: job.seen,
        kept,
        ..Fold::default()
    }
}

/// Serves one request, and adds its summaries and its waypoint to `memory`.
fn serve(case: &Case, messages: &[Message], memory: &mut Memory, now: u64) -> Decision {
    let conversation = conversation(case, messages);
    let mut decision = decide(&conversation, memory, &case.policy, Timestamp(now));
    for _ in 0..3 {
        let Some(job) = decision.wanted.clone() else { break };
        match case.host {
            Host::Failing if decision.plan.verdict != Verdict::Fits => {
                decision = truncate(&conversation, memory, &case.policy, Timestamp(now));
                break;
            }
            Host::Background if !job.is_urgent() => {
                memory.add_fold(fold(&job, messages));
                break;
            }
            Host::Failing => break,
            Host::Inline | Host::Background => {
                memory.add_fold(fold(&job, messages));
                decision = decide(&conversation, memory, &case.policy, Timestamp(now));
            }
        }
    }
    if let Some(waypoint) = decision.waypoint.clone() {
        memory.add(waypoint);
    }
    decision
}

fn play(
    case: &Case,
    mut check: impl FnMut(&[Message], &Decision, &Memory) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let all = messages(&case.script);
    let mut memory = Memory::default();
    for (number, end) in ends(&case.script).into_iter().enumerate() {
        let decision = serve(case, &all[..end], &mut memory, number as u64 * 1_000);
        check(&all[..end], &decision, &memory)?;
    }
    Ok(())
}

/// A forwarded request.
struct Sent {
    kept: Vec<usize>,
    masked: Vec<usize>,
    fold: Option<Digest>,
    length: usize,
}

/// Whether a message is in the forwarded request.
fn stays(decision: &Decision, index: usize) -> bool {
    let plan = &decision.plan;
    !plan.dropped.contains(&index)
        && !plan.folded.as_ref().is_some_and(|folded| folded.removed.contains(&index))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Instructions, the last user turn, the unresolved tail and a pinned task stay verbatim.
    #[test]
    fn nothing_sacred_goes(case in case()) {
        play(&case, |messages, decision, _| {
            let request = messages.iter().rposition(Message::is_user_turn);
            let task = messages.iter().position(Message::is_user_turn).filter(|_| case.policy.fold.pin_task);
            for (index, message) in messages.iter().enumerate() {
                let sacred = message.role.is_instruction() || Some(index) == request || Some(index) == task
                    || index >= unresolved_from(messages);
                if sacred {
                    prop_assert!(stays(decision, index), "message {index} went");
                    prop_assert!(!decision.plan.masked.contains(&index), "message {index} was masked");
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_message_goes_only_if_the_summary_covers_it_or_summarizing_failed(case in case()) {
        play(&case, |messages, decision, memory| {
            let plan = &decision.plan;
            if let Some(folded) = &plan.folded {
                prop_assert!(folded.removed.iter().all(|index| *index < folded.upto));
                let last = messages[..folded.upto].iter().rev().find(|message| !message.role.is_instruction());
                prop_assert_eq!(last.map(|message| message.digest), Some(folded.covers));
                prop_assert!(memory.folds().iter().any(|fold| fold.covers == folded.covers));
            }
            prop_assert!(case.host == Host::Failing || plan.dropped.is_empty(), "dropped although summarizing did not fail");
            Ok(())
        })?;
    }

    #[test]
    fn calls_and_their_results_stay_together(case in case()) {
        play(&case, |messages, decision, _| {
            for (index, message) in messages.iter().enumerate() {
                if message.role == Role::Tool {
                    let call = messages[..index].iter().rposition(|message| message.role == Role::Assistant);
                    prop_assert_eq!(stays(decision, index), stays(decision, call.unwrap()), "message {} was separated from its call", index);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_request_is_over_budget_only_if_nothing_more_can_be_folded(case in case()) {
        play(&case, |messages, decision, _| {
            let plan = &decision.plan;
            let cost = |index: usize| match messages[index].masked {
                Some(masked) if plan.masked.contains(&index) => masked.0,
                _ => messages[index].tokens.0,
            };
            let left: u64 = (0..messages.len()).filter(|&index| stays(decision, index)).map(cost).sum();
            let extra = plan.folded.as_ref().map_or(0, |_| SUMMARY.0) + if plan.dropped.is_empty() { 0 } else { MARKER.0 };
            prop_assert_eq!(plan.after, Tokens(left + extra + 3));
            let fits = plan.budget.fits(plan.after);
            prop_assert_eq!(plan.verdict == Verdict::Fits, fits);
            // A limit on the number of messages holds even if that saves nothing.
            let may_grow = case.policy.fold.when.messages.is_some();
            prop_assert!(plan.after <= plan.before || !plan.dropped.is_empty() || may_grow, "the request grew");
            if !fits && case.host != Host::Failing {
                prop_assert_eq!(&decision.wanted, &None, "over budget although something could be folded");
            }
            Ok(())
        })?;
    }

    #[test]
    fn decisions_are_repeated_until_there_is_another_summary(case in case()) {
        let mut before: Option<Sent> = None;
        play(&case, |messages, decision, memory| {
            let plan = &decision.plan;
            let fold = plan.folded.as_ref().map(|folded| folded.covers);
            let kept: Vec<usize> = (0..messages.len()).filter(|&index| stays(decision, index)).collect();
            if let Some(before) = before.as_ref().filter(|before| before.fold == fold && plan.dropped.is_empty()) {
                let old: Vec<usize> = kept.iter().copied().filter(|index| *index < before.length).collect();
                prop_assert_eq!(&old, &before.kept);
                prop_assert!(before.masked.iter().all(|index| plan.masked.contains(index)));
            }
            if decision.waypoint.is_some() && plan.dropped.is_empty() {
                before = Some(Sent { kept, masked: plan.masked.clone(), fold, length: messages.len() });
                let retry = decide(&conversation(&case, messages), memory, &case.policy, Timestamp(9_999_999));
                prop_assert_eq!(&retry.plan.folded, &plan.folded);
                prop_assert_eq!(&retry.plan.masked, &plan.masked);
            } else {
                before = None;
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_summary_does_not_reach_into_what_the_policy_keeps(case in case()) {
        play(&case, |messages, decision, _| {
            let Some(job) = decision.wanted.as_ref().filter(|job| !job.is_urgent()) else { return Ok(()) };
            if let Keep::Messages(count) = case.policy.fold.keep {
                let behind = messages[job.messages.end..].iter().filter(|message| !message.role.is_instruction());
                prop_assert!(behind.count() >= (count.get() as usize).min(messages.len()));
            }
            prop_assert!(!messages[job.messages.end..].is_empty());
            Ok(())
        })?;
    }
}
