//! How much a sentence is worth keeping as a fact.

use super::candidate::Origin;
use super::claim::Claim;
use super::cue;
use super::observation::is_observation;
use crate::sentence::Sentence;
use crate::word::Kind;

/// A statement below this is not kept at all. What a user states plainly just reaches it.
pub(super) const WORTH_KEEPING: i32 = 2;

/// Names and figures are what a reader can't guess; who said it tells how much it binds.
pub(super) fn worth(sentence: &Sentence<'_>, claim: &Claim, origin: Origin) -> i32 {
    // Nobody knows any more who said what an earlier fold kept, but for what its text tells.
    let is_tool = is_observation(sentence.text);
    let is_tool = is_tool || origin == Origin::Tool;
    let is_statement = origin == Origin::User || (origin == Origin::Earlier && !is_tool);
    let heard = match origin {
        Origin::Earlier if is_tool => 1,
        Origin::Earlier | Origin::User => 2,
        Origin::Assistant | Origin::Tool => 0,
    };
    let weight = |count: usize| match count {
        0 => 0,
        1 => 2,
        _ => 3,
    };
    let mut worth = heard + weight(sentence.count(Kind::Figure)) + weight(sentence.count(Kind::Name));
    if sentence.says(STATING) {
        worth += 1;
    }
    if is_statement && sentence.says("my, our, i'm, we're, i have, we have") {
        worth += 1;
    }
    if is_foreign(sentence.text) && is_statement {
        worth += 1;
    }
    if cue::is_chatter(sentence) {
        worth -= 3;
    }
    let has_label = sentence.words.iter().rev().skip(1).any(|word| word.introduces);
    if is_statement && (claim.is_setting() || has_label) {
        worth += 1;
    }
    // `redis for the cache` says in four words what others say in ten.
    let has_topic = claim.topics.iter().any(|topic| topic.head.is_some());
    let fragment = sentence.words.len() < 5 && origin == Origin::User && !has_topic && !has_label;
    if fragment || sentence.words.len() > 40 || (origin == Origin::User && cue::requests(sentence)) {
        worth -= 1;
    }
    if origin == Origin::Assistant && (cue::announces(sentence) || sentence.starts_with("let me, now")) {
        worth -= 3;
    }
    // A log is full of names and figures, and few of them matter.
    if is_tool { worth.min(MOST_OF_A_TOOL) } else { worth }
}

const MOST_OF_A_TOOL: i32 = 3;

/// Whether no rule of this crate can read the words, so that only the speaker and the figures count.
fn is_foreign(text: &str) -> bool {
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    let total = letters.clone().count();
    letters.by_ref().filter(|c| !c.is_ascii()).count() * 2 > total
}

const STATING: &str = "\
    is, are, was, were, will, has, have, costs, means, called, named, lives, works, runs, uses, belongs, \
    owns, equals, starts, ends, expires, contains, requires, returns, allergic, located";

#[cfg(test)]
mod tests {
    use super::*;

    fn worth_of(text: &str, origin: Origin) -> i32 {
        let sentence = Sentence::new(text);
        worth(&sentence, &Claim::of(&sentence), origin)
    }

    fn keeps(text: &str, origin: Origin) -> bool {
        worth_of(text, origin) >= WORTH_KEEPING
    }

    #[test]
    fn a_users_statements_are_kept_and_small_talk_is_not() {
        assert!(keeps("The invoice number is 4711.", Origin::User));
        assert!(keeps("half of the crew is allergic to wool", Origin::User));
        assert!(keeps("Ask Ingrid about the key.", Origin::User));
        assert!(keeps("Наш сервер стоит в 3 стойке.", Origin::User));
        assert!(!keeps("Thanks, that looks good!", Origin::User));
        assert!(!keeps("Let me look at that file.", Origin::Assistant));
    }

    #[test]
    fn an_assistant_must_say_more_than_a_user() {
        let text = "The suite has 12 tests.";
        assert!(worth_of(text, Origin::User) > worth_of(text, Origin::Assistant));
    }
}
