//! Which tables of words apply to a text: those of the language that it is written in, as far as that can be told.
//!
//! A word of one language misleads in another: `but` is a goal in French, `todo` is everything in Spanish. What tells is how many words of
//! each table a text has, and for a short one the conversation that it is part of. In doubt, several tables apply.

use super::cue::{LANGUAGES, SPACED, known_words};
use std::collections::HashMap;
use std::sync::LazyLock;

/// A set of languages, by their places among the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tongues(u8);

impl Tongues {
    pub(super) fn has(self, language: usize) -> bool {
        self.0 & 1 << language != 0
    }
}

/// How much a conversation has of each language.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spoken([f64; LANGUAGES]);

/// What the conversation counts beside one text, in words.
const CONVERSATION: f64 = 3.0;
/// A language applies if it has this share of what the best one has.
const IN_DOUBT: f64 = 0.8;
/// Signs of Chinese grammar that Japanese does not write, or hardly.
const CHINESE: &str = "的了们这那吗呢吧啊你我他她它是不在么没把就都很请";

static KNOWN: LazyLock<HashMap<&'static str, u8>> = LazyLock::new(|| {
    let mut known: HashMap<&str, u8> = HashMap::new();
    known_words().for_each(|(language, word)| *known.entry(word).or_default() |= 1 << language);
    known
});

impl Spoken {
    pub(super) fn hear(&mut self, text: &str) {
        evidence(text).iter().zip(&mut self.0).for_each(|(more, sum)| *sum += more);
    }

    /// The languages that a text of this conversation may be in, one at least with spaces between words and one without.
    pub(super) fn of(&self, text: &str) -> Tongues {
        let evidence = evidence(text);
        let mut tongues = 0;
        for group in [0..SPACED, SPACED..LANGUAGES] {
            let all: f64 = self.0[group.clone()].iter().sum::<f64>().max(1.0);
            let score = |language: usize| evidence[language] + CONVERSATION * self.0[language] / all;
            let best = group.clone().map(score).fold(0.0, f64::max);
            group
                .filter(|&language| score(language) >= best * IN_DOUBT)
                .for_each(|language| tongues |= 1 << language);
        }
        Tongues(tongues)
    }
}

fn evidence(text: &str) -> [f64; LANGUAGES] {
    let mut evidence = [0.0; LANGUAGES];
    let lower = text.to_lowercase().replace('’', "'");
    for word in lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()) {
        let languages = KNOWN.get(word).copied().unwrap_or(0);
        (0..SPACED)
            .filter(|language| languages & 1 << language != 0)
            .for_each(|language| evidence[language] += 1.0);
    }
    for sign in lower.chars() {
        match sign {
            '\u{3040}'..='\u{30ff}' => evidence[SPACED + 1] += 1.0,
            sign if sign > '\u{2e80}' && CHINESE.contains(sign) => evidence[SPACED] += 1.0,
            _ => {}
        }
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn languages(conversation: &str, text: &str) -> Vec<usize> {
        let mut spoken = Spoken::default();
        spoken.hear(conversation);
        let tongues = spoken.of(text);
        (0..LANGUAGES).filter(|language| tongues.has(*language)).collect()
    }

    #[test]
    fn a_text_is_in_its_language_and_a_short_one_in_that_of_the_conversation() {
        let english = "We want to know what this is about, and who has done it.";
        assert_eq!(languages(english, "I like the tower, but not the sin of it.")[0], 0);
        assert!(!languages(english, "I like the tower, but not the sin of it.").contains(&3));
        assert!(!languages(english, "No, use spaces.").contains(&2));
        assert_eq!(languages(english, "Wir wollen das nicht und gehen dann zu dem Turm.")[0], 1);
        assert_eq!(languages("Está todo en la mesa, y no sé por qué.", "Todo está listo.")[0], 2);
        assert_eq!(languages("これは赤です。", "赤、不明。")[4..], [5]);
        assert_eq!(languages("这是红色的。", "改成蓝。")[4..], [4]);
    }

    #[test]
    fn in_doubt_all_tables_apply() {
        assert_eq!(languages("", "Xyzzy 42."), (0..LANGUAGES).collect::<Vec<_>>());
    }
}
