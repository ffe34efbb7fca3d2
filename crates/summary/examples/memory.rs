//! Measures how many facts of long dialogues a memory of a given size keeps.
//!
//! `cargo run --release -p tidegate-summary --example memory [DIRECTORY]` prints a table for generated dialogues in six languages. With a
//! directory that holds `conversations.jsonl` (`{"id", "messages"}`) and `questions.jsonl` (`{"conversation", "answers"}`), it
//! measures those, too. A fact is kept if one of its answers occurs in the memory.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use tidegate_summary::{MessageRef, Source, Speaker, cap, extract, render};
use tidegate_testkit::dialogue::{Dialogue, languages};
use tidegate_tokens::{Encoding, count};

/// A conversation, each message with whether the user says it, and the accepted answers of each question about it.
struct Case {
    messages: Vec<(bool, String)>,
    questions: Vec<Vec<String>>,
}

/// What is remembered of a conversation in this many tokens.
type Memory = fn(&Case, usize) -> String;

const MEMORIES: [(&str, Memory); 3] =
    [("last messages", truncation), ("rarest sentences", rarest), ("built-in summarizer", built_in)];
const SIZES: [usize; 3] = [500, 1_500, 4_000];
const DIALOGUES: u64 = 20;
const TURNS: usize = 200;

fn main() {
    println!(
        "| dialogues | memory | 500 tokens | 1,500 tokens | 4,000 tokens |\n| --- | --- | --- | --- | --- |"
    );
    for language in languages() {
        let case = |seed| {
            let dialogue = Dialogue::generate(language, seed, TURNS).unwrap();
            let questions = dialogue.facts.into_iter().map(|fact| vec![fact.answer]).collect();
            Case { messages: dialogue.messages, questions }
        };
        print_rows(language, &(1..=DIALOGUES).map(case).collect::<Vec<_>>());
    }
    if let Some(directory) = std::env::args().nth(1) {
        print_rows("recorded", &recorded(Path::new(&directory)));
    }
}

fn print_rows(name: &str, cases: &[Case]) {
    for (memory_name, memory) in MEMORIES {
        let share = |size: usize| {
            let (mut kept, mut all) = (0, 0);
            for case in cases {
                let text = memory(case, size).to_lowercase();
                all += case.questions.len();
                kept += case
                    .questions
                    .iter()
                    .filter(|answers| answers.iter().any(|one| says(&text, one)))
                    .count();
            }
            format!("{:.1} %", 100.0 * kept as f64 / all as f64)
        };
        println!("| {name} | {memory_name} | {} |", SIZES.map(share).join(" | "));
    }
}

fn says(text: &str, answer: &str) -> bool {
    let answer = answer.to_lowercase();
    text.match_indices(&answer).any(|(at, _)| {
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + answer.len()..].chars().next())
    })
}

fn tokens(text: &str) -> usize {
    usize::try_from(count(Encoding::O200k, text).0).unwrap()
}

/// The newest messages that fit.
fn truncation(case: &Case, size: usize) -> String {
    let mut room = size;
    let fits = |(_, text): &&(bool, String)| {
        let cost = tokens(text) + 4;
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    };
    case.messages.iter().rev().take_while(fits).map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The sentences with the highest inverse document frequency per word, those of the assistant at half weight.
fn rarest(case: &Case, size: usize) -> String {
    let mut sentences: Vec<(bool, &str)> = Vec::new();
    for (is_user, text) in &case.messages {
        let parts = text.split_inclusive(['.', '!', '?', '\n', '。', '！', '？']).map(str::trim);
        sentences.extend(parts.filter(|part| !part.is_empty()).map(|part| (*is_user, part)));
    }
    let words = |text: &str| -> Vec<String> {
        let signs: Vec<char> = text.to_lowercase().chars().collect();
        if signs.iter().any(|c| *c as u32 >= 0x2e80) {
            return signs.windows(2).map(|pair| pair.iter().collect()).collect();
        }
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let mut frequency: HashMap<String, usize> = HashMap::new();
    for (_, text) in &sentences {
        words(text)
            .into_iter()
            .collect::<HashSet<_>>()
            .into_iter()
            .for_each(|word| *frequency.entry(word).or_default() += 1);
    }
    let score = |(is_user, text): &(bool, &str)| {
        let words = words(text);
        let sum: f64 = words.iter().map(|word| (sentences.len() as f64 / frequency[word] as f64).ln()).sum();
        sum / words.len().max(1) as f64 * if *is_user { 1.0 } else { 0.5 }
    };
    let mut ranked: Vec<(f64, &str)> = sentences.iter().map(|one| (score(one), one.1)).collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    // The frame and the bullets of a record, as the summarizer has them.
    let mut room = size.saturating_sub(60);
    let fitting = ranked.into_iter().filter(|(_, text)| {
        let cost = tokens(text) + 2;
        let fits = cost <= room;
        room -= if fits { cost } else { 0 };
        fits
    });
    fitting.map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

fn built_in(case: &Case, size: usize) -> String {
    let source = |(index, (is_user, text)): (usize, &(bool, String))| Source {
        number: MessageRef(u32::try_from(index).unwrap()),
        speaker: if *is_user { Speaker::User } else { Speaker::Assistant },
        text: text.as_str().to_owned().into(),
        calls: vec![],
    };
    let sources: Vec<Source<'_>> = case.messages.iter().enumerate().map(source).collect();
    let summary = extract(None, &sources, u32::try_from(size).unwrap());
    render(&cap(&summary, sources.len(), &|text| tokens(text) <= size), sources.len())
}

fn recorded(directory: &Path) -> Vec<Case> {
    let read = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let questions = read("questions.jsonl");
    let case = |conversation: &Value| {
        let said = |message: &Value| {
            (message["role"] == "user", message["content"].as_str().unwrap_or_default().to_owned())
        };
        let about = questions.iter().filter(|question| question["conversation"] == conversation["id"]);
        let answers = |question: &Value| {
            question["answers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one.as_str().unwrap().to_owned())
                .collect()
        };
        Case {
            messages: conversation["messages"].as_array().unwrap().iter().map(said).collect(),
            questions: about.map(answers).collect(),
        }
    };
    read("conversations.jsonl").iter().map(case).collect()
}
