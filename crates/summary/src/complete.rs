//! Adds to a model's summary what it has left out.

use std::collections::HashSet;
use std::fmt;

use crate::cap::cap_completed;
use crate::word::{is_identifier, is_name};
use crate::{Entry, Section, Source, Summary, extract, render};

/// The share of the limit that added facts may take, and the most tokens of them.
const SHARE: u32 = 4;
const MOST_TOKENS: u32 = 600;

/// The frame of the summary that is made for comparison.
const FRAME_TOKENS: u32 = 75;

/// What is added may make other facts leave, which are added in turn. More rounds change next to nothing.
const ROUNDS: usize = 3;

/// How long a completed summary may be.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// The approximate limit, in tokens: added facts take a share of it.
    pub max_tokens: u32,
    /// The number of messages that the summary covers.
    pub covered: usize,
    /// Whether a rendering is short enough.
    pub fits: &'a dyn Fn(&str) -> bool,
}

impl fmt::Debug for Room<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Room { max_tokens, covered, .. } = self;
        f.debug_struct("Room")
            .field("max_tokens", max_tokens)
            .field("covered", covered)
            .finish_non_exhaustive()
    }
}

/// Caps a model's summary, and adds the facts that the built-in summarizer ranks highest and what is left of it does not have. Returns how
/// many of them are in the result.
///
/// A fact is missing if the summary lacks a number or an identifier of it, or all of its names; a decision also if the summary lacks most of
/// its words. So a paraphrase stays as it is. What is added stands before the model's own facts: the later of two that conflict holds. It makes
/// room for itself: other facts leave before it does.
pub fn complete(
    summary: &Summary,
    previous: Option<&Summary>,
    sources: &[Source<'_>],
    room: Room<'_>,
) -> (Summary, usize) {
    let Room { max_tokens, covered, fits } = room;
    let share = (max_tokens / SHARE).min(MOST_TOKENS) + FRAME_TOKENS;
    let expected = extract(previous, sources, share);
    let (mut capped, mut added) = (cap_completed(summary, 0, covered, fits), 0);
    for _ in 0..ROUNDS {
        let missing = missing(&expected, &capped, covered);
        if missing.is_empty() {
            break;
        }
        let before = capped.clone();
        let mut key_facts = missing;
        added += key_facts.len();
        key_facts.extend(std::mem::take(&mut capped.key_facts));
        let whole = Summary { key_facts, ..capped };
        capped = cap_completed(&whole, added, covered, fits);
        let stays = |entry: &&Entry| capped.key_facts.contains(entry);
        added = whole.key_facts[..added].iter().filter(stays).count();
        if capped == before {
            break;
        }
    }
    (capped, added)
}

/// The expected entries that a summary does not tell.
fn missing(expected: &Summary, summary: &Summary, covered: usize) -> Vec<Entry> {
    let told = Told::new(&render(summary, covered));
    let is_missing =
        |section: Section, entry: &&Entry| told.lacks(&entry.text, section == Section::Decisions);
    let sections =
        [Section::Goals, Section::Decisions, Section::ActionItems, Section::KeyFacts, Section::Artifacts];
    let missing = sections
        .into_iter()
        .flat_map(|section| expected.list(section).iter().filter(move |entry| is_missing(section, entry)));
    let mut missing: Vec<Entry> = missing.cloned().collect();
    // A path that is named in what is added already.
    let texts: Vec<String> = missing.iter().map(|entry| entry.text.clone()).collect();
    missing.retain(|entry| !texts.iter().any(|text| *text != entry.text && text.contains(&entry.text)));
    missing
}

/// What a text says, to look up single words.
struct Told {
    text: String,
    words: HashSet<String>,
    numbers: HashSet<String>,
}

/// The values in a statement without which it is not told.
struct Values {
    exact: Vec<String>,
    names: Vec<String>,
    numbers: Vec<String>,
    others: Vec<String>,
}

/// A word of so few bytes is grammar.
const SHORT_WORD: usize = 2;

impl Told {
    fn new(text: &str) -> Told {
        let text = text.to_lowercase();
        let words = words(&text).map(str::to_owned).collect();
        Told { words, numbers: numbers(&text).into_iter().collect(), text }
    }

    fn lacks(&self, statement: &str, is_decision: bool) -> bool {
        let Values { exact, names, numbers, others } = Values::of(statement);
        let has_word = |word: &String| self.words.contains(word);
        if numbers.iter().any(|number| !self.numbers.contains(number))
            || exact.iter().any(|exact| !self.text.contains(exact))
        {
            return true;
        }
        if !names.is_empty() {
            return !names.iter().any(has_word);
        }
        let known = others.iter().filter(|word| has_word(word)).count();
        is_decision && numbers.is_empty() && exact.is_empty() && known * 2 < others.len()
    }
}

impl Values {
    fn of(statement: &str) -> Values {
        let (mut exact, mut names, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut begins = true;
        for word in statement.split_whitespace() {
            let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
            let is_first = std::mem::replace(&mut begins, word.ends_with(['.', '!', '?', ':']));
            let lower = inner.to_lowercase();
            match () {
                () if inner.is_empty() || inner.chars().any(char::is_numeric) => {}
                () if is_identifier(inner) => exact.push(lower),
                () if is_name(inner) && !is_first => names.extend(words(&lower).map(str::to_owned)),
                () => others.extend(words(&lower).filter(|word| word.len() > SHORT_WORD).map(str::to_owned)),
            }
        }
        Values { exact, names, numbers: numbers(statement), others }
    }
}

/// The words of a text. Where they are not separated, pairs of characters stand for them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let spaced = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    spaced.flat_map(|word| {
        let dense = word.chars().all(|c| c >= '\u{2e80}');
        let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        let pairs: Vec<&str> = match dense {
            true => starts.windows(3).map(|at| &word[at[0]..at[2]]).collect(),
            false => vec![word],
        };
        pairs
    })
}

