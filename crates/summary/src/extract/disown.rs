//! What a sentence says is no longer so.

use std::collections::BTreeSet;

use super::grammar::is_verb;
use crate::revoke::{BEFORE, ENDS};
use crate::sentence::Sentence;
use crate::word::{Kind, is_stopword, stem, word_list};

/// The things that are taken back, each by the stems of its words: `Redis` of `Use Memcached instead of Redis`,
/// and of `Redis is out`.
pub(super) fn disowned(sentence: &Sentence<'_>, lower: &[String]) -> Vec<BTreeSet<String>> {
    let words = &sentence.words;
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    let carries = |at: usize| words[at].kind != Kind::Plain || !is_stopword(&lower[at]);
    let mut left = 0;
    let mut is_denied = false;
    let mut clause = 0;
    for at in 0..words.len() {
        let before = (
            at.checked_sub(1).filter(|_| at > clause).map(|at| lower[at].as_str()),
            at.checked_sub(2).filter(|_| at > clause + 1).map(|at| lower[at].as_str()),
        );
        if takes_back(before, &lower[at..]) {
            left = REACH;
            // What is denied may go on: `not flying to Lisbon`.
            is_denied = matches!(before.0, Some("not"));
            found.push(BTreeSet::new());
        }
        // `4500, not 3000` gives up what follows.
        let follows_verb = lower[at] != "not" || (at > clause && !carries(at - 1));
        let is_past = lower[at] == "any"
            && lower.get(at + 1).is_some_and(|word| matches!(word.as_str(), "more" | "longer"));
        if (is_past || ENDS.contains(lower[at].as_str()))
            && follows_verb
            && !matches!(lower[clause].as_str(), "don't" | "do" | "please")
        {
            let subject: BTreeSet<String> =
                (clause..at).filter(|&at| carries(at)).map(|at| stem(words[at].text)).collect();
            if subject.len() <= REACH {
                found.push(subject);
            }
        }
        if carries(at) {
            if left > 0
                && let Some(last) = found.last_mut()
            {
                last.insert(stem(words[at].text));
                left -= 1;
            }
        } else if ends_phrase(at, is_denied, lower) {
            left = 0;
        }
        if words[at].ends_clause {
            left = 0;
            clause = at + 1;
        } else if matches!(lower[at].as_str(), "so" | "but" | "because" | "and") {
            clause = at + 1;
        }
    }
    found.retain(|phrase| !phrase.is_empty());
    found
}

/// Whether the small word ends the naming of the thing that is taken back.
fn ends_phrase(at: usize, is_denied: bool, lower: &[String]) -> bool {
    match lower[at].as_str() {
        // What is denied goes on: `not flying to Lisbon`.
        "to" | "in" | "on" | "at" | "for" if is_denied => false,
        // `Cancel the fish and chips` names one thing, `drop Redis and use redb` two.
        "and" => lower.get(at + 1).is_none_or(|next| is_stopword(next) || is_verb(next)),
        word => BOUNDARIES.contains(word),
    }
}

/// The most words that one such phrase names.
const REACH: usize = 4;

fn takes_back(before: (Option<&str>, Option<&str>), rest: &[String]) -> bool {
    match before {
        (Some("of"), Some("instead" | "place"))
        | (Some("than"), Some("rather" | "better"))
        | (Some("longer" | "more"), Some("no"))
        | (Some("from"), Some("over"))
        | (Some("said"), Some("i" | "we")) => true,
        (Some("forget" | "drop"), Some("don't" | "not" | "never")) => false,
        (Some("about" | "use" | "using" | "with" | "want" | "do" | "be"), Some(before)) => {
            DENIALS.contains(before)
        }
        (Some("from"), _) => rest.iter().take(6).any(|word| word == "to"),
        (Some(before), _) => BEFORE.contains(before),
        (None, _) => false,
    }
}

word_list! {
    /// What stands before the verb of the thing that is given up.
    DENIALS = "forget, not, stop, away, out, don't, doesn't, can't, won't, didn't, never"
}

word_list! {
    /// What ends the naming of the thing that is taken back.
    BOUNDARIES = "\
        for, to, with, and, but, because, by, as, since, we, i, it, is, so, in, on, at, ->, →"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_is_found_before_and_after_its_mark() {
        for text in [
            "Use Memcached instead of Redis.",
            "Redis is out, we take Memcached.",
            "scrap redis, go with memcached",
            "We're moving from Redis to Memcached.",
            "Memcached, not Redis.",
            "Redis does not scale, so Memcached it is.",
            "No longer Redis but Memcached.",
            "Memcached takes over from Redis.",
        ] {
            let sentence = Sentence::new(text);
            let lower: Vec<String> = sentence.words.iter().map(|word| word.text.to_lowercase()).collect();
            let found = disowned(&sentence, &lower);
            let has = |word: &str| found.iter().any(|phrase| phrase.contains(&stem(word)));
            assert!(has("redis") && !has("memcached"), "{text}: {found:?}");
        }
    }
}
