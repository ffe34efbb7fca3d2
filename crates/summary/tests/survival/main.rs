//! What people said in the middle of long conversations is still there after folding them without a model.
//!
//! `cargo test -p tidegate-summary --test survival -- --nocapture` prints the shares.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that reports a measurement")]

mod conversation;
mod phrasebook;
mod second_book;

use conversation::{Conversation, Planted, TURNS};
use phrasebook::{Book, FIRST};
use second_book::SECOND;
use tidegate_summary::{Source, Summary, cap, extract, render};

const CONVERSATIONS: u64 = 20;
const MAX_TOKENS: u32 = 1_500;

#[test]
fn planted_facts_survive_one_fold() {
    measure("one fold", &FIRST, TURNS);
}

#[test]
fn planted_facts_survive_three_folds() {
    measure("three folds", &FIRST, TURNS / 3);
}

#[test]
fn facts_of_the_first_pass_are_still_there_after_the_third() {
    let early = |planted: &Planted| planted.turn < TURNS / 3;
    let (kept, all) = count(&FIRST, TURNS / 3, early);
    println!("facts of the first of three folds: {kept} of {all} survive ({} %)", kept * 100 / all);
    assert!(kept * 100 >= all * 80);
}

/// The second book shares no phrase with the first. Its facts have to survive as well; of its changed
/// decisions, a few are put in ways that only a reader of English understands.
#[test]
fn people_who_talk_otherwise_are_understood_too() {
    for (name, turns_at_once) in [("one fold", TURNS), ("three folds", TURNS / 3)] {
        let (kept, all) = count(&SECOND, turns_at_once, |_| true);
        println!("second book, {name}: {kept} of {all} planted facts survive ({} %)", kept * 100 / all);
        assert!(kept * 100 >= all * 80);
        let wrong: Vec<String> =
            (1..=CONVERSATIONS).filter_map(|seed| wrong_decision(&SECOND, seed, turns_at_once)).collect();
        println!("second book, {name}: {} of {CONVERSATIONS} changed decisions are wrong", wrong.len());
        wrong.iter().for_each(|wrong| println!("  {wrong}"));
        assert!(wrong.len() as u64 * 10 <= CONVERSATIONS * 2);
    }
}

fn measure(name: &str, book: &'static Book, turns_at_once: usize) {
    let (kept, all) = count(book, turns_at_once, |_| true);
    println!("{name}: {kept} of {all} planted facts survive ({} %)", kept * 100 / all);
    assert!(kept * 100 >= all * 95);
    let wrong: Vec<String> =
        (1..=CONVERSATIONS).filter_map(|seed| wrong_decision(book, seed, turns_at_once)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The later decision on the matter that was settled twice, if the summary does not show it.
fn wrong_decision(book: &'static Book, seed: u64, turns_at_once: usize) -> Option<String> {
    let conversation = Conversation::generate(book, seed);
    let text = fold(&conversation, turns_at_once);
    let changed = &conversation.changed;
    let is_lost = !shows(&text, &changed.new, changed.matter);
    is_lost.then(|| format!("conversation {seed} lost `{}`, which was `{}`", changed.new, changed.old))
}

fn count(book: &'static Book, turns_at_once: usize, wanted: impl Fn(&Planted) -> bool) -> (usize, usize) {
    let (mut kept, mut all) = (0, 0);
    for seed in 1..=CONVERSATIONS {
        let conversation = Conversation::generate(book, seed);
        let text = fold(&conversation, turns_at_once);
        for planted in conversation.planted.iter().filter(|planted| wanted(planted)) {
            all += 1;
            if shows(&text, &planted.value, &planted.beside) {
                kept += 1;
            } else {
                println!(
                    "conversation {seed} lost `{}` beside `{}` of turn {}",
                    planted.value, planted.beside, planted.turn
                );
            }
        }
    }
    (kept, all)
}

fn fold(conversation: &Conversation, turns_at_once: usize) -> String {
    let fits = |text: &str| text.chars().count() / 4 < MAX_TOKENS as usize;
    let mut summary: Option<Summary> = None;
    let mut covered = 0;
    for turns in conversation.turns.chunks(turns_at_once) {
        let sources: Vec<Source<'_>> = turns.iter().flatten().cloned().collect();
        covered += sources.len();
        let extracted = extract(summary.as_ref(), &sources, MAX_TOKENS);
        summary = Some(cap(&extracted, covered, &fits));
    }
    let text = render(&summary.unwrap(), covered);
    assert!(fits(&text));
    text
}

fn shows(text: &str, value: &str, beside: &str) -> bool {
    text.lines().any(|line| {
        line.to_lowercase().contains(&value.to_lowercase()) && line.to_lowercase().contains(beside)
    })
}