/// The numbers in a text, without the signs that group digits: `4,500` and `4500` are the same.
fn numbers(text: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    let mut digits = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_digit = chars.peek().is_some_and(char::is_ascii_digit);
        let groups = next_is_digit && matches!(c, ',' | '.' | '\'' | '\u{a0}' | '\u{202f}');
        if c.is_ascii_digit() {
            digits.push(c);
        } else if !groups && !digits.is_empty() {
            numbers.push(std::mem::take(&mut digits));
        }
    }
    numbers.extend((!digits.is_empty()).then_some(digits));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageRef, Speaker};

    fn said(texts: &'static [&'static str]) -> Vec<Source<'static>> {
        let source = |(text, number): (&&'static str, u32)| Source {
            number: MessageRef(number),
            speaker: Speaker::User,
            text: (*text).into(),
            calls: vec![],
        };
        texts.iter().zip(1..).map(source).collect()
    }

    fn added(summary: &str, texts: &'static [&'static str]) -> Vec<String> {
        let summary = Summary { key_facts: vec![Entry::new(summary, [])], ..Summary::default() };
        let room = Room { max_tokens: 1_500, covered: texts.len(), fits: &|_| true };
        let (complete, added) = complete(&summary, None, &said(texts), room);
        assert_eq!(complete.key_facts.len(), added + 1);
        complete.key_facts.into_iter().take(added).map(|entry| entry.text).collect()
    }

    #[test]
    fn what_a_model_leaves_out_is_added_before_its_own_facts() {
        let talk = &[
            "The rent is 4,500 euros.",
            "Ask Ottoline for the plan in docs/harbour.ods.",
            "Let's use oak for the pier.",
        ];
        assert_eq!(
            added("The user talked about a pier.", talk),
            [
                "Let's use oak for the pier.",
                "The rent is 4,500 euros.",
                "Ask Ottoline for the plan in docs/harbour.ods."
            ]
        );
    }

    #[test]
    fn a_paraphrase_needs_nothing() {
        let talk =
            &["The rent is 4,500 euros.", "My sister Ottoline comes along.", "Let's use oak for the pier."];
        let told = "Rent: 4500 EUR. Ottoline (sister) joins. The pier will use oak.";
        assert_eq!(added(told, talk), Vec::<String>::new());
        assert_eq!(added("预算为5000元。", &["我们的预算是5000元。"]), Vec::<String>::new());
        assert_eq!(added("预算很大。", &["我们的预算是5000元。"]), ["我们的预算是5000元。"]);
    }

    #[test]
    fn what_is_added_is_bounded() {
        let talk: Vec<String> =
            (0..400).map(|n| format!("Customer {n} pays {} euros.", 1_000 + n * 13)).collect();
        let sources: Vec<Source<'_>> = talk
            .iter()
            .zip(1..)
            .map(|(text, number)| Source {
                number: MessageRef(number),
                speaker: Speaker::User,
                text: text.as_str().into(),
                calls: vec![],
            })
            .collect();
        let room = Room { max_tokens: 800, covered: 400, fits: &|_| true };
        let (complete, added) = complete(&Summary::default(), None, &sources, room);
        assert!(added > 5 && render(&complete, 400).len() < 200 * 4 + 400, "{added}");
    }

    #[test]
    fn what_is_added_stays_and_is_counted_as_it_stays() {
        let talk = &[
            "The rent is 4,500 euros.",
            "Ask Ottoline for the plan in docs/harbour.ods.",
            "Let's use oak for the pier.",
        ];
        let told = |n: usize| Entry::new(format!("It was said that wave {n} came in from the Baltic."), []);
        let summary = Summary {
            summary_text: "The user talked about the sea.".into(),
            key_facts: (0..60).map(told).collect(),
            ..Summary::default()
        };
        let sources = said(talk);
        let has_rent = |complete: &Summary| render(complete, 3).contains("4,500");
        for limit in (0..4_000).step_by(50) {
            let room = Room { max_tokens: 1_000, covered: 3, fits: &|text| text.len() <= limit };
            let (complete, added) = complete(&summary, None, &sources, room);
            assert!(complete.is_empty() || render(&complete, 3).len() <= limit);
            let text = render(&complete, 3);
            let kept = talk.iter().filter(|said| text.contains(*said)).count();
            assert_eq!(added, kept, "{limit}: {text}");
            // Whatever has room for a few waves has room for what was left out.
            assert!(text.matches("wave").count() < 3 || kept == 3, "{limit}: {text}");
            assert!(has_rent(&complete) || text.len() < 600, "{text}");
        }
    }

    #[test]
    fn what_the_limit_takes_from_the_model_s_own_facts_is_added() {
        let talk = &["The rent is 4,500 euros.", "The wind blew.", "Let's use oak for the pier."];
        let mut key_facts = vec![Entry::new("Rent: 4500 euros", [])];
        key_facts.extend((0..60).map(|n| Entry::new(format!("Wave {n} came in from the Baltic"), [])));
        let summary = Summary { key_facts, ..Summary::default() };
        let room = Room { max_tokens: 1_000, covered: 3, fits: &|text| text.len() <= 1_200 };
        let (complete, added) = complete(&summary, None, &said(talk), room);
        let text = render(&complete, 3);
        assert!(
            text.contains("The rent is 4,500 euros.") && text.contains("oak") && added == 2,
            "{added}: {text}"
        );
    }
}
