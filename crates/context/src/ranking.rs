//! Ranks passages by the words that they share with a query (BM25).
//!
//! A word counts the more, the fewer passages use it, and the more often a short passage uses it. Nothing is indexed across messages: the
//! words of each are sorted, so a query is merged with them, in time proportional to the length of the conversation.

use std::collections::HashSet;
use std::sync::LazyLock;
use tidegate_summary::plain_words;
use tidegate_wire::Terms;

/// A passage with the weight of the words that it shares with the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    /// The index of the text among those that were searched.
    pub(crate) text: usize,
    /// The index of the passage in it.
    pub(crate) passage: usize,
    pub(crate) score: f64,
}

/// How fast further uses of a word lose weight, and how much long passages are held back.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// A word that more than this share of the passages use says nothing about which one is meant.
const COMMON: f64 = 0.25;

/// The share of the query's weight that a passage has to share, unless it shares two distinctive words with it. Words that no passage uses
/// have weight, too, so that a question about something new finds nothing.
const MIN_MASS: f64 = 0.3;

/// Words of small talk that every message may hold: requests to go on, and the day. In the order of [`plain_words`].
const SMALL_TALK: [&str; LANGUAGES] = [
    "please go going continue again next tell say good today tonight yesterday tomorrow morning",
    "bitte sag sagen weiter mach heute morgen gestern guten tag abend",
    "sigue favor hoy ayer mañana buenos buenas días tardes noches",
    "s c n m t qu continuer suite plaît hui demain hier bonne journée soirée",
    "请 继续 今天 明天 昨天",
    "続けてください お願いします 今日 明日 昨日",
];
const LANGUAGES: usize = 6;

/// For each language, the words that never tell what a message is about.
static PLAIN: LazyLock<Vec<HashSet<u32>>> = LazyLock::new(|| {
    let hashed = |(plain, talk): (Vec<&str>, &str)| {
        Terms::words(&format!("{} {talk}", plain.join(" "))).into_iter().collect()
    };
    plain_words().zip(SMALL_TALK).map(hashed).collect()
});

/// How many of the latest texts tell the language of a short question.
const HEARD: usize = 8;
/// A word of the question counts as much as so many of theirs.
const ASKED: usize = 3;

/// The plain words of the language that a question is in, to judge by its words and by the latest texts.
///
/// A word that tells nothing in one language is a name for something in another: `war`, `hat` and `son` do not find what an English question
/// is about if German and French grammar is left out of it. In doubt, several languages count.
struct Plain(Vec<&'static HashSet<u32>>);

impl Plain {
    fn of(texts: &[&Terms], query: &[u32]) -> Plain {
        let heard = |plain: &HashSet<u32>| -> usize {
            let latest = texts.iter().rev().take(HEARD);
            let theirs =
                latest.flat_map(|terms| terms.postings.iter().filter(|one| plain.contains(&one.word)));
            theirs.count() + ASKED * query.iter().filter(|word| plain.contains(word)).count()
        };
        let heard: Vec<usize> = PLAIN.iter().map(heard).collect();
        let best = heard.iter().max().copied().unwrap_or(0);
        let speaks = |heard: usize| heard * 5 >= best * 4;
        Plain(PLAIN.iter().zip(heard).filter(|(_, heard)| speaks(*heard)).map(|(plain, _)| plain).collect())
    }

    fn has(&self, word: u32) -> bool {
        self.0.iter().any(|plain| plain.contains(&word))
    }
}

/// The share of the best score below which a passage is only there by chance.
const MIN_SHARE: f64 = 0.25;

/// Returns the passages that share enough distinctive words with the query, the best first. Of equal ones, the later goes first. `query` is sorted.
pub(crate) fn rank(texts: &[&Terms], query: &[u32]) -> Vec<Hit> {
    let starts: Vec<usize> = texts
        .iter()
        .scan(0, |next, terms| Some(std::mem::replace(next, *next + terms.passages.len())))
        .collect();
    let lengths =
        || texts.iter().flat_map(|terms| terms.passages.iter().map(|passage| f64::from(passage.words)));
    let count = lengths().count();
    let average = lengths().sum::<f64>() / count.max(1) as f64;

    let mut uses = vec![0u32; query.len()];
    let mut matches = Vec::new();
    for (terms, start) in texts.iter().zip(&starts) {
        merge(terms, query, |word, posting| {
            uses[word] += 1;
            matches.push((start + usize::from(posting.passage), word, posting.count));
        });
    }
    let weight = |uses: u32| (1.0 + (count as f64 - f64::from(uses) + 0.5) / (f64::from(uses) + 0.5)).ln();
    let weights: Vec<f64> = uses.iter().map(|uses| weight(*uses)).collect();
    let plain = Plain::of(texts, query);
    let is_distinctive =
        |word: usize| f64::from(uses[word]) <= (count as f64 * COMMON).max(2.0) && !plain.has(query[word]);
    let mass: f64 = (0..query.len()).filter(|word| is_distinctive(*word)).map(|word| weights[word]).sum();
    let lengths: Vec<f64> = lengths().collect();
    let mut scores = vec![Score::default(); count];
    for (passage, word, times) in matches {
        let times = f64::from(times);
        let held_back = SATURATION * (1.0 - LENGTH + LENGTH * lengths[passage] / average);
        let score = &mut scores[passage];
        score.sum += weights[word] * times * (SATURATION + 1.0) / (times + held_back);
        if is_distinctive(word) {
            score.distinctive += 1;
            score.mass += weights[word];
        }
    }
    let is_about =
        |score: &Score| score.distinctive > 1 || (score.distinctive > 0 && score.mass >= mass * MIN_MASS);
    let best = scores.iter().filter(|score| is_about(score)).map(|score| score.sum).fold(0.0, f64::max);
    let mut hits = Vec::new();
    for (text, start) in starts.iter().enumerate() {
        for passage in 0..texts[text].passages.len() {
            let score = &scores[start + passage];
            if is_about(score) && score.sum >= best * MIN_SHARE {
                hits.push(Hit { text, passage, score: score.sum });
            }
        }
    }
    hits.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| other.place().cmp(&one.place()))
    });
    hits
}

