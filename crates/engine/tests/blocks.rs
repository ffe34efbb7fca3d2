//! Properties of blocks with limits, over generated conversations. A simulated host makes every summary that the engine wants.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use proptest::prelude::*;
use tidegate_engine::{
    BlockFigures, BlockPolicy, BudgetPolicy, CacheKey, CachePricing, Capacity, Cause, Conversation, Decision,
    Digest, Fold, FoldPolicy, Kind, Memory, Message, Plan, Policy, Role, Strategy as ContextStrategy,
    Timestamp, Tokens, Trigger, decide, truncate, unresolved_from,
};

#[derive(Clone, Debug)]
struct Case {
    script: Vec<(Role, u64)>,
    blocks: BlockPolicy,
    /// The length of every summary, in words.
    summary: u64,
}

fn script() -> impl Strategy<Value = Vec<(Role, u64)>> {
    let turn =
        (prop::option::weighted(0.6, 1u64..90), 1u64..90, prop::collection::vec(1u64..90, 0..4), 0u8..12);
    prop::collection::vec(turn, 1..25).prop_map(|turns| {
        let mut script = vec![(Role::System, 20), (Role::User, 10)];
        for (user, assistant, results, odd) in turns {
            script.extend(user.map(|size| (Role::User, size)));
            if odd == 0 {
                script.push((Role::Developer, 5));
            }
            script.push((Role::Assistant, assistant));
            script.extend(results.into_iter().map(|size| (Role::Tool, size)));
        }
        script
    })
}

fn case() -> impl Strategy<Value = Case> {
    let limits = (prop::option::weighted(0.8, 20u64..1_200), prop::option::weighted(0.6, 20u64..1_500));
    (script(), limits, 1usize..6, 0u64..120, 1u64..120).prop_map(
        |(script, (history, total), min_recent, memory, summary)| {
            let total_max = total.map(|total| Tokens(total.max(history.unwrap_or(0))));
            let blocks = BlockPolicy {
                history_max: history.map(Tokens),
                total_max,
                min_recent,
                memory: Tokens(memory),
            };
            Case { script, blocks, summary }
        },
    )
}

fn messages(script: &[(Role, u64)]) -> Vec<Message> {
    let mut digest = Digest::default();
    let message = |(index, (role, size)): (usize, &(Role, u64))| {
        if !role.is_instruction() {
            digest.0[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        }
        let (kind, size, joined) = (Kind::of(*role), Tokens(*size), *role == Role::Tool);
        // Two tokens per word, so that a test fails if the engine confuses the two.
        Message {
            role: *role,
            kind,
            digest,
            tokens: Tokens(size.0 * 2),
            size,
            masked: None,
            trimmed: None,
            joined,
        }
    };
    script.iter().enumerate().map(message).collect()
}

fn conversation(messages: &[Message], input: u64) -> Conversation<'_> {
    let mut budget = BudgetPolicy::default().budget(&Capacity::known(Tokens(2_000_000)));
    budget.input = Some(Tokens(input));
    let economy = CachePricing { write: 1.0, cached: 0.1, cache_life: 300_000 };
    Conversation {
        messages,
        cache: CacheKey::default(),
        fixed: Tokens(3),
        budget,
        economy,
        marker: Tokens(15),
        pinned: Tokens::ZERO,
    }
}

fn policy(blocks: BlockPolicy) -> Policy {
    let when = Trigger { budget_ratio: Some(1.0), ..Trigger::default() };
    let fold = FoldPolicy { when, ..FoldPolicy::default() };
    Policy { strategy: ContextStrategy::Summarization, fold, blocks, ..Policy::default() }
}

const ROOMY: u64 = 1_000_000;

