//! What several kinds of memory still hold of a dialogue. A fact is kept if one of its answers occurs in the memory.

use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use tidegate_config::{Flags, load};
use tidegate_context::{ConversationState, Outcome, Turn, TurnInput, drive_offline, model_table};
use tidegate_engine::Timestamp;
use tidegate_summary::{MessageRef, Source, Speaker, cap, extract, render};
use tidegate_testkit::dialogue::Dialogue;
use tidegate_tokens::{Encoding, count};
use tidegate_wire::{Dialect, Reader, assemble};

/// A conversation, each message with whether the user says it, and questions about it.
pub(crate) struct Case {
    pub(crate) messages: Vec<(bool, String)>,
    pub(crate) questions: Vec<Question>,
}

pub(crate) struct Question {
    pub(crate) text: String,
    /// Each of them would do.
    pub(crate) answers: Vec<String>,
}

/// Which of the questions can be answered from what is remembered in this many tokens.
pub(crate) type Memory = fn(&Case, usize) -> usize;

pub(crate) const MEMORIES: [(&str, Memory); 4] = [
    ("last messages", |case, size| case.answered(&truncation(case, size))),
    ("rarest sentences", |case, size| case.answered(&rarest(case, size))),
    ("built-in summarizer", |case, size| case.answered(&built_in(case, size))),
    ("built-in and recall", with_recall),
];
const TURNS: usize = 200;

/// The share of the questions that can be answered.
pub(crate) fn share(cases: &[Case], memory: Memory, size: usize) -> f64 {
    let all: usize = cases.iter().map(|case| case.questions.len()).sum();
    let answered: usize = cases.iter().map(|case| memory(case, size)).sum();
    answered as f64 / all as f64
}

impl Case {
    pub(crate) fn generated(language: &str, seed: u64) -> Case {
        let dialogue = Dialogue::generate(language, seed, TURNS).unwrap();
        let question = |fact: tidegate_testkit::dialogue::Fact| Question {
            text: fact.question,
            answers: vec![fact.answer],
        };
        Case { messages: dialogue.messages, questions: dialogue.facts.into_iter().map(question).collect() }
    }

    /// How many questions this text answers.
    fn answered(&self, text: &str) -> usize {
        let text = text.to_lowercase();
        self.questions.iter().filter(|question| question.is_answered(&text)).count()
    }
}

impl Question {
    fn is_answered(&self, text: &str) -> bool {
        self.answers.iter().any(|one| says(text, one))
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

/// What Tidegate forwards when the question is asked: half of the room is for the summary, and half for what is brought back.
fn with_recall(case: &Case, size: usize) -> usize {
    let policy = format!(
        "[models.m]\nwindow = 400000\nencoding = \"o200k_base\"\n[context]\nstrategy = \"summarization\"\n[context.fold]\n\
         when = {{ messages = 2 }}\nkeep = {{ messages = 1 }}\nmode = \"inline\"\nmax_tokens = {half}\n\
         [context.recall]\nmax_tokens = {half}\n",
        half = size / 2
    );
    let settings =
        load(tidegate_config::Source::new("memory.toml", policy), &Flags::default(), &|_| None).unwrap();
    let (reader, mut state) = (Reader::default(), ConversationState::default());
    let mut answered = 0;
    for question in &case.questions {
        let role = |is_user: bool| if is_user { "user" } else { "assistant" };
        let said =
            case.messages.iter().map(|(is_user, text)| json!({"role": role(*is_user), "content": text}));
        let messages: Vec<Value> = said.chain([json!({"role": "user", "content": question.text})]).collect();
        let body = Bytes::from(json!({"model": "m", "messages": messages}).to_string());
        let outline = reader.outline(Dialect::Chat, &body).unwrap();
        let (context, model) =
            (settings.routes[0].context.clone(), model_table(&settings.models).lookup("m"));
        let input = TurnInput::new(body.clone(), outline, context, model);
        let mut turn = Turn::new(TurnInput { now: Timestamp(1), ..input }, state.clone());
        let outcome = drive_offline(&mut turn, &reader).unwrap();
        answered += usize::from(question.is_answered(&forwarded(&body, &outcome, &question.text)));
        // The next question finds the same summary, and no excerpt.
        let folds = turn.state().folds().to_vec();
        state = ConversationState::new(Default::default(), folds, None);
    }
    answered
}

/// The text of the forwarded messages, without the question.
fn forwarded(body: &Bytes, outcome: &Outcome, question: &str) -> String {
    let pieces = outcome.pieces.as_ref().unwrap();
    let sent: Value = serde_json::from_slice(&assemble(body, pieces)).unwrap();
    let texts = sent["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_str());
    texts.collect::<Vec<_>>().join("\n").replace(question, "").to_lowercase()
}
