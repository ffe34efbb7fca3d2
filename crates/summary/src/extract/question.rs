//! Which questions nobody answered.

use std::collections::BTreeSet;

use super::candidate::Origin;
use super::cue;
use crate::sentence::Sentence;
use crate::word::{Kind, is_stopword, stem};

/// What was said in one sentence, as far as it can be an answer.
#[derive(Debug)]
pub(super) struct Statement {
    /// The place of its message among those being folded.
    place: usize,
    origin: Origin,
    stems: BTreeSet<String>,
    has_substance: bool,
    is_open: bool,
}

impl Statement {
    pub(super) fn new(place: usize, origin: Origin, sentence: &Sentence<'_>) -> Self {
        let has_substance = sentence.words.iter().any(|word| word.kind != Kind::Plain);
        let is_open = cue::leaves_open(sentence) || sentence.is_question();
        Self { place, origin, stems: stems(sentence), has_substance, is_open }
    }
}

/// Whether a question, asked by `asker` in the message at `place`, was answered afterwards.
///
/// The simple rule: one of the next two messages of the other side speaks of the same thing or names
/// something, or any later statement of anybody speaks of most of what was asked. A reply that says that it
/// is not known is none.
pub(super) fn is_answered(
    question: &Sentence<'_>,
    asker: Origin,
    place: usize,
    statements: &[Statement],
) -> bool {
    let asked = stems(question);
    let start = statements.partition_point(|statement| statement.place <= place);
    let mut replies: Vec<usize> = Vec::new();
    for statement in statements[start..].iter().filter(|statement| !statement.is_open) {
        let shared = statement.stems.intersection(&asked).count();
        if shared >= 2 && shared * 2 >= asked.len() {
            return true;
        }
        // Nobody asks what an earlier fold kept: only a statement on the matter itself answers it.
        let replies_to = matches!(
            (asker, statement.origin),
            (Origin::User, Origin::Assistant) | (Origin::Assistant, Origin::User)
        );
        if !replies_to {
            continue;
        }
        if replies.last() != Some(&statement.place) {
            replies.push(statement.place);
        }
        if replies.len() <= 2
            && (shared > 0 || asked.is_empty() || (replies.len() == 1 && statement.has_substance))
        {
            return true;
        }
    }
    false
}

fn stems(sentence: &Sentence<'_>) -> BTreeSet<String> {
    let words = sentence.words.iter().map(|word| word.text);
    words.filter(|word| !is_stopword(&word.to_lowercase())).map(stem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(question: &str, asker: Origin, reply: &str, by: Origin) -> bool {
        let statement = Statement::new(1, by, &Sentence::new(reply));
        is_answered(&Sentence::new(question), asker, 0, &[statement])
    }

    #[test]
    fn a_reply_on_the_matter_answers() {
        assert!(answered(
            "Which region do we deploy to?",
            Origin::User,
            "The region is fixed by contract.",
            Origin::Assistant
        ));
        assert!(answered(
            "Which region do we deploy to?",
            Origin::Assistant,
            "Frankfurt, eu-central-1.",
            Origin::User
        ));
    }

    #[test]
    fn other_talk_does_not() {
        assert!(!answered(
            "Which region do we deploy to?",
            Origin::User,
            "the tests are green",
            Origin::Assistant
        ));
        assert!(!answered(
            "Which region do we deploy to?",
            Origin::User,
            "the region is undecided",
            Origin::Assistant
        ));
        assert!(!answered(
            "Which region do we deploy to?",
            Origin::Earlier,
            "It is called Bob.",
            Origin::User
        ));
    }
}