/// What a passage shares with the query.
#[derive(Clone, Debug, Default)]
struct Score {
    sum: f64,
    /// How many distinctive words, and their weight.
    distinctive: usize,
    mass: f64,
}

impl Hit {
    fn place(&self) -> (usize, usize) {
        (self.text, self.passage)
    }
}

/// The words of a text that another one uses, too, and that tell what it is about. Where words are not separated, pairs of characters.
pub fn shared_words(text: &str, other: &str) -> Vec<String> {
    let used = Terms::words(other);
    let plain = Plain::of(&[&Terms::of(other)], &Terms::words(text));
    let is_shared = |word: &str| match Terms::words(word)[..] {
        [hash] => used.binary_search(&hash).is_ok() && !plain.has(hash),
        _ => false,
    };
    let mut shared: Vec<String> = Vec::new();
    for run in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let pairs = starts.windows(3).map(|at| &run[at[0]..at[2]]);
        // A run of which nothing is known as a whole is one of several words.
        let is_dense = Terms::words(run).len() > 1;
        let words: Vec<&str> = if is_dense { pairs.collect() } else { vec![run] };
        for word in words.into_iter().filter(|word| is_shared(word)) {
            if !shared.iter().any(|known| known == word) {
                shared.push(word.to_owned());
            }
        }
    }
    shared
}

