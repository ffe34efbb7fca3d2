//! The statements that a summary can be made of.

use super::cue::{self, Cue};
use super::term::{Lexicon, Terms, is_unspaced};
use crate::fence::clean_line;
use crate::sentence::{is_question, sentences};
use crate::word::has_substance;
use crate::{MessageRef, Section};

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The summary of an earlier fold.
    Earlier,
    User,
    Assistant,
    Tool,
}

/// A statement that may become an entry.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) text: String,
    pub(super) rests_on: Vec<MessageRef>,
    pub(super) origin: Origin,
    pub(super) section: Section,
    /// The place of its message among those being folded; 0 is the earlier summary.
    pub(super) place: usize,
    pub(super) terms: Terms,
    pub(super) is_question: bool,
    /// Whether something said later has taken its place.
    pub(super) is_gone: bool,
}

/// More sentences of one message are not read: it is a paste, of which the beginning and the end tell the most.
const MAX_SENTENCES: usize = 400;
/// A longer sentence is divided at its commas.
const LONG_CHARS: usize = 100;
const LONG_SIGNS: usize = 40;
const MIN_WORDS: usize = 5;
const MAX_DECISION_WORDS: usize = 16;
/// Two figures in one sentence are two statements if each has as many words.
const MIN_FIGURE_WORDS: usize = 4;
/// A sentence this short stays with the correction before it: `I take that back. It should be 81.`
const MAX_TAIL_WORDS: usize = 6;
/// A longer correction says by itself what holds.
const MAX_HEAD_WORDS: usize = 12;
const MIN_SIGNS: usize = 8;

impl Unit {
    /// Reads one statement; `None` if it says nothing.
    pub(super) fn read(
        lexicon: &mut Lexicon,
        text: &str,
        origin: Origin,
        place: usize,
        rests_on: &[MessageRef],
    ) -> Option<Unit> {
        let text = clean_line(text);
        if !text.chars().any(char::is_alphanumeric) {
            return None;
        }
        let terms = lexicon.read(&text);
        let is_question = is_question(&text);
        let has_value = terms.content.iter().any(|id| lexicon.is_number(*id) || lexicon.is_identifier(*id));
        let is_filler =
            (terms.found.has(Cue::Filler) && terms.content.len() <= 2) || terms.content.is_empty();
        let corrects = terms.found.has(Cue::Change) || terms.found.has(Cue::Reject);
        let settles = corrects || [Cue::Decide, Cue::Goal, Cue::Todo].iter().any(|cue| terms.found.has(*cue));
        // How somebody feels passes.
        let is_filler = is_filler || (text.ends_with(['!', '！']) && !settles && !has_substance(&text));
        let says_something = has_value || (corrects && !terms.content.is_empty());
        if is_filler && !says_something && origin != Origin::Earlier {
            return None;
        }
        let section = section(&terms, origin, is_question);
        Some(Unit {
            text,
            rests_on: rests_on.to_vec(),
            origin,
            section,
            place,
            terms,
            is_question,
            is_gone: false,
        })
    }

    /// Reads the statements of a text.
    pub(super) fn read_all(
        lexicon: &mut Lexicon,
        text: &str,
        origin: Origin,
        place: usize,
        number: MessageRef,
    ) -> Vec<Unit> {
        let sentences = sentences(text);
        let skipped = sentences.len().saturating_sub(MAX_SENTENCES);
        let (head, tail) = (MAX_SENTENCES / 2, MAX_SENTENCES / 2 + skipped);
        let read = sentences.iter().enumerate().filter(|(at, _)| *at < head || *at >= tail);
        let mut units: Vec<Unit> = Vec::new();
        for (_, sentence) in read {
            if let Some(whole) = units.last().and_then(|unit| with_tail(unit, sentence)) {
                units.pop();
                units.extend(Unit::read(lexicon, &whole, origin, place, &[number]));
                continue;
            }
            for clause in clauses(sentence) {
                units.extend(Unit::read(lexicon, clause, origin, place, &[number]));
            }
        }
        units
    }

    pub(super) fn is_by_user(&self) -> bool {
        matches!(self.origin, Origin::User | Origin::Earlier)
    }
}

/// A correction together with the short sentence after it that says what holds.
fn with_tail(unit: &Unit, sentence: &str) -> Option<String> {
    let corrects = [Cue::Change, Cue::Revoke].iter().any(|cue| unit.terms.found.has(*cue));
    let is_open = corrects && !unit.is_question && unit.terms.words <= MAX_HEAD_WORDS;
    let is_tail = words(sentence) <= MAX_TAIL_WORDS && !is_question(sentence);
    let says_something = || {
        let terms = Lexicon::default().read(sentence);
        !terms.content.is_empty() && !terms.found.has(Cue::Filler)
    };
    (is_open && is_tail && says_something()).then(|| format!("{} {sentence}", unit.text))
}

