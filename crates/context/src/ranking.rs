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

/// The share of the query's weight that a passage has to share, unless it shares two telling words with it. Words that no passage uses
/// have weight, too, so that a question about something new finds nothing.
const MIN_MASS: f64 = 0.3;

/// Words of small talk that every message may hold: requests to go on, and the day.
const SMALL_TALK: &str = "please go going continue again next tell say good today tonight yesterday tomorrow morning \
    bitte sag sagen weiter mach heute morgen gestern sigue favor hoy ayer mañana continuer suite plaît hui demain hier \
    请 继续 今天 明天 昨天 続けてください お願いします 今日 明日 昨日";

/// The words that never tell what a message is about.
static PLAIN: LazyLock<HashSet<u32>> = LazyLock::new(|| {
    let words: Vec<&str> = plain_words().chain(SMALL_TALK.split_whitespace()).collect();
    Terms::words(&words.join(" ")).into_iter().collect()
});

/// The share of the best score below which a passage is only there by chance.
const MIN_SHARE: f64 = 0.25;

/// Returns the passages that share enough telling words with the query, the best first. Of equal ones, the later goes first. `query` is sorted.
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
    let is_telling = |word: usize| {
        f64::from(uses[word]) <= (count as f64 * COMMON).max(2.0) && !PLAIN.contains(&query[word])
    };
    let mass: f64 = (0..query.len()).filter(|word| is_telling(*word)).map(|word| weights[word]).sum();
    let lengths: Vec<f64> = lengths().collect();
    let mut scores = vec![Score::default(); count];
    for (passage, word, times) in matches {
        let times = f64::from(times);
        let held_back = SATURATION * (1.0 - LENGTH + LENGTH * lengths[passage] / average);
        let score = &mut scores[passage];
        score.sum += weights[word] * times * (SATURATION + 1.0) / (times + held_back);
        if is_telling(word) {
            score.telling += 1;
            score.mass += weights[word];
        }
    }
    let is_about = |score: &Score| score.telling > 1 || (score.telling > 0 && score.mass >= mass * MIN_MASS);
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
    /// How many telling words, and their weight.
    telling: usize,
    mass: f64,
}

impl Hit {
    fn place(&self) -> (usize, usize) {
        (self.text, self.passage)
    }
}

/// The words of a text that another one uses, too, and that tell what it is about. Where words are not separated, pairs of signs.
pub fn shared_words(text: &str, other: &str) -> Vec<String> {
    let used = Terms::words(other);
    let is_shared = |word: &str| match Terms::words(word)[..] {
        [hash] => used.binary_search(&hash).is_ok() && !PLAIN.contains(&hash),
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
mod tests {
    use super::*;

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
