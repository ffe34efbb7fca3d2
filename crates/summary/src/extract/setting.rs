use std::collections::BTreeSet;

use super::cue;
use crate::sentence::Sentence;
use crate::word::{Word, is_stopword, phrases, stem};

/// A matter that a sentence gives a value to: the `main course` of `The main course is cod` and of `I'd
/// rather have cod for the main course`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) matter: BTreeSet<String>,
    /// Whether the form of the sentence says so. `Buy plates for the main course` only mentions it.
    pub(super) is_firm: bool,
}

/// The definite noun phrases of a sentence that stand where a value is given to them: before or after a form
/// of `be`, after `for` or `as`, or named first and then called `it`.
pub(super) fn settings(sentence: &Sentence<'_>, lower: &[String]) -> Vec<Setting> {
    let words = &sentence.words;
    let chooses = cue::chooses(sentence);
    let by_pronoun = sentence
        .says("it's, it is, it was, it became, it becomes, it should, it will, it has, it must, it needs");
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let is_determined = is_any("the, our, my", &lower[at]);
        let start = if is_determined { at + 1 } else { at };
        if !is_determined && at > 0 {
            at += 1;
            continue;
        }
        let end = phrase_end(words, lower, start);
        if end > start {
            let before = at.checked_sub(1).map_or("", |before| lower[before].as_str());
            let goes_on = !words[end - 1].ends_clause;
            let after = lower.get(end).filter(|_| goes_on).map_or("", String::as_str);
            // `The cutoff: 18 kHz.`
            let is_label = is_determined && at == 0 && !goes_on && end < words.len();
            let is_firm = is_label
                || is_any(FORMS_OF_BE, before)
                || is_any(FORMS_OF_BE, after)
                || (by_pronoun && is_determined);
            let follows = is_any("for, as, on, about", before);
            if is_firm || (is_determined && (follows || chooses)) {
                let matter = words[start..end].iter().map(|word| stem(word.text)).collect();
                found.push(Setting { matter, is_firm: is_firm || (follows && chooses) });
            }
        }
        at = end.max(at + 1);
    }
    found
}

fn phrase_end(words: &[Word<'_>], lower: &[String], start: usize) -> usize {
    let mut end = start;
    while end < words.len()
        && !is_any(FORMS_OF_BE, &lower[end])
        && (!is_stopword(&lower[end]) || end > start && lower[end] == "time")
    {
        end += 1;
        if words[end - 1].ends_clause {
            break;
        }
    }
    end
}

fn is_any(list: &str, word: &str) -> bool {
    phrases(list).any(|listed| listed == word)
}

const FORMS_OF_BE: &str = "is, are, was, were, be, become, becomes, became, will, shall, should, must, needs, need, has, ought, goes, gets, stays, remains";

#[cfg(test)]
mod tests {
    use super::*;

    fn matters(text: &str) -> Vec<(String, bool)> {
        let sentence = Sentence::new(text);
        let lower: Vec<String> = sentence.words.iter().map(|word| word.text.to_lowercase()).collect();
        let settings = settings(&sentence, &lower).into_iter();
        settings
            .map(|setting| (setting.matter.into_iter().collect::<Vec<_>>().join(" "), setting.is_firm))
            .collect()
    }

    #[test]
    fn a_matter_is_found_on_either_side_of_its_value() {
        for text in [
            "The main course is cod.",
            "Cod has to be the main course.",
            "I would rather have cod for the main course.",
            "Remember the main course? It became cod.",
            "Main course will be cod.",
        ] {
            assert!(matters(text).contains(&("cours main".into(), true)), "{text}: {:?}", matters(text));
        }
    }

    #[test]
    fn a_mention_is_not_firm() {
        assert_eq!(matters("Buy plates for the main course."), [("cours main".into(), false)]);
        assert!(matters("Wash the plates.").is_empty());
    }
}
