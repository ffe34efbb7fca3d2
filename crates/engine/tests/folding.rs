//! The promises of folding, over generated conversations that a simulated host plays: it makes every summary that the engine
//! wants, at once or for the next request, or fails to.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use proptest::prelude::*;
use std::num::NonZeroU32;
use tidegate_engine::{
    BudgetPolicy, Conversation, Decision, Digest, Economy, Fold, FoldJob, FoldPace, FoldPolicy, Keep, Kind,
    MaskPolicy, Memory, Message, Pace, Policy, Role, Strategy as ContextStrategy, Timestamp, Tokens, Trigger,
    Verdict, decide, truncate, unresolved_from,
};

const SUMMARY: Tokens = Tokens(60);
const MARKER: Tokens = Tokens(15);

/// How the host makes summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// The request waits for them.
    Inline,
    /// They are there for the next request, unless this one does not fit.
    Background,
    /// They never come.
    Failing,
}

#[derive(Clone, Debug)]
struct Case {
    /// The role of each message, with its tokens.
    script: Vec<(Role, Kind, u64)>,
    policy: Policy,
    window: u64,
    host: Host,
}

/// What the user says, what the assistant says to it, and the results of what it calls.
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
        .prop_map(|(script, strategy, mask, (when, keep, prune_keep, pins_task, pace), window, host)| {
            let fold = FoldPolicy { when, keep, prune_keep, pins_task, pace, ..FoldPolicy::default() };
            let mask = MaskPolicy { keep: mask, pace: Pace::BreakEven };
            Case { script, policy: Policy { strategy, mask, fold, ..Policy::default() }, window, host }
        })
}

fn messages(script: &[(Role, Kind, u64)]) -> Vec<Message> {
    let mut digest = Digest::default();
    let one = |(index, (role, kind, tokens)): (usize, &(Role, Kind, u64))| {
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
            joined: *role == Role::Tool,
        }
    };
    script.iter().enumerate().map(one).collect()
}

/// The ends of the requests: wherever the assistant is to speak.
fn ends(script: &[(Role, Kind, u64)]) -> Vec<usize> {
    let speaks = |index: &usize| script.get(*index).is_none_or(|(role, ..)| *role == Role::Assistant);
    (1..=script.len()).filter(speaks).collect()
}

fn conversation<'a>(case: &Case, messages: &'a [Message]) -> Conversation<'a> {
    let budget = BudgetPolicy::default().budget(Some(Tokens(case.window)), None);
    let economy = Economy { write: 1.0, cached: 0.1, cache_life: 300_000 };
    Conversation { messages, fixed: Tokens(3), budget, economy, marker: MARKER, pinned: Tokens::ZERO }
}

/// The summary that a job asks for. It rests on every fifth message.
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
    }
}