/// Calls `found` with each word of the query that the text uses, and where.
fn merge(terms: &Terms, query: &[u32], mut found: impl FnMut(usize, &tidegate_wire::Posting)) {
    let mut word = 0;
    for posting in &terms.postings {
        while query.get(word).is_some_and(|query| *query < posting.word) {
            word += 1;
        }
        match query.get(word) {
            Some(query) if *query == posting.word => found(word, posting),
            Some(_) => {}
            None => break,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, of which one reports a measurement")]
mod tests {
    use super::*;
    use tidegate_testkit::dialogue::{Dialogue, languages};

    fn ranked(texts: &[&str], query: &str) -> Vec<usize> {
        let terms: Vec<Terms> = texts.iter().map(|text| Terms::of(text)).collect();
        let terms: Vec<&Terms> = terms.iter().collect();
        rank(&terms, &Terms::words(query)).iter().map(|hit| hit.text).collect()
    }

    #[test]
    fn a_rare_word_finds_its_passage() {
        let texts = [
            "The weather is nice today.",
            "The database password is swordfish.",
            "The weather was worse yesterday.",
            "What is the plan for the week?",
            "The plan is to rest.",
        ];
        assert_eq!(ranked(&texts, "what was the password of the database?")[0], 1);
        assert_eq!(
            ranked(&texts, "tell me about the weather"),
            [2, 0],
            "of equal ones, the later goes first"
        );
        assert_eq!(ranked(&texts, "thanks a lot"), Vec::<usize>::new());
        assert_eq!(ranked(&[], "password"), Vec::<usize>::new());
    }

    #[test]
    fn common_words_alone_find_nothing() {
        let texts: Vec<String> =
            (0..40).map(|number| format!("yes, we can do number{number} please")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(ranked(&texts, "yes please"), Vec::<usize>::new());
        assert_eq!(ranked(&texts, "yes please, number17"), [17]);
    }

    #[test]
    fn shared_words_are_named() {
        assert_eq!(
            shared_words(
                "What was the alarm code of the back doors?",
                "The alarm code of the back door is 7."
            ),
            ["alarm", "code", "back", "doors"]
        );
        assert_eq!(shared_words("预算是多少？", "我们的预算是5000元。"), ["预算", "算是"]);
        assert_eq!(shared_words("Thanks, please go on.", "Thanks, please go on."), Vec::<String>::new());
    }

    #[test]
    fn grammar_of_one_language_is_a_subject_in_another() {
        let texts = [
            "We went to the war museum and it was very good for all of us.",
            "My son has lost the hat that his aunt has given to him.",
            "Wir haben das im Garten gemacht und es war für alle sehr schön.",
            "Der Turm ist nicht weit von der Brücke, aber man sieht ihn kaum.",
        ];
        assert_eq!(ranked(&texts, "What did I say about the war?")[0], 0);
        assert_eq!(ranked(&texts, "Where did my son leave his hat?")[0], 1);
        assert_eq!(ranked(&texts, "Was war das nicht für ein Tag?"), Vec::<usize>::new());
    }

    /// What the thresholds do, on dialogues of 200 turns in six languages: a question finds its message among as many passages as an excerpt
    /// has, and small talk finds nothing. Without [`MIN_MASS`], it would. [`COMMON`] and [`MIN_SHARE`] make no difference here.
    #[test]
    fn questions_find_their_message_and_small_talk_none() {
        let small_talk = [
            ["Thanks, please go on.", "Good morning!", "Ok, great, continue."],
            ["Danke, mach bitte weiter.", "Guten Morgen!", "Ok, super, weiter."],
            ["Gracias, sigue por favor.", "¡Buenos días!", "Vale, genial, continúa."],
            ["Merci, continue s'il te plaît.", "Bonjour !", "D'accord, super, continue."],
            ["谢谢，请继续。", "你好！", "好的，继续。"],
            ["ありがとう、続けてください。", "おはよう！", "了解、続けて。"],
        ];
        for (language, small_talk) in languages().zip(small_talk) {
            let (mut asked, mut found) = (0, 0);
            for seed in 1..=3 {
                let dialogue = Dialogue::generate(language, seed, 200).unwrap();
                let texts: Vec<&str> = dialogue.messages.iter().map(|(_, text)| text.as_str()).collect();
                for fact in &dialogue.facts {
                    asked += 1;
                    let first = ranked(&texts, &fact.question).into_iter().take(24);
                    found += usize::from(first.into_iter().any(|text| texts[text].contains(&fact.answer)));
                }
                for said in small_talk {
                    assert_eq!(ranked(&texts, said), Vec::<usize>::new(), "{language}: {said}");
                }
            }
            println!("{language}: {found} of {asked}");
            assert!(found * 100 >= asked * 95, "{language}: {found} of {asked}");
        }
    }

    #[test]
    fn chit_chat_finds_nothing() {
        let mut texts: Vec<String> = (0..60)
            .map(|number| format!("We talked about the ferry{number} and the harbour{}.", number % 9))
            .collect();
        texts.extend(
            ["Thanks, that is good to know today.", "Please go on with the list."].map(str::to_owned),
        );
        texts.extend(
            ["谢谢，今天很好。", "Danke, das ist gut.", "ありがとう、続けてください。"].map(str::to_owned),
        );
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for query in [
            "Thanks, please go on.",
            "Ok, great!",
            "Good morning, the weather is awful today and I slept badly.",
            "Danke, mach bitte weiter.",
            "Gracias, sigue por favor.",
            "Merci, continue s'il te plaît.",
            "谢谢，请继续。",
            "ありがとう、続けてください。",
        ] {
            assert_eq!(ranked(&texts, query), Vec::<usize>::new(), "{query}");
        }
        assert_eq!(ranked(&texts, "Thanks, and what about ferry17?"), [17]);
    }
}
