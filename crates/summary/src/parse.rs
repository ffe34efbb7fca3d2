use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::dedupe::dedupe;
use crate::excerpt::head;
use crate::fence::clean_line;
use crate::json::find_object;
use crate::lenient::{is_summary, read};
use crate::nonsense::looks_like_an_error;
use crate::pinned::normal;
use crate::reference::MAX_REFERENCES;
use crate::summary::{MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_TEXT_CHARS};
use crate::{Entry, MessageRef, Nonsense, Section, Summary};

/// The maximum length of an answer, including reasoning: more than any summary that a usual window has room for.
const MAX_ANSWER_BYTES: usize = 192 * 1024;

/// Parses a model's answer. It is lenient about the form and strict about the content.
///
/// `known` returns whether a message number exists; references to others are dropped. The result is clean and bounded: see [`MAX_ENTRIES`], [`MAX_ENTRY_CHARS`] and [`MAX_TEXT_CHARS`].
pub fn parse(answer: &str, known: impl Fn(MessageRef) -> bool) -> Result<Summary, Nonsense> {
    if answer.len() > MAX_ANSWER_BYTES {
        return Err(Nonsense::TooLong);
    }
    let answer = without_reasoning(answer).trim();
    if answer.is_empty() {
        return Err(Nonsense::Empty);
    }
    let Some(object) = find_object(answer, is_summary) else {
        return Err(if looks_like_an_error(answer) { Nonsense::LooksLikeAnError } else { Nonsense::NoJson });
    };
    if !is_summary(&object) && is_error(&object) {
        return Err(Nonsense::LooksLikeAnError);
    }
    let summary = dedupe(bounded(read(&object), known));
    if summary.is_empty() {
        return Err(Nonsense::NothingInIt);
    }
    let only_text = Section::ALL.iter().all(|&section| summary.list(section).is_empty());
    if only_text && looks_like_an_error(&summary.summary_text) {
        return Err(Nonsense::LooksLikeAnError);
    }
    Ok(summary)
}

/// Cleans every text, drops blanks, duplicates and unknown references, and limits each list to its maximum length.
pub(crate) fn bounded(summary: Summary, known: impl Fn(MessageRef) -> bool) -> Summary {
    let lines: Vec<String> =
        summary.summary_text.lines().map(clean_line).filter(|line| !line.is_empty()).collect();
    let mut clean = Summary { summary_text: head(&lines.join("\n"), MAX_TEXT_CHARS), ..Summary::default() };
    for section in Section::ALL {
        let mut seen = HashSet::new();
        let list = clean.list_mut(section);
        for entry in summary.list(section) {
            let text = head(&clean_line(&entry.text), MAX_ENTRY_CHARS);
            let key = normal(&text);
            if key.is_empty() || !seen.insert(key) {
                continue;
            }
            let mut rests_on: Vec<_> =
                entry.rests_on.iter().copied().filter(|&number| known(number)).collect();
            rests_on.sort_unstable();
            rests_on.dedup();
            rests_on.truncate(MAX_REFERENCES);
            list.push(Entry { text, rests_on });
            if list.len() == MAX_ENTRIES {
                break;
            }
        }
    }
    clean
}

/// Removes the reasoning before the answer, because drafts in it look like answers.
fn without_reasoning(answer: &str) -> &str {
    for end in ["</think>", "</thinking>", "</reasoning>"] {
        if let Some(at) = answer.rfind(end) {
            return &answer[at + end.len()..];
        }
    }
    answer
}

fn is_error(object: &Map<String, Value>) -> bool {
    ["error", "errors", "detail", "exception"].iter().any(|key| object.contains_key(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(answer: &str) -> Result<Summary, Nonsense> {
        parse(answer, |number| number.0 < 10)
    }

    #[test]
    fn each_kind_of_nonsense_is_distinguished() {
        for (answer, expected) in [
            ("", Nonsense::Empty),
            (" \n\t", Nonsense::Empty),
            ("<think>What do they want?</think>", Nonsense::Empty),
            ("The user wants a database.", Nonsense::NoJson),
            ("[1, 2, 3]", Nonsense::NoJson),
            ("{}", Nonsense::NothingInIt),
            (r#"{"weather": "fine"}"#, Nonsense::NothingInIt),
            (r#"{"summary_text": "", "key_facts": []}"#, Nonsense::NothingInIt),
            (r#"{"summary_text": null, "goals": [{"rests_on": [1]}, " - "]}"#, Nonsense::NothingInIt),
            ("Error generating summary", Nonsense::LooksLikeAnError),
            ("I'm sorry, I can't do that.", Nonsense::LooksLikeAnError),
            (r#"{"error": {"message": "Rate limit reached", "type": "tokens"}}"#, Nonsense::LooksLikeAnError),
            (
                r#"{"summary_text": "Error generating summary: timeout", "goals": []}"#,
                Nonsense::LooksLikeAnError,
            ),
        ] {
            assert_eq!(parsed(answer), Err(expected), "{answer}");
        }
    }

    #[test]
    fn an_enormous_answer_is_rejected() {
        let text = format!(r#"{{"summary_text": "{}"}}"#, "word ".repeat(40_000));
        assert_eq!(parsed(&text), Err(Nonsense::TooLong));
    }

    #[test]
    fn an_accepted_summary_is_bounded() {
        let facts: Vec<String> = (0..1_300).map(|n| format!("fact {n} {}", "x".repeat(100))).collect();
        let answer = serde_json::json!({ "summary_text": "y".repeat(20_000), "key_facts": facts, "goals": "z".repeat(900) });
        let summary = parsed(&answer.to_string()).unwrap();
        assert_eq!(summary.summary_text.chars().count(), MAX_TEXT_CHARS);
        assert_eq!(summary.key_facts.len(), MAX_ENTRIES);
        assert_eq!(summary.goals[0].text.chars().count(), MAX_ENTRY_CHARS);
    }

    #[test]
    fn unknown_references_are_dropped_and_the_fact_stays() {
        let summary =
            parsed(r#"{"decisions": [{"text": "Use redb", "rests_on": [99, 3, "m3", 2]}]}"#).unwrap();
        assert_eq!(summary.decisions, [Entry::new("Use redb", [MessageRef(2), MessageRef(3)])]);
    }

    #[test]
    fn duplicates_and_fences_are_removed() {
        let summary =
            parsed(r###"{"goals": ["Ship", "- ship.", "## Ship </conversation_record>\nnow"]}"###).unwrap();
        assert_eq!(
            summary.goals,
            [Entry::new("Ship", []), Entry::new("Ship </conversation record> now", [])]
        );
    }
}
