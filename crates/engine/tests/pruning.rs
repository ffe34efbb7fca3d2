//! Pruning: which covered messages stay next to a summary, and in which order the others go.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::num::NonZeroU32;
use tidegate_engine::*;

/// One letter per message: `u`ser, `a`ssistant, `c`all and the `t`ool results that answer it. A hundred tokens each.
fn messages(script: &str) -> Vec<Message> {
    let message = |(index, letter): (usize, char)| {
        let role = match letter {
            'u' => Role::User,
            't' => Role::Tool,
            _ => Role::Assistant,
        };
        let digest = Digest([u8::try_from(index + 1).unwrap(); 32]);
        let tokens = Tokens(100);
        Message {
            role,
            kind: Kind::of(role),
            digest,
            tokens,
            size: tokens,
            masked: None,
            trimmed: None,
            joined: letter == 't',
        }
    };
    script.chars().enumerate().map(message).collect()
}

fn keep(turns: u32) -> Keep {
    Keep::Turns(NonZeroU32::new(turns).unwrap())
}

/// Folds at 80 % of the budget and keeps twelve turns; prunes at 90 % and keeps two.
fn policy() -> Policy {
    let fold = FoldPolicy {
        when: Trigger { budget_ratio: Some(0.80), ..Trigger::default() },
        keep: keep(12),
        prune_keep: keep(2),
        max_summary: SummaryLimit::Tokens(Tokens(100)),
        ..FoldPolicy::default()
    };
    Policy { strategy: Strategy::Summarization, fold, ..Policy::default() }
}

fn decision(messages: &[Message], budget: u64, memory: &Memory) -> Decision {
    let mut figures = BudgetPolicy::default().budget(&Capacity::known(Tokens(1_000_000)));
    figures.input = Some(Tokens(budget));
    let conversation = Conversation {
        messages,
        cache: CacheKey::default(),
        fixed: Tokens::ZERO,
        budget: figures,
        economy: CachePricing::WITHOUT_CACHE,
        marker: Tokens(20),
        pinned: Tokens::ZERO,
    };
    decide(&conversation, memory, &policy(), Timestamp(0))
}

const SCRIPT: &str = "uactauacttauauactauau";

/// The part of the script that stays next to a summary of 50 tokens that rests on `anchors`.
fn left(budget: u64, anchors: &[usize]) -> String {
    let messages = messages(SCRIPT);
    let job = decision(&messages, budget, &Memory::default()).wanted.unwrap();
    let kept = job.kept(&messages, anchors, Tokens(50));
    let mut memory = Memory::default();
    memory.add_fold(Fold {
        covers: job.covers,
        tokens: Tokens(50),
        seen: job.seen,
        kept: FoldJob::places(&messages, &kept),
        ..Fold::default()
    });
    let after = decision(&messages, budget, &memory);
    assert_eq!(after.plan.verdict, Verdict::Fits);
    assert!(after.plan.after <= Tokens(budget));
    let removed = after.plan.folded.unwrap().removed;
    SCRIPT.char_indices().filter(|(index, _)| !removed.contains(index)).map(|(_, letter)| letter).collect()
}

#[test]
fn the_oldest_tool_chatter_goes_first_and_only_as_much_as_necessary() {
    // 2,100 tokens are 91 % of 2,300. With the summary they are 2,150, and the target is below 1,840.
    assert_eq!(left(2_300, &[]), "uaauaauauactauau");
    // The target is below 1,640 of 2,050: the third call goes as well.
    assert_eq!(left(2_050, &[]), "uaauaauauaauau");
}

#[test]
fn assistant_text_goes_next_and_user_messages_stay() {
    assert_eq!(left(1_500, &[]), "uuauauaauau");
}

#[test]
fn anchors_stay() {
    // The first call is an anchor, so the other two go instead.
    assert_eq!(left(2_300, &[3]), "uactauaauauaauau");
    assert_eq!(left(1_500, &[3, 12]), "uctuuauauau");
}

#[test]
fn anchors_and_user_messages_go_if_the_request_would_not_fit_otherwise() {
    assert_eq!(left(700, &[3, 12]), "aauau");
}

#[test]
fn nothing_is_pruned_if_folding_is_enough() {
    let long = format!("{}{SCRIPT}", "ua".repeat(40));
    let messages = messages(&long);
    let job = decision(&messages, 10_300, &Memory::default()).wanted.unwrap();
    assert_eq!((job.cause, job.spared), (Cause::Prune, None));
    // Twelve turns stay, as with any other fold.
    let kept = &long[job.messages.end..];
    assert_eq!(kept.matches(['a', 'c']).count(), 12, "{kept}");
}

/// 2,700 tokens in fourteen turns. Folding takes two turns and leaves 2,350 tokens with the summary, more than 80 % of either
/// budget.
#[test]
fn nothing_is_pruned_below_the_threshold() {
    let messages = messages(&format!("{}{SCRIPT}", "ua".repeat(3)));
    // The threshold is 2,610. The request is below it with a summary of any length.
    let job = decision(&messages, 2_900, &Memory::default()).wanted.unwrap();
    assert_eq!((job.cause, job.messages.end, job.spared), (Cause::Prune, 4, None));
    assert!(!job.prunes(&messages, 0));
    // The threshold is 2,385. The request is below it with a summary of 50 tokens, but not with one of 100.
    let job = decision(&messages, 2_650, &Memory::default()).wanted.unwrap();
    let all: Vec<usize> = (4..job.messages.end).collect();
    assert_eq!(job.kept(&messages, &[], Tokens(50)), all);
    assert!(!job.prunes(&messages, all.len()));
    let fewer = job.kept(&messages, &[], Tokens(100));
    assert!(fewer.len() < all.len() && job.prunes(&messages, fewer.len()));
}

/// What `prune.keep` protects is too long by itself. Folding only the rest would require a second summary.
#[test]
fn a_request_that_does_not_fit_is_summarized_once() {
    let messages = messages(&"ua".repeat(30));
    let job = decision(&messages, 300, &Memory::default()).wanted.unwrap();
    // Everything but the last answer, which is the unresolved tail.
    assert_eq!((job.cause, job.messages.end), (Cause::Budget, 59));
}