/// Serves one request, and adds the summaries that it takes to `memory`.
fn serve(case: &Case, messages: &[Message], memory: &mut Memory, input: u64) -> Decision {
    let (conversation, policy) = (conversation(messages, input), policy(case.blocks));
    let mut decision = decide(&conversation, memory, &policy, Timestamp(0));
    for _ in 0..8 {
        let Some(job) = decision.wanted.clone() else { break };
        assert!(job.is_urgent(), "a block limit cannot wait for the next request");
        let (covers, keeps_request, seen) = (job.covers, job.keeps_request, job.seen);
        let (tokens, size) = (Tokens(case.summary * 2), Tokens(case.summary));
        memory.add_fold(Fold {
            covers,
            tokens,
            size,
            keeps_request,
            seen,
            kept: Vec::new(),
            ..Fold::default()
        });
        decision = decide(&conversation, memory, &policy, Timestamp(0));
    }
    assert_eq!(decision.wanted, None, "no further summary is wanted once the limits hold");
    decision
}

/// The blocks of a plan, computed independently of the engine.
struct Blocks<'a> {
    messages: &'a [Message],
    request: Option<usize>,
    open: usize,
    removed: Vec<usize>,
    from: usize,
    summary: u64,
}

impl Blocks<'_> {
    fn of<'a>(messages: &'a [Message], plan: &Plan) -> Blocks<'a> {
        let is_open = |message: &Message| message.is_user_turn() || message.role.is_instruction();
        let folded = plan.folded.as_ref();
        Blocks {
            messages,
            request: messages.iter().rposition(Message::is_user_turn),
            open: messages.iter().rposition(|message| !is_open(message)).map_or(0, |last| last + 1),
            removed: folded.map_or_else(Vec::new, |folded| folded.removed.clone()),
            from: folded.map_or(0, |folded| folded.upto),
            summary: folded.map_or(0, |folded| folded.size.0),
        }
    }

    /// The indices of the whole history: everything before the last user turn.
    fn talk(&self) -> impl DoubleEndedIterator<Item = usize> {
        let is_talk =
            |index: &usize| !self.messages[*index].role.is_instruction() && Some(*index) != self.request;
        (0..self.open).filter(is_talk)
    }

    /// The indices of the history that stays.
    fn history(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.talk().filter(|index| !self.removed.contains(index))
    }

    fn size(&self, indices: impl Iterator<Item = usize>) -> u64 {
        indices.map(|index| self.messages[index].size.0).sum()
    }

    fn instructions(&self) -> u64 {
        self.messages
            .iter()
            .filter(|message| message.role.is_instruction())
            .map(|message| message.size.0)
            .sum()
    }

    /// The indices at which the conversation can be cut.
    fn cuts(&self) -> impl Iterator<Item = usize> {
        (1..=unresolved_from(self.messages)).filter(|&cut| !self.messages[cut].joined)
    }

    fn room(&self, policy: &BlockPolicy) -> u64 {
        let fixed = self.instructions() + policy.memory.0 + self.summary;
        let left = policy.total_max.map(|total| total.0.saturating_sub(fixed));
        policy.history_max.map(|history| history.0).into_iter().chain(left).min().unwrap_or(u64::MAX)
    }
}

