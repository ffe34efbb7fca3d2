//! In every language, a revoked decision gives way to the later one, and what the user has said stays.
//!
//! `cargo test -p tidegate-summary --test languages -- --nocapture` prints the shares.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that reports a measurement")]

use tidegate_summary::{MessageRef, Source, Speaker, Summary, cap, extract, render};
use tidegate_testkit::dialogue::{Dialogue, languages};
use tidegate_tokens::{Encoding, count};

const DIALOGUES: u64 = 40;
const TURNS: usize = 40;
const TURNS_AT_ONCE: usize = 10;
const ROOMY: u32 = 1_500;
/// Room for two thirds of what is said and more, by language.
const SCARCE: u32 = 400;

#[test]
fn the_later_decision_is_kept_and_the_earlier_one_never_alone() {
    for language in languages() {
        let Kept { changes, later, alone, facts, kept } = kept(language, ROOMY);
        assert!(later * 100 >= changes * 97 && alone * 100 <= changes, "{language}");
        assert!(kept * 100 >= facts * 95, "{language}");
    }
}

#[test]
fn so_it_is_where_not_all_facts_fit() {
    let mut lost = Vec::new();
    for language in languages() {
        let Kept { changes, later, alone, .. } = kept(language, SCARCE);
        if later * 100 < changes * 97 || alone * 100 > changes {
            lost.push(format!("{language}: later {later} of {changes}, alone {alone}"));
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

struct Kept {
    changes: usize,
    later: usize,
    alone: usize,
    facts: usize,
    kept: usize,
}

fn kept(language: &str, max_tokens: u32) -> Kept {
    let (mut changes, mut later, mut alone, mut facts, mut kept) = (0, 0, 0, 0, 0);
    for seed in 1..=DIALOGUES {
        let dialogue = Dialogue::generate(language, seed, TURNS).unwrap();
        let text = fold(&dialogue, max_tokens);
        for change in &dialogue.changes {
            changes += 1;
            later += usize::from(text.contains(&change.new));
            alone += usize::from(text.contains(&change.old) && !text.contains(&change.new));
        }
        facts += dialogue.facts.len();
        kept += dialogue.facts.iter().filter(|fact| text.contains(&fact.answer)).count();
    }
    println!(
        "{language}, {max_tokens} tokens: later {later} of {changes}, earlier alone {alone}, facts {kept} of {facts}"
    );
    Kept { changes, later, alone, facts, kept }
}

/// Folds as the proxy does: each summary is made of the one before it and of the messages that leave.
fn fold(dialogue: &Dialogue, max_tokens: u32) -> String {
    let mut summary: Option<Summary> = None;
    let mut covered = 0;
    for messages in dialogue.messages.chunks(2 * TURNS_AT_ONCE) {
        let source = |(index, (is_user, text)): (usize, &(bool, String))| Source {
            number: MessageRef(u32::try_from(covered + index).unwrap()),
            speaker: if *is_user { Speaker::User } else { Speaker::Assistant },
            text: text.clone().into(),
            calls: vec![],
        };
        let sources: Vec<Source<'_>> = messages.iter().enumerate().map(source).collect();
        covered += sources.len();
        let extracted = extract(summary.as_ref(), &sources, max_tokens);
        let fits = |text: &str| count(Encoding::O200k, text).0 <= u64::from(max_tokens);
        summary = Some(cap(&extracted, covered, &fits));
    }
    render(&summary.unwrap(), covered)
}
