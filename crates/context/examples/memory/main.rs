//! Prints how many facts of long dialogues a memory of a given size keeps.
//!
//! `./tests/bench --only memory [--dialogues DIRECTORY]` runs it for generated dialogues in six languages. With a directory that holds
//! `conversations.jsonl` (`{"id", "messages"}`) and `questions.jsonl` (`{"conversation", "question", "answers"}`), it measures those, too.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

mod measure;

use measure::{Case, MEMORIES, Question, share};
use serde_json::Value;
use std::path::Path;
use tidegate_testkit::dialogue::languages;

const DIALOGUES: u64 = 5;
const SIZES: [usize; 3] = [500, 1_500, 4_000];

fn main() {
    println!("| dialogues | memory | 500 tokens | 1,500 tokens | 4,000 tokens |");
    println!("| --- | --- | --- | --- | --- |");
    for language in languages() {
        let cases: Vec<Case> = (1..=DIALOGUES).map(|seed| Case::generated(language, seed)).collect();
        print_rows(language, &cases);
    }
    if let Some(directory) = std::env::args().nth(1) {
        print_rows("recorded", &recorded(Path::new(&directory)));
    }
}

fn print_rows(name: &str, cases: &[Case]) {
    for (memory_name, memory) in MEMORIES {
        let shares = SIZES.map(|size| format!("{:.1} %", 100.0 * share(cases, memory, size)));
        println!("| {name} | {memory_name} | {} |", shares.join(" | "));
    }
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
        let read = |question: &Value| Question {
            text: question["question"].as_str().unwrap_or_default().to_owned(),
            answers: question["answers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one.as_str().unwrap().to_owned())
                .collect(),
        };
        Case {
            messages: conversation["messages"].as_array().unwrap().iter().map(said).collect(),
            questions: about.map(read).collect(),
        }
    };
    read("conversations.jsonl").iter().map(case).collect()
}