/// What the host does with one request; it has what it made in `memory` afterwards.
fn serve(case: &Case, messages: &[Message], memory: &mut Memory, now: u64) -> Decision {
    let conversation = conversation(case, messages);
    let mut decision = decide(&conversation, memory, &case.policy, Timestamp(now));
    for _ in 0..3 {
        let Some(job) = decision.wanted.clone() else { break };
        match case.host {
            Host::Failing if decision.plan.verdict == Verdict::OverBudget => {
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
    if let Some(waypoint) = decision.waypoint {
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

/// A request as it went out.
struct Sent {
    kept: Vec<usize>,
    masked: Vec<usize>,
    fold: Option<Digest>,
    length: usize,
}

/// Whether a message is in the request that goes out.
fn stays(decision: &Decision, index: usize) -> bool {
    let plan = &decision.plan;
    !plan.dropped.contains(&index)
        && !plan.folded.as_ref().is_some_and(|folded| folded.removed.contains(&index))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Promise 3: instructions, what the user last asked, the unresolved end and a pinned task stay verbatim.
    #[test]
    fn nothing_sacred_goes(case in case()) {
        play(&case, |messages, decision, _| {
            let request = messages.iter().rposition(Message::is_user_turn);
            let task = messages.iter().position(Message::is_user_turn).filter(|_| case.policy.fold.pins_task);
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

    /// Promise 4: what goes is covered by the summary that is there, or, where summarizing failed, counted by a marker.
    #[test]
    fn nothing_goes_without_a_summary_of_it(case in case()) {
        play(&case, |messages, decision, memory| {
            let plan = &decision.plan;
            if let Some(folded) = &plan.folded {
                prop_assert!(folded.removed.iter().all(|index| *index < folded.upto));
                let last = messages[..folded.upto].iter().rev().find(|message| !message.role.is_instruction());
                prop_assert_eq!(last.map(|message| message.digest), Some(folded.covers));
                prop_assert!(memory.folds().iter().any(|fold| fold.covers == folded.covers));
            }
            prop_assert!(case.host == Host::Failing || plan.dropped.is_empty(), "dropped without need");
            Ok(())
        })?;
    }

    /// Promise 2: a call and its results go together.
    #[test]
    fn calls_and_their_results_stay_together(case in case()) {
        play(&case, |messages, decision, _| {
            for (index, message) in messages.iter().enumerate() {
                if message.role == Role::Tool {
                    let call = messages[..index].iter().rposition(|message| message.role == Role::Assistant);
                    prop_assert_eq!(stays(decision, index), stays(decision, call.unwrap()), "message {} alone", index);
                }
            }
            Ok(())
        })?;
    }

    /// Promise 6: the figures are right, what is forwarded fits, and nothing is refused while something could be folded.
    #[test]
    fn what_is_forwarded_fits(case in case()) {
        play(&case, |messages, decision, _| {
            let plan = &decision.plan;
            let cost = |index: usize| match messages[index].masked {
                Some(masked) if plan.masked.contains(&index) => masked.0,
                _ => messages[index].tokens.0,
            };
            let left: u64 = (0..messages.len()).filter(|&index| stays(decision, index)).map(cost).sum();
            let extra = plan.folded.as_ref().map_or(0, |_| SUMMARY.0) + if plan.dropped.is_empty() { 0 } else { MARKER.0 };
            prop_assert_eq!(plan.after, Tokens(left + extra + 3));
            let fits = plan.after <= plan.budget.input && plan.budget.input > Tokens::ZERO;
            prop_assert_eq!(plan.verdict == Verdict::Fits, fits);
            prop_assert!(plan.after <= plan.before || !plan.dropped.is_empty(), "it grew");
            if !fits && case.host != Host::Failing {
                prop_assert_eq!(&decision.wanted, &None, "refused while something could be folded");
            }
            Ok(())
        })?;
    }

    /// Promise 8: between two decisions, a request is the one before it plus new messages. Promise 7: a retry is the same.
    #[test]
    fn decisions_are_repeated(case in case()) {
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

    /// A summary reaches as far as the policy lets it, and no further.
    #[test]
    fn what_is_kept_is_kept(case in case()) {
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

/// A conversation of a user and an assistant, ten tokens a message, in a budget of this many.
fn chat(turns: usize, budget: u64, when: Trigger, memory: &Memory) -> Decision {
    let mut script = Vec::new();
    for _ in 0..turns {
        script.extend([(Role::User, Kind::Speech, 10), (Role::Assistant, Kind::Speech, 10)]);
    }
    script.pop();
    let messages = messages(&script);
    let keep = Keep::Turns(NonZeroU32::new(4).unwrap());
    let fold = FoldPolicy { when, keep, ..FoldPolicy::default() };
    let mask = MaskPolicy { keep, pace: Pace::BreakEven };
    let policy = Policy { strategy: ContextStrategy::Summarization, mask, fold, ..Policy::default() };
    let reserve = BudgetPolicy::default();
    let mut budget_of = reserve.budget(Some(Tokens(1_000_000)), None);
    budget_of.input = Tokens(budget);
    let conversation = Conversation {
        messages: &messages,
        fixed: Tokens(0),
        budget: budget_of,
        economy: Economy::WITHOUT_CACHE,
        marker: MARKER,
        pinned: Tokens::ZERO,
    };
    decide(&conversation, memory, &policy, Timestamp(0))
}

#[test]
fn triggers_fire_at_their_edge_and_the_first_is_told() {
    let cause = |turns, budget, when: Trigger| {
        chat(turns, budget, when, &Memory::default()).wanted.map(|job| job.cause.name())
    };
    let ratio = Trigger { budget_ratio: Some(0.70), ..Trigger::default() };
    // Eleven messages of ten tokens are 110 of 158 (69.6 %) or of 157 (70.06 %).
    assert_eq!(cause(6, 158, ratio), None);
    assert_eq!(cause(6, 157, ratio), Some("budget"));
    let turns = Trigger { user_turns: NonZeroU32::new(8), ..Trigger::default() };
    assert_eq!(cause(7, 10_000, turns), None);
    assert_eq!(cause(8, 10_000, turns), Some("turns"));
    let both = Trigger { messages: NonZeroU32::new(11), ..turns };
    assert_eq!(cause(8, 10_000, both), Some("messages"));
    assert_eq!(cause(8, 200, Trigger { budget_ratio: Some(0.5), ..both }), Some("budget"));
}

#[test]
fn what_is_counted_is_counted_since_the_last_summary() {
    let turns = Trigger { user_turns: NonZeroU32::new(8), ..Trigger::default() };
    let job = chat(8, 10_000, turns, &Memory::default()).wanted.unwrap();
    // The last four turns and the open one are kept: four of eight go.
    assert_eq!(job.messages, 0..6);
    let mut memory = Memory::default();
    memory.add_fold(Fold { covers: job.covers, tokens: Tokens(20), seen: job.seen, ..Fold::default() });
    let later = chat(10, 10_000, turns, &memory);
    assert_eq!(later.plan.folded.as_ref().unwrap().removed, [0, 1, 2, 3, 4, 5]);
    assert_eq!((later.wanted, later.plan.after), (None, Tokens(150)));
    // Eight turns after the one that it was made for, whatever it has left raw.
    assert_eq!(chat(15, 10_000, turns, &memory).wanted, None);
    assert!(chat(16, 10_000, turns, &memory).wanted.is_some());
    // The messages that are sent raw are counted as they are, but for what the user has just said.
    let raw = |count| Trigger { messages: NonZeroU32::new(count), ..Trigger::default() };
    assert!(chat(10, 10_000, raw(12), &memory).wanted.is_some());
    assert_eq!(chat(10, 10_000, raw(13), &memory).wanted, None);
}

#[test]
fn a_summary_that_does_not_shrink_is_not_used() {
    let turns = Trigger { user_turns: NonZeroU32::new(8), ..Trigger::default() };
    let job = chat(8, 10_000, turns, &Memory::default()).wanted.unwrap();
    let mut memory = Memory::default();
    memory.add_fold(Fold { covers: job.covers, tokens: Tokens(60), seen: job.seen, ..Fold::default() });
    assert_eq!(chat(9, 10_000, turns, &memory).plan.folded, None);
}

/// The first try had room for everything. The same messages again, for a smaller model, take the summary that was made for them.
#[test]
fn a_retry_that_no_longer_fits_takes_the_summary_that_is_there() {
    let turns = Trigger { user_turns: NonZeroU32::new(100), ..Trigger::default() };
    let mut memory = Memory::default();
    memory.add(chat(10, 10_000, turns, &memory).waypoint.unwrap());
    let tight = chat(10, 150, turns, &memory);
    assert_eq!(tight.plan.verdict, Verdict::OverBudget);
    let job = tight.wanted.unwrap();
    memory.add_fold(Fold { covers: job.covers, tokens: Tokens(20), seen: job.seen, ..Fold::default() });
    let again = chat(10, 150, turns, &memory);
    assert_eq!((again.plan.verdict, again.plan.after), (Verdict::Fits, Tokens(110)));
    // Where it fits as it was, it stays as it was.
    assert_eq!(chat(10, 10_000, turns, &memory).plan.folded, None);
}