/// The end of each request: before every assistant message, and at the end.
fn ends(script: &[(Role, u64)]) -> Vec<usize> {
    let speaks = |index: &usize| script.get(*index).is_none_or(|(role, _)| *role == Role::Assistant);
    (2..=script.len()).filter(speaks).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_history_is_within_its_limits_unless_min_recent_forbids_it(case in case()) {
        let all = messages(&case.script);
        let mut memory = Memory::default();
        for end in ends(&case.script) {
            let decision = serve(&case, &all[..end], &mut memory, ROOMY);
            let blocks = Blocks::of(&all[..end], &decision.plan);
            if blocks.size(blocks.history()) > blocks.room(&case.blocks) {
                for cut in blocks.cuts().filter(|&cut| blocks.history().any(|index| index < cut && index >= blocks.from)) {
                    let left = blocks.history().filter(|&index| index >= cut).count();
                    prop_assert!(left < case.blocks.min_recent, "could have been cut at {cut} with {left} messages left");
                }
            }
            let newest: Vec<usize> = blocks.talk().rev().take(case.blocks.min_recent).collect();
            prop_assert!(blocks.history().rev().take(newest.len()).eq(newest));
            memory.add(decision.waypoint.unwrap());
        }
    }

    #[test]
    fn no_message_goes_that_would_have_fitted(case in case()) {
        let all = messages(&case.script);
        let blocks_of_history = BlockPolicy { total_max: None, ..case.blocks };
        let case = Case { blocks: blocks_of_history, ..case };
        let plan = serve(&case, &all, &mut Memory::default(), ROOMY).plan;
        let blocks = Blocks::of(&all, &plan);
        for cut in blocks.cuts().filter(|&cut| blocks.removed.iter().any(|&index| index >= cut)) {
            prop_assert!(blocks.size(blocks.talk().filter(|&index| index >= cut)) > blocks.room(&case.blocks), "{cut}");
        }
    }

    #[test]
    fn nothing_sacred_goes_and_calls_keep_their_results(case in case()) {
        let all = messages(&case.script);
        let mut memory = Memory::default();
        for end in ends(&case.script) {
            let messages = &all[..end];
            let decision = serve(&case, messages, &mut memory, ROOMY);
            let blocks = Blocks::of(messages, &decision.plan);
            prop_assert!(decision.plan.dropped.is_empty());
            prop_assert!(blocks.removed.is_sorted());
            for &index in &blocks.removed {
                prop_assert!(index < unresolved_from(messages) && index < blocks.from, "message {index} went without being covered");
                prop_assert!(!messages[index].role.is_instruction() && Some(index) != blocks.request);
            }
            for index in (0..end).filter(|&index| messages[index].role == Role::Tool) {
                let call = messages[..index].iter().rposition(|message| message.role == Role::Assistant).unwrap();
                prop_assert_eq!(blocks.removed.contains(&index), blocks.removed.contains(&call));
            }
            memory.add(decision.waypoint.unwrap());
        }
    }

    #[test]
    fn the_total_takes_from_the_history_then_the_summary_then_the_notes(case in case()) {
        let all = messages(&case.script);
        let mut memory = Memory::default();
        for end in ends(&case.script) {
            let plan = serve(&case, &all[..end], &mut memory, ROOMY).plan;
            let blocks = Blocks::of(&all[..end], &plan);
            let Some(figures) = plan.blocks else {
                prop_assert!(case.blocks.history_max.is_none() && case.blocks.total_max.is_none());
                continue;
            };
            let BlockFigures { memory: notes, summary, history, history_before, summary_max, memory_max } = figures;
            prop_assert_eq!((notes, summary.0), (case.blocks.memory, blocks.summary));
            prop_assert_eq!(history.0, blocks.size(blocks.history()));
            prop_assert_eq!(history_before.0, blocks.size(blocks.talk()));
            let Some(total) = case.blocks.total_max else {
                prop_assert_eq!((summary_max, memory_max), (summary, notes));
                continue;
            };
            let used = blocks.instructions() + history.0 + summary_max.0 + memory_max.0;
            if used > total.0 {
                prop_assert_eq!((summary_max, memory_max), (Tokens::ZERO, Tokens::ZERO));
            } else if (summary_max, memory_max) != (summary, notes) {
                prop_assert_eq!(used, total.0, "more was taken than necessary");
            }
            prop_assert!(memory_max == notes || summary_max == Tokens::ZERO);
        }
    }

    #[test]
    fn the_same_state_and_request_give_the_same_decision(case in case()) {
        let all = messages(&case.script);
        let mut memory = Memory::default();
        for end in ends(&case.script) {
            let decision = serve(&case, &all[..end], &mut memory, ROOMY);
            let (conversation, policy) = (conversation(&all[..end], ROOMY), policy(case.blocks));
            prop_assert_eq!(&decide(&conversation, &memory, &policy, Timestamp(0)), &decision);
            memory.add(decision.waypoint.unwrap());
            let retry = decide(&conversation, &memory, &policy, Timestamp(0));
            prop_assert_eq!(retry.plan, decision.plan, "a retry");
        }
    }
}

