//! Folding by example: when triggers fire, and which summary a request uses.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::num::NonZeroU32;
use tidegate_engine::*;

/// Decides for a chat of ten tokens per message, whose last turn is open. The last four turns are kept.
fn chat(turns: usize, budget: u64, when: Trigger, memory: &Memory) -> Decision {
    let message = |index: usize| {
        let role = if index.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let mut digest = Digest::default();
        digest.0[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        let tokens = Tokens(10);
        Message {
            role,
            kind: Kind::of(role),
            digest,
            tokens,
            size: tokens,
            masked: None,
            trimmed: None,
            joined: false,
        }
    };
    let messages: Vec<Message> = (0..2 * turns - 1).map(message).collect();
    let keep = Keep::Turns(NonZeroU32::new(4).unwrap());
    let fold = FoldPolicy { when, keep, ..FoldPolicy::default() };
    let policy = Policy { strategy: Strategy::Summarization, fold, ..Policy::default() };
    let mut figures = BudgetPolicy::default().budget(&Capacity::known(Tokens(1_000_000)));
    figures.input = Some(Tokens(budget));
    let conversation = Conversation {
        messages: &messages,
        cache: CacheKey::default(),
        fixed: Tokens::ZERO,
        budget: figures,
        economy: CachePricing::WITHOUT_CACHE,
        marker: Tokens(15),
        pinned: Tokens::ZERO,
    };
    decide(&conversation, memory, &policy, Timestamp(0))
}

/// Makes the summary that a job asks for.
fn summary(job: &FoldJob, tokens: u64) -> Fold {
    Fold { covers: job.covers, tokens: Tokens(tokens), seen: job.seen, ..Fold::default() }
}

fn user_turns(count: u32) -> Trigger {
    Trigger { user_turns: NonZeroU32::new(count), ..Trigger::default() }
}

#[test]
fn triggers_fire_at_their_limit_and_the_first_condition_is_the_cause() {
    let cause = |turns, budget, when: Trigger| {
        chat(turns, budget, when, &Memory::default()).wanted.map(|job| job.cause.name())
    };
    let ratio = Trigger { budget_ratio: Some(0.70), ..Trigger::default() };
    // Eleven messages of ten tokens are 69.6 % of 158 tokens and 70.06 % of 157.
    assert_eq!(cause(6, 158, ratio), None);
    assert_eq!(cause(6, 157, ratio), Some("budget"));
    let turns = user_turns(8);
    assert_eq!(cause(7, 10_000, turns), None);
    assert_eq!(cause(8, 10_000, turns), Some("turns"));
    let both = Trigger { messages: NonZeroU32::new(11), ..turns };
    assert_eq!(cause(8, 10_000, both), Some("messages"));
    assert_eq!(cause(8, 200, Trigger { budget_ratio: Some(0.5), ..both }), Some("budget"));
}

#[test]
fn turns_and_messages_are_counted_from_the_last_summary() {
    let turns = user_turns(8);
    let job = chat(8, 10_000, turns, &Memory::default()).wanted.unwrap();
    // The last four turns and the open one are kept, so three turns are folded.
    assert_eq!(job.messages, 0..6);
    let mut memory = Memory::default();
    memory.add_fold(summary(&job, 20));
    let later = chat(10, 10_000, turns, &memory);
    assert_eq!(later.plan.folded.as_ref().unwrap().removed, [0, 1, 2, 3, 4, 5]);
    assert_eq!((later.wanted, later.plan.after), (None, Tokens(150)));
    // Turns count from the request that the summary was made for, not from its last covered message.
    assert_eq!(chat(15, 10_000, turns, &memory).wanted, None);
    assert!(chat(16, 10_000, turns, &memory).wanted.is_some());
    // Messages count from the last covered one, up to the open turn.
    let raw = |count| Trigger { messages: NonZeroU32::new(count), ..Trigger::default() };
    assert!(chat(10, 10_000, raw(12), &memory).wanted.is_some());
    assert_eq!(chat(10, 10_000, raw(13), &memory).wanted, None);
}

#[test]
fn a_summary_that_does_not_shrink_the_request_is_not_used() {
    let turns = user_turns(8);
    let job = chat(8, 10_000, turns, &Memory::default()).wanted.unwrap();
    let mut memory = Memory::default();
    memory.add_fold(summary(&job, 60));
    assert_eq!(chat(9, 10_000, turns, &memory).plan.folded, None);
}

/// The first attempt had room for everything; the retry is for a smaller model.
#[test]
fn a_retry_that_no_longer_fits_uses_the_new_summary() {
    let turns = user_turns(100);
    let mut memory = Memory::default();
    memory.add(chat(10, 10_000, turns, &memory).waypoint.unwrap());
    let tight = chat(10, 150, turns, &memory);
    assert_eq!(tight.plan.verdict, Verdict::OverBudget);
    memory.add_fold(summary(&tight.wanted.unwrap(), 20));
    let again = chat(10, 150, turns, &memory);
    assert_eq!((again.plan.verdict, again.plan.after), (Verdict::Fits, Tokens(110)));
    // A retry that still fits repeats the first attempt.
    assert_eq!(chat(10, 10_000, turns, &memory).plan.folded, None);
}
