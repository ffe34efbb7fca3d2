mod artifact;
mod change;
mod cue;
mod filler;
mod language;
mod observation;
mod select;
mod term;
mod unit;

use self::artifact::Artifacts;
use self::cue::Cue;
use self::term::Lexicon;
use self::unit::{Origin, Unit};
use crate::parse::bounded;
use crate::pinned::normal;
use crate::{Entry, Section, Source, Speaker, Summary, render};
use std::collections::{HashMap, HashSet};

/// Summarizes without a model: selects the statements that tell the most for their length, and the names of files, links and
/// commands.
///
/// Rare terms, numbers, names and identifiers count most, what has been told before counts less, and users count more than assistants.
/// This needs no knowledge of a language. Decisions, corrections, tasks and small talk are told by tables of words for English,
/// German, Spanish, French, Chinese and Japanese. A later statement replaces an earlier one on the same matter, also one from the
/// previous summary, if it says so; if in doubt, both stay.
///
/// The result is deterministic, and the time is about linear in the text. `max_tokens` is the approximate length of the rendering.
/// [`cap`](crate::cap()) enforces the limit.
pub fn extract(previous: Option<&Summary>, sources: &[Source<'_>], max_tokens: u32) -> Summary {
    let room = f64::from(max_tokens);
    let mut read = read(previous, sources);
    let newer = change::resolve(&mut read.units, &read.lexicon);
    close_questions(&mut read.units);
    let mut frame = FRAME_TOKENS;
    let mut summary = read.summary(&newer, room - frame);
    for _ in 0..MAX_TRIES {
        let excess = select::tokens(&render(&summary, sources.len())) - room;
        if excess <= 0.0 {
            break;
        }
        frame += excess + 1.0;
        summary = read.summary(&newer, room - frame);
    }
    bounded(summary, |_| true)
}

/// For each language with a table, the words that tell nothing of a subject: English, German, Spanish, French, Chinese, Japanese.
pub fn plain_words() -> impl Iterator<Item = Vec<&'static str>> {
    cue::plain_words()
}

/// The approximate length of the frame and of three headings. Where there are more, it is made again a little shorter.
const FRAME_TOKENS: f64 = 75.0;
const MAX_TRIES: usize = 3;
const CHARS_PER_TOKEN: f64 = 4.0;
const MAX_ARTIFACTS: usize = 60;
/// The share of the room that names of files may take.
const ARTIFACT_SHARE: f64 = 0.12;
/// How the latest report of an agent begins.
const REPORT_PREFIX: &str = "Last report: ";
const MAX_REPORT_CHARS: usize = 200;
/// Later errors and answers of tools count, and the latest tell how things stand.
const MAX_FINDINGS: usize = 40;

struct Read {
    lexicon: Lexicon,
    units: Vec<Unit>,
    artifacts: Artifacts,
    /// Whether tools are called.
    is_agent: bool,
}

impl Read {
    /// The summary whose entries take this many tokens.
    fn summary(&self, newer: &[Option<usize>], room: f64) -> Summary {
        let mut room = room.max(0.0);
        let mut summary = Summary::default();
        if self.is_agent
            && let Some(report) = last_report(&self.units)
        {
            let report = format!("{REPORT_PREFIX}{report}");
            let length = select::tokens(&report);
            if length <= room {
                summary.summary_text = report;
                room -= length;
            }
        }
        let chars = (room * ARTIFACT_SHARE * CHARS_PER_TOKEN) as usize;
        summary.artifacts = self.artifacts.best(MAX_ARTIFACTS, chars);
        room -= summary.artifacts.iter().map(|entry| select::tokens(&entry.text) + 2.0).sum::<f64>();
        for at in select::select(&self.units, newer, &self.lexicon, room) {
            let unit = &self.units[at];
            summary.list_mut(unit.section).push(Entry::new(unit.text.clone(), unit.rests_on.clone()));
        }
        summary
    }
}

