//! The billed input cost of folding at the trigger and at break-even, relative to never folding.
//!
//! Each run is a chat: user messages of 60 tokens, log-normal answers with a mean of 300 tokens, summaries of 400 tokens, folded at 8
//! user turns with the last 4 turns kept. The provider's cache holds the previous request, so the common prefix is a hit.
//! `cargo test -p tidegate-engine --test fold_pace -- --nocapture` prints the table in the README.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::fmt::Write;
use tidegate_engine::*;

const RUNS: u64 = 50;
const SYSTEM: u64 = 1_000;
const SUMMARY: Tokens = Tokens(400);

const REGIMES: [(&str, f64, f64); 4] = [
    ("cached ×1", 1.0, 1.0),
    ("cached ×0.5", 1.0, 0.5),
    ("cached ×0.1", 1.0, 0.1),
    ("cached ×0.1, write ×1.25", 1.25, 0.1),
];

/// A chat with this number of turns, the same for every run of the test.
fn chat(seed: u64, turns: usize) -> Vec<Message> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut messages = Vec::new();
    let mut add = |role, tokens| {
        let mut digest = Digest::default();
        digest.0[..8].copy_from_slice(&(messages.len() as u64 + 1).to_le_bytes());
        let tokens = Tokens(tokens);
        messages.push(Message {
            role,
            kind: Kind::of(role),
            digest,
            tokens,
            size: tokens,
            masked: None,
            trimmed: None,
            joined: false,
        });
    };
    add(Role::System, SYSTEM);
    for _ in 0..turns {
        add(Role::User, 60);
        add(Role::Assistant, (300.0 * (random.normal() - 0.5).exp()).ceil() as u64);
    }
    messages
}

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal value, by the Box-Muller transform.
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform().max(1e-12), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// The billed cost of a run. A summary is ready for the request after the one that wanted it. `None` never folds.
fn billed(messages: &[Message], pace: Option<FoldPace>, write: f64, cached: f64) -> f64 {
    let some = |count| std::num::NonZeroU32::new(count).unwrap();
    let when = Trigger { user_turns: Some(some(8)), ..Trigger::default() };
    let fold = FoldPolicy { when, pace: pace.unwrap_or(FoldPace::AtTrigger), ..FoldPolicy::default() };
    let strategy = if pace.is_some() { Strategy::Summarization } else { Strategy::Passthrough };
    let policy = Policy { strategy, fold, ..Policy::default() };
    let budget = BudgetPolicy::default().budget(&Capacity::known(Tokens(100_000_000)));
    let economy = CachePricing { write, cached, cache_life: 300_000 };
    let (mut memory, mut before, mut cost) = (Memory::default(), Vec::new(), 0.0);
    for end in (2..=messages.len()).step_by(2) {
        let messages = &messages[..end];
        let fixed = Tokens::ZERO;
        let conversation = Conversation {
            messages,
            cache: CacheKey::default(),
            fixed,
            budget,
            economy,
            marker: fixed,
            pinned: fixed,
        };
        let decision = decide(&conversation, &memory, &policy, Timestamp(end as u64 * 1_000));
        let sent = sent(messages, &decision.plan);
        let same: u64 =
            sent.iter().zip(&before).take_while(|(a, b)| a == b).map(|((_, tokens), _)| tokens).sum();
        let all: u64 = sent.iter().map(|(_, tokens)| tokens).sum();
        cost += same as f64 * cached + (all - same) as f64 * write;
        before = sent;
        if let Some(waypoint) = decision.waypoint {
            memory.add(waypoint);
        }
        if let Some(job) = decision.wanted {
            let (covers, seen) = (job.covers, job.seen);
            memory.add_fold(Fold { covers, tokens: SUMMARY, seen, ..Fold::default() });
        }
    }
    cost
}

/// The forwarded request: an identity and the tokens of each message.
fn sent(messages: &[Message], plan: &Plan) -> Vec<(Digest, u64)> {
    let removed = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
    let summary = plan.folded.as_ref().map(|folded| {
        let mut digest = folded.covers;
        digest.0[31] = 1;
        (digest, folded.tokens.0)
    });
    let rest = (1..messages.len()).filter(|index| !removed.contains(index));
    let rest = rest.map(|index| (messages[index].digest, messages[index].tokens.0));
    std::iter::once((messages[0].digest, SYSTEM)).chain(summary).chain(rest).collect()
}

#[test]
fn break_even_folding_is_never_much_more_expensive_than_not_folding() {
    let mut table =
        String::from("| price | turns | at trigger / raw | break-even / raw |\n| --- | --- | --- | --- |\n");
    for (name, write, cached) in REGIMES {
        for turns in [10, 20, 40, 60, 150] {
            let total = |pace: Option<FoldPace>| -> f64 {
                (0..RUNS).map(|seed| billed(&chat(seed + 1, turns), pace, write, cached)).sum()
            };
            let raw = total(None);
            let at_trigger = total(Some(FoldPace::AtTrigger)) / raw;
            let break_even = total(Some(FoldPace::BreakEven)) / raw;
            writeln!(table, "| {name} | {turns} | {at_trigger:.2} | {break_even:.2} |").unwrap();
            assert!(break_even <= 1.06, "{name}, {turns} turns: {break_even}");
            assert!(
                break_even <= at_trigger * 1.03,
                "{name}, {turns} turns: {break_even} against {at_trigger}"
            );
        }
    }
    println!("{table}");
}