/// One letter per message: `u`ser, `a`ssistant, `t`ool. Ten words each.
fn talk(script: &str) -> Vec<Message> {
    let role = |letter| match letter {
        'u' => Role::User,
        'a' => Role::Assistant,
        _ => Role::Tool,
    };
    messages(&script.chars().map(|letter| (role(letter), 10)).collect::<Vec<_>>())
}

fn history_of(max: u64, min_recent: usize) -> Case {
    let blocks = BlockPolicy { history_max: Some(Tokens(max)), min_recent, ..BlockPolicy::default() };
    Case { script: Vec::new(), blocks, summary: 5 }
}

/// Returns the index at which the history begins.
fn cut(messages: &[Message], case: &Case, input: u64) -> usize {
    serve(case, messages, &mut Memory::default(), input).plan.folded.map_or(0, |folded| folded.upto)
}

#[test]
fn a_history_of_exactly_its_limit_stays_whole() {
    let messages = talk("uauauau");
    assert_eq!(cut(&messages, &history_of(60, 2), ROOMY), 0);
    assert_eq!(cut(&messages, &history_of(59, 2), ROOMY), 1);
    assert_eq!(cut(&messages, &history_of(50, 2), ROOMY), 1);
    assert_eq!(cut(&messages, &history_of(49, 2), ROOMY), 2);
    assert_eq!(cut(&messages, &history_of(1, 2), ROOMY), 4);
    assert_eq!(cut(&messages, &history_of(1, 3), ROOMY), 3);
}

#[test]
fn a_call_goes_with_its_results_unless_min_recent_protects_one_of_them() {
    let messages = talk("uatttau");
    assert_eq!(cut(&messages, &history_of(40, 1), ROOMY), 5);
    assert_eq!(cut(&messages, &history_of(40, 2), ROOMY), 1);
    assert_eq!(cut(&messages, &history_of(1, 4), ROOMY), 1);
}

/// The block limit decides how much stays, not `fold.keep`.
#[test]
fn a_request_over_budget_is_cut_to_its_block_first() {
    let messages = talk(&("ua".repeat(40) + "u"));
    assert_eq!(cut(&messages, &history_of(300, 2), 1_000), 50);
    assert!(cut(&messages, &history_of(300, 2), 500) > 50);
}

/// The summary is longer than the message that it replaces, but the limit is on the history alone.
#[test]
fn a_limit_holds_even_if_folding_saves_nothing() {
    let case = Case { summary: 50, ..history_of(59, 2) };
    let plan = serve(&case, &talk("uauauau"), &mut Memory::default(), ROOMY).plan;
    assert_eq!(plan.folded.map(|folded| folded.removed), Some(vec![0]));
}

#[test]
fn truncation_cuts_to_the_limit() {
    let messages = talk("uauauauau");
    let case = history_of(40, 2);
    let (conversation, policy) = (conversation(&messages, ROOMY), policy(case.blocks));
    let decision = truncate(&conversation, &Memory::default(), &policy, Timestamp(0));
    // The task stays.
    assert_eq!(decision.plan.dropped, [1, 2, 3, 4]);
    assert_eq!(decision.plan.blocks.unwrap().history, Tokens(40));
    assert_eq!(decision.wanted.map(|job| job.cause), Some(Cause::Blocks));
}

#[test]
fn a_retry_is_cut_to_a_limit_that_has_become_smaller() {
    let messages = talk("uauauau");
    let mut memory = Memory::default();
    let whole = serve(&history_of(60, 2), &messages, &mut memory, ROOMY);
    assert_eq!(whole.plan.folded, None);
    memory.add(whole.waypoint.unwrap());
    let cut = serve(&history_of(40, 2), &messages, &mut memory, ROOMY);
    assert_eq!(cut.plan.folded.map(|folded| folded.removed), Some(vec![0, 1]));
}
