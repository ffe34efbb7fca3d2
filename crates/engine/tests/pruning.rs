//! Pruning: what stays beside a summary that covers it, and in which order the rest goes.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::num::NonZeroU32;
use tidegate_engine::*;

/// One letter a message: `u`ser, `a`ssistant, `c`all with the `t`ools that answer it. A hundred tokens each.
fn messages(script: &str) -> Vec<Message> {
    let one = |(index, letter): (usize, char)| {
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
            joined: letter == 't',
        }
    };
    script.chars().enumerate().map(one).collect()
}

fn keep(turns: u32) -> Keep {
    Keep::Turns(NonZeroU32::new(turns).unwrap())
}

/// Folds at 80 % of the budget and leaves twelve turns alone; prunes at 90 % and leaves two.
fn policy() -> Policy {
    let fold = FoldPolicy {
        when: Trigger { budget_ratio: Some(0.80), ..Trigger::default() },
        keep: keep(12),
        prune_keep: keep(2),
        longest_summary: Tokens(100),
        ..FoldPolicy::default()
    };
    Policy { strategy: Strategy::Summarization, fold, ..Policy::default() }
}

fn decision(messages: &[Message], budget: u64, memory: &Memory) -> Decision {
    let mut figures = BudgetPolicy::default().budget(Some(Tokens(1_000_000)), None);
    figures.input = Tokens(budget);
    let conversation = Conversation {
        messages,
        fixed: Tokens::ZERO,
        budget: figures,
        economy: Economy::WITHOUT_CACHE,
        marker: Tokens(20),
        pinned: Tokens::ZERO,
    };
    decide(&conversation, memory, &policy(), Timestamp(0))
}

const SCRIPT: &str = "uactauacttauauactauau";

/// What is left of the script beside a summary of 50 tokens that rests on `anchors`.
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
fn chatter_of_tools_goes_first_the_oldest_of_it_first_and_only_as_much_as_has_to() {
    // 2,100 tokens are 91 % of 2,300. With the summary they are 2,150, and should be less than 1,840.
    assert_eq!(left(2_300, &[]), "uaauaauauactauau");
    // Less than 1,640 of 2,050: the third call goes as well.
    assert_eq!(left(2_050, &[]), "uaauaauauaauau");
}

#[test]
fn then_what_the_assistant_said_and_never_what_the_user_said() {
    assert_eq!(left(1_500, &[]), "uuauauaauau");
}

#[test]
fn what_the_summary_rests_on_stays() {
    // The first call and its result are an anchor: the other two go for it.
    assert_eq!(left(2_300, &[3]), "uactauaauauaauau");
    assert_eq!(left(1_500, &[3, 12]), "uctuuauauau");
}

#[test]
fn unless_the_request_would_not_fit_otherwise() {
    assert_eq!(left(700, &[3, 12]), "aauau");
}

#[test]
fn nothing_is_pruned_where_folding_is_enough() {
    let long = format!("{}{SCRIPT}", "ua".repeat(40));
    let messages = messages(&long);
    let job = decision(&messages, 10_300, &Memory::default()).wanted.unwrap();
    assert_eq!((job.cause, job.spared), (Cause::Prune, None));
    // Twelve turns stay, as at any other fold.
    let kept = &long[job.messages.end..];
    assert_eq!(kept.matches(['a', 'c']).count(), 12, "{kept}");
}

/// Fourteen turns of 2,700 tokens. Folding alone takes two of them and leaves 2,350 with its summary, which is more than 80 % of either
/// budget.
#[test]
fn nothing_is_pruned_below_the_mark() {
    let messages = messages(&format!("{}{SCRIPT}", "ua".repeat(3)));
    // 2,610 are 90 %: with a summary of any length it is less.
    let job = decision(&messages, 2_900, &Memory::default()).wanted.unwrap();
    assert_eq!((job.cause, job.messages.end, job.spared), (Cause::Prune, 4, None));
    assert!(!job.prunes(&messages, 0));
    // 2,385 are 90 %: with one of 50 tokens it is less, with one of 100 it is not.
    let job = decision(&messages, 2_650, &Memory::default()).wanted.unwrap();
    let all: Vec<usize> = (4..job.messages.end).collect();
    assert_eq!(job.kept(&messages, &[], Tokens(50)), all);
    assert!(!job.prunes(&messages, all.len()));
    let fewer = job.kept(&messages, &[], Tokens(100));
    assert!(fewer.len() < all.len() && job.prunes(&messages, fewer.len()));
}

/// What prune.keep leaves is too much by itself, so that a second summary would have to follow the first.
#[test]
fn a_request_that_would_not_fit_is_summarized_once() {
    let messages = messages(&"ua".repeat(30));
    let job = decision(&messages, 300, &Memory::default()).wanted.unwrap();
    // Everything but the last answer, which nothing came after.
    assert_eq!((job.cause, job.messages.end), (Cause::Budget, 59));
}