/// The list that a statement belongs in. What an assistant suggests is no decision.
fn section(terms: &Terms, origin: Origin, is_question: bool) -> Section {
    // In a long statement such a word is one among many.
    let has = |cue: Cue| terms.found.has(cue) && terms.words <= MAX_DECISION_WORDS;
    match origin {
        _ if is_question => Section::OpenQuestions,
        Origin::User if has(Cue::Todo) => Section::ActionItems,
        Origin::User if [Cue::Change, Cue::Revoke, Cue::Reject, Cue::Decide].into_iter().any(has) => {
            Section::Decisions
        }
        _ => Section::KeyFacts,
    }
}

/// Divides a sentence into statements that can be kept or replaced each on its own.
fn clauses(sentence: &str) -> Vec<&str> {
    let signs = sentence.chars().filter(|c| is_unspaced(*c)).count();
    let is_long = sentence.chars().count() >= LONG_CHARS || signs >= LONG_SIGNS;
    let mut clauses: Vec<&str> = Vec::new();
    let mut start = 0;
    let mut can_end = Vec::new();
    for (at, c) in sentence.char_indices() {
        let end = at + c.len_utf8();
        let rest = &sentence[end..];
        let is_break = match c {
            ',' | ';' | ':' => rest.starts_with(' '),
            '，' | '；' | '、' | '：' | '—' => !rest.is_empty(),
            ' ' => CONJUNCTIONS.iter().any(|word| rest.starts_with(word)),
            _ => false,
        };
        if is_break {
            can_end.push((end, c));
        }
    }
    for (end, c) in can_end {
        let (one, other) = (&sentence[start..end], &sentence[end..]);
        let says_numbers = has_digit(one)
            && has_digit(other)
            && words(one) >= MIN_FIGURE_WORDS
            && words(other) >= MIN_FIGURE_WORDS;
        let divides = if c == ' ' {
            says_numbers
        } else {
            says_numbers || (is_long && is_whole(one) && is_whole(other))
        };
        if divides && !revokes(one) && !revokes(other) {
            clauses.push(trimmed(one));
            start = end;
        }
    }
    clauses.push(trimmed(&sentence[start..]));
    clauses
}

const CONJUNCTIONS: [&str; 6] = ["and ", "und ", "y ", "et ", "but ", "aber "];

/// Whether a clause gives something up: it belongs to the one that says what comes instead.
fn revokes(clause: &str) -> bool {
    let clause = clause.trim().to_lowercase();
    let spaced: Vec<&str> = clause.split(|c: char| !c.is_alphanumeric() && c != '\'').collect();
    cue::among(&spaced, |_, _| ()).has(Cue::Revoke) || cue::within(&clause).0.has(Cue::Revoke)
}

fn trimmed(clause: &str) -> &str {
    let clause = clause.trim().trim_end_matches([',', ';', ':', '，', '；', '、', '：', '—', ' ']);
    CONJUNCTIONS.iter().find_map(|word| clause.strip_prefix(word)).unwrap_or(clause)
}

fn has_digit(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_digit())
}

fn words(text: &str) -> usize {
    text.split_whitespace().count().max(text.chars().filter(|c| is_unspaced(*c)).count())
}

fn is_whole(clause: &str) -> bool {
    clause.split_whitespace().count() >= MIN_WORDS
        || clause.chars().filter(|c| is_unspaced(*c)).count() >= MIN_SIGNS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_figures_are_two_statements() {
        assert_eq!(
            clauses("Our budget is 4,500 euros and the deadline is May 12."),
            ["Our budget is 4,500 euros", "the deadline is May 12."]
        );
        assert_eq!(clauses("预算是5000元，截止日期是5月12日。"), ["预算是5000元", "截止日期是5月12日。"]);
        assert_eq!(clauses("I like tea and cake, too."), ["I like tea and cake, too."]);
    }

    #[test]
    fn small_talk_says_nothing() {
        let mut lexicon = Lexicon::default();
        let mut read = |text: &str| Unit::read(&mut lexicon, text, Origin::User, 1, &[]).is_some();
        for text in [
            "Cool, thanks Mel!",
            "Ok.",
            "Danke, super!",
            "谢谢，好的",
            "はい、ありがとう",
            "…",
            "I am so happy today, haha!",
        ] {
            assert!(!read(text), "{text}");
        }
        for text in ["No, use spaces.", "Port 8080, thanks.", "Die Frist ist am 3. Mai."] {
            assert!(read(text), "{text}");
        }
    }
}
