//! The statements that a summary can be made of.

use super::cue::{self, Cue};
use super::filler::without_filler;
use super::language::Tongues;
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
    /// Whether it takes the place of something said earlier, or may do so.
    pub(super) corrects: bool,
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
        let whole = clean_line(text);
        let text = if origin == Origin::User { without_filler(&whole, lexicon) } else { &whole };
        if !text.chars().any(char::is_alphanumeric) {
            return None;
        }
        let terms = lexicon.read(text);
        let is_question = is_question(text);
        if origin != Origin::Earlier && says_nothing(&whole, text, &terms, lexicon) {
            return None;
        }
        let section = section(&terms, origin, is_question);
        Some(Unit {
            text: text.to_owned(),
            rests_on: rests_on.to_vec(),
            origin,
            section,
            place,
            terms,
            is_question,
            is_gone: false,
            corrects: false,
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
            if let Some(whole) = units.last().and_then(|unit| with_tail(unit, sentence, lexicon)) {
                units.pop();
                units.extend(Unit::read(lexicon, &whole, origin, place, &[number]));
                continue;
            }
            for clause in clauses(sentence, lexicon.tongues(sentence)) {
                units.extend(Unit::read(lexicon, clause, origin, place, &[number]));
            }
        }
        units
    }

    /// Puts another statement of the same message before this one.
    pub(super) fn precede(&mut self, about: &Unit) {
        self.text = format!("{} {}", about.text, self.text);
        self.terms.content.extend(&about.terms.content);
        self.terms.content.sort_unstable();
        self.terms.content.dedup();
        self.terms.numbers.extend(&about.terms.numbers);
        self.terms.words += about.terms.words;
    }

    pub(super) fn is_by_user(&self) -> bool {
        matches!(self.origin, Origin::User | Origin::Earlier)
    }
}

/// Whether a text is small talk. `text` is what is left of `whole` without thanks and greetings around it.
fn says_nothing(whole: &str, text: &str, terms: &Terms, lexicon: &Lexicon) -> bool {
    let has_value = terms.content.iter().any(|id| lexicon.is_number(*id) || lexicon.is_identifier(*id));
    let settles = [Cue::Change, Cue::Revoke, Cue::Reject, Cue::Decide, Cue::Goal, Cue::Todo];
    if terms.content.is_empty() || has_value || settles.iter().any(|cue| terms.found.has(*cue)) {
        return terms.content.is_empty();
    }
    let names_something = || has_substance(whole) || text.chars().any(is_unspaced);
    let is_talk = terms.found.has(Cue::Filler) && terms.content.len() <= 2;
    // `Ok, go on.`
    let is_scrap = text.len() < whole.len() && terms.content.len() < 2 && !names_something();
    // How somebody feels passes.
    let is_feeling = whole.ends_with(['!', '！']) && !has_substance(whole);
    is_talk || is_scrap || is_feeling
}

/// A correction together with the short sentence after it that says what holds.
fn with_tail(unit: &Unit, sentence: &str, lexicon: &Lexicon) -> Option<String> {
    let corrects = [Cue::Change, Cue::Revoke].iter().any(|cue| unit.terms.found.has(*cue));
    let is_open = corrects && !unit.is_question && unit.terms.words <= MAX_HEAD_WORDS;
    // `Not the 12th, we take the 26th.`
    let has_value = unit.terms.numbers.iter().any(|number| !unit.terms.denied.contains(number));
    let is_tail = words(sentence) <= MAX_TAIL_WORDS
        && unit.terms.words + words(sentence) <= MAX_DECISION_WORDS
        && !has_value
        && !is_question(sentence);
    let says_something = || {
        let terms = lexicon.empty().read(sentence);
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
fn clauses(sentence: &str, tongues: Tongues) -> Vec<&str> {
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
        if divides && !revokes(one, tongues) && !revokes(other, tongues) {
            clauses.push(trimmed(one));
            start = end;
        }
    }
    clauses.push(trimmed(&sentence[start..]));
    clauses
}

const CONJUNCTIONS: [&str; 6] = ["and ", "und ", "y ", "et ", "but ", "aber "];

/// Whether a clause gives something up: it belongs to the one that says what comes instead.
fn revokes(clause: &str, tongues: Tongues) -> bool {
    let clause = clause.trim().to_lowercase();
    let spaced: Vec<&str> = clause.split(|c: char| !c.is_alphanumeric() && c != '\'').collect();
    let (spaced, unspaced) = (cue::among(&spaced, tongues, |_, _| ()), cue::within(&clause, tongues).0);
    [Cue::Revoke, Cue::Deny].iter().any(|cue| spaced.has(*cue) || unspaced.has(*cue))
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

    fn clauses(sentence: &str) -> Vec<&str> {
        super::clauses(sentence, Lexicon::default().tongues(sentence))
    }

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
            "Thanks, please go on.",
            "Ok, weiter so.",
            "Yes, let's do that!",
        ] {
            assert!(!read(text), "{text}");
        }
        for text in [
            "No, use spaces.",
            "Port 8080, thanks.",
            "Die Frist ist am 3. Mai.",
            "Hello, my name is Ravi.",
            "Ok, I am allergic to peanuts.",
            "Great, let's use Postgres.",
            "Great, let's use Postgres!",
            "Hmm, SQLite rather than Postgres.",
            "Ok, Thursday.",
            "Danke, wir nehmen Postgres.",
            "Genial, usamos Redis.",
            "Merci, on prend Kafka.",
            "好的，用青色。",
            "はい、京都にします。",
            "赤ではなく青。",
        ] {
            assert!(read(text), "{text}");
        }
    }
}