fn read(previous: Option<&Summary>, sources: &[Source<'_>]) -> Read {
    let (mut lexicon, mut units, mut artifacts) = (Lexicon::default(), Vec::new(), Artifacts::default());
    let people = sources.iter().filter(|source| !matches!(source.speaker, Speaker::Observation { .. }));
    people.for_each(|source| lexicon.hear(&source.text));
    if let Some(previous) = previous {
        lexicon.hear(&previous.summary_text);
        let entries = Section::ALL.into_iter().flat_map(|section| previous.list(section));
        entries.for_each(|entry| lexicon.hear(&entry.text));
        earlier(previous, &mut lexicon, &mut units);
        artifacts.read_earlier(&previous.artifacts);
    }
    let is_agent = sources
        .iter()
        .any(|source| !source.calls.is_empty() || matches!(source.speaker, Speaker::Observation { .. }));
    let mut findings = Vec::new();
    let mut is_first = previous.is_none();
    for (index, Source { number, speaker, text, calls }) in sources.iter().enumerate() {
        let place = index + 1;
        let origin = match speaker {
            Speaker::User => Origin::User,
            Speaker::Assistant | Speaker::Other(_) => Origin::Assistant,
            Speaker::Observation { .. } => Origin::Tool,
        };
        calls.iter().for_each(|call| artifacts.read_call(call, *number));
        artifacts.read_text(text, origin, *number);
        if let Speaker::Observation { tool } = speaker {
            findings
                .extend(observation::findings(*tool, text).into_iter().map(|found| (found, place, *number)));
            continue;
        }
        let mut said = Unit::read_all(&mut lexicon, text, origin, place, *number);
        if is_first && origin == Origin::User && !said.is_empty() {
            set_task(&mut said);
            is_first = false;
        }
        units.extend(said);
    }
    let old = findings.len().saturating_sub(MAX_FINDINGS);
    for (text, place, number) in findings.into_iter().skip(old) {
        units.extend(Unit::read(&mut lexicon, &text, Origin::Tool, place, &[number]));
    }
    units.sort_by_key(|unit| unit.place);
    let units = merged(units);
    Read { lexicon, units, artifacts, is_agent }
}

/// Reads what an earlier summary says. Its entries keep their lists.
fn earlier(previous: &Summary, lexicon: &mut Lexicon, units: &mut Vec<Unit>) {
    for line in previous.summary_text.lines().filter(|line| !line.starts_with(REPORT_PREFIX)) {
        for sentence in crate::sentence::sentences(line) {
            units.extend(Unit::read(lexicon, sentence, Origin::Earlier, 0, &[]));
        }
    }
    units.iter_mut().for_each(|unit| unit.section = Section::KeyFacts);
    for section in Section::ALL.into_iter().filter(|section| *section != Section::Artifacts) {
        for entry in previous.list(section) {
            let unit = Unit::read(lexicon, &entry.text, Origin::Earlier, 0, &entry.rests_on);
            let is_question = section == Section::OpenQuestions;
            let origin = if observation::is_finding(&entry.text) { Origin::Tool } else { Origin::Earlier };
            units.extend(unit.map(|unit| Unit { section, is_question, origin, ..unit }));
        }
    }
}

/// The first request of the user is the task: what it asks for, or else its question. A message that only states or decides sets none.
///
/// Who asks in the imperative has no cue for it, but begins with a word that tells something.
fn set_task(said: &mut Vec<Unit>) {
    let asks = |unit: &Unit| unit.terms.found.has(Cue::Goal) && !unit.is_question;
    let is_talk = |unit: &Unit| unit.text.ends_with(['!', '！']) || unit.terms.found.has(Cue::Filler);
    let orders = |unit: &Unit| {
        unit.section == Section::KeyFacts
            && unit.terms.begins_with_content
            && !is_talk(unit)
            && unit.terms.content.len() >= 2
    };
    let task = said.iter().position(asks).or_else(|| said.iter().position(orders));
    let is_all_questions = said.iter().all(|unit| unit.is_question);
    let Some(mut task) = task.or_else(|| is_all_questions.then_some(0)) else { return };
    // `The export drops rows. Find out why.`
    if task > 0 && said[task].terms.content.len() <= MAX_BARE_TASK && !said[task - 1].is_question {
        let about = said.remove(task - 1);
        task -= 1;
        said[task].precede(&about);
    }
    said[task].section = Section::Goals;
    said[task].is_question = false;
}

/// An order of so few terms is about what was said before it.
const MAX_BARE_TASK: usize = 3;

/// Joins statements that are repeated word for word: the later place counts, and all messages are named.
fn merged(units: Vec<Unit>) -> Vec<Unit> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut merged: Vec<Unit> = Vec::with_capacity(units.len());
    for unit in units {
        match places.get(&normal(&unit.text)) {
            Some(&at) => {
                let earlier = &mut merged[at];
                earlier.rests_on.extend(unit.rests_on);
                if unit.origin == Origin::User && earlier.origin != Origin::Earlier {
                    earlier.origin = Origin::User;
                }
                earlier.text = unit.text;
            }
            None => {
                places.insert(normal(&unit.text), merged.len());
                merged.push(unit);
            }
        }
    }
    merged
}

/// Removes the questions that somebody has answered: a later statement of somebody else is about the same, or the assistant replied
/// and did not say that it does not know.
fn close_questions(units: &mut [Unit]) {
    let mut answered: HashSet<usize> = HashSet::new();
    for at in (0..units.len()).filter(|&at| units[at].is_question) {
        let question = &units[at];
        let later = units[at + 1..].iter().filter(|unit| !unit.is_question && unit.place > question.place);
        let shared = |unit: &Unit| {
            let common = question.terms.content.iter().filter(|id| unit.terms.content.contains(id)).count();
            common * 2 >= question.terms.content.len().max(1)
                || (common > 0 && unit.place == question.place + 1)
        };
        let is_answer = |unit: &Unit| !unit.terms.found.has(Cue::Unsure) && shared(unit);
        if later.take(MAX_LOOKAHEAD).any(is_answer) {
            answered.insert(at);
        }
    }
    for at in answered {
        // `The pier needs 100 planks, right?` says something whatever the answer is.
        units[at].is_gone = units[at].terms.numbers.is_empty();
        units[at].section = Section::KeyFacts;
        units[at].is_question = false;
    }
    let open: Vec<usize> =
        (0..units.len()).filter(|&at| units[at].is_question && !units[at].is_gone).collect();
    for &at in open.iter().rev().skip(MAX_QUESTIONS) {
        units[at].is_gone = true;
    }
}

/// An answer comes soon or never.
const MAX_LOOKAHEAD: usize = 60;
const MAX_QUESTIONS: usize = 8;

/// What an agent said last.
fn last_report(units: &[Unit]) -> Option<String> {
    let report = units.iter().rfind(|unit| unit.origin == Origin::Assistant && !unit.is_question)?;
    Some(crate::excerpt::head(&report.text, MAX_REPORT_CHARS))
}

/// A text with one sign for each number, to compare what only counts on.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_ascii_digit() {
            plain.push(c);
        } else if !plain.ends_with('#') {
            plain.push('#');
        }
    }
    plain
}
