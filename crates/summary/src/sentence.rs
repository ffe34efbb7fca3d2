//! Sentences and their words, in any script.

use std::ops::Range;

use crate::fence::without_bullet;
use crate::word::{Kind, Word, phrases, words};

/// A longer sentence is taken apart: it is a list or a paste, and an entry must stay readable.
const MAX_CHARS: usize = 280;

/// A sentence with what the rules look at.
#[derive(Clone, Debug)]
pub(crate) struct Sentence<'a> {
    pub(crate) text: &'a str,
    pub(crate) words: Vec<Word<'a>>,
    /// The words in lower case, each between single spaces, so that a phrase is found with `contains(" let's
    /// use ")`.
    pub(crate) spoken: String,
    /// One bit for each word. There are hundreds of phrases, and this tells of most of them that they do not
    /// occur.
    marks: u128,
}

impl<'a> Sentence<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let words = words(text);
        let mut spoken = String::with_capacity(text.len() + 2);
        spoken.push(' ');
        for word in &words {
            spoken.extend(
                word.text.chars().flat_map(char::to_lowercase).map(|c| if c == '’' { '\'' } else { c }),
            );
            spoken.push(' ');
        }
        let marks = spoken.split(' ').fold(0, |marks, word| marks | mark(word));
        Self { text, words, spoken, marks }
    }

    /// Whether one of the phrases, listed with commas between them, occurs as whole words.
    pub(crate) fn says(&self, list: &str) -> bool {
        let may_occur = |phrase: &&str| self.marks & mark(phrase.split(' ').next().unwrap_or(phrase)) != 0;
        phrases(list).filter(may_occur).any(|phrase| {
            self.spoken.match_indices(phrase).any(|(at, _)| {
                self.spoken[..at].ends_with(' ') && self.spoken[at + phrase.len()..].starts_with(' ')
            })
        })
    }

    pub(crate) fn starts_with(&self, list: &str) -> bool {
        let spoken = self.spoken.trim_start();
        phrases(list).any(|phrase| spoken.strip_prefix(phrase).is_some_and(|rest| rest.starts_with(' ')))
    }

    pub(crate) fn is_question(&self) -> bool {
        self.text
            .trim_end_matches(['"', '\'', ')', '*', '_', '”', '»', ' '])
            .ends_with(['?', '？', '؟', '⁇', '‽'])
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.words.iter().filter(|word| word.kind == kind).count()
    }
}

fn mark(word: &str) -> u128 {
    let hash =
        word.bytes().fold(0xcbf2_9ce4_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    1 << (hash >> 25)
}

/// The sentences of a message. Code blocks are left out: they are artifacts, not statements.
pub(crate) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let mut found = Vec::new();
    let mut in_code = false;
    // An odd number of fences means that one was never closed; then all of it is text.
    let has_code = text.matches("```").count().is_multiple_of(2);
    for line in text.lines() {
        if has_code && line.trim_start().starts_with("```") {
            in_code = !in_code && line.matches("```").count() == 1;
            continue;
        }
        let line = without_bullet(line.trim());
        if in_code || is_code(line) {
            continue;
        }
        for part in joined(line, parts(line)) {
            found.extend(pieces(&line[part]).into_iter().map(Sentence::new));
        }
    }
    found
}

/// The ranges of a line between the signs that end sentences.
pub(crate) fn parts(line: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|&(_, next)| next);
        let ends = match c {
            '。' | '！' | '？' | '।' | '｡' => true,
            '.' | '!' | '?' | '…' | '؟' | '۔' => match next {
                None => true,
                Some(next) if next.is_whitespace() => c != '.' || !is_abbreviation(&line[start..at]),
                Some(_) => false,
            },
            _ => false,
        };
        if ends {
            ranges.push(start..end);
            start = end;
        }
    }
    ranges.push(start..line.len());
    ranges.retain(|range| line[range.clone()].chars().any(char::is_alphanumeric));
    ranges
}

/// Joins a short sentence about `it`, and a fragment like `I prefer 8:40`, to the one before, which says what
/// it is about: apart, neither could stand in a summary. `Scrap 8:40.` at the beginning joins the one after
/// it.
fn joined(line: &str, parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    let mut is_fragment_before = false;
    for part in parts {
        let words = words(&line[part.clone()]);
        let opening =
            words.first().map(|word| word.text.to_lowercase().replace('’', "'")).unwrap_or_default();
        let second = words.get(1).map(|word| word.text.to_lowercase()).unwrap_or_default();
        let refers = words.len() < 10
            && phrases("it, it's, they, they're, that's, he, she").any(|word| word == opening);
        let wants = words.len() < 6 && phrases("prefer, want, take").any(|word| word == second);
        // In a script without spaces a whole sentence is one word.
        let is_fragment = (2..5).contains(&words.len()) && words.iter().any(|word| word.kind != Kind::Plain);
        match joined.last_mut() {
            Some(before)
                if (refers || wants || is_fragment || is_fragment_before)
                    && part.end - before.start < MAX_CHARS =>
            {
                before.end = part.end;
                is_fragment_before = false;
            }
            _ => {
                joined.push(part);
                is_fragment_before = is_fragment;
            }
        }
    }
    joined
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or(before);
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let known = [
        "e.g", "i.e", "etc", "vs", "mr", "mrs", "ms", "dr", "st", "no", "approx", "ca", "fig", "inc", "prof",
    ];
    is_initial || known.contains(&word.to_ascii_lowercase().as_str())
}

/// A sentence in pieces of bearable length, cut after a comma or between words.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while let Some((limit, _)) = rest.char_indices().nth(MAX_CHARS) {
        let window = &rest[..limit];
        let comma = window.rfind([',', ';', '，', '；', '、']).filter(|&at| at * 2 > limit);
        let cut = comma.or_else(|| window.rfind(char::is_whitespace)).filter(|&at| at > 0).unwrap_or(limit);
        let cut = rest[cut..]
            .char_indices()
            .nth(usize::from(comma.is_some()))
            .map_or(rest.len(), |(at, _)| cut + at);
        pieces.push(rest[..cut].trim());
        rest = rest[cut..].trim();
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Whether a line is more signs than words, as code, tables and logs are.
fn is_code(line: &str) -> bool {
    if line.ends_with(['{', '}', ';']) && !line.contains(". ") {
        return true;
    }
    let (mut signs, mut letters) = (0_usize, 0_usize);
    for c in line.chars() {
        match c {
            '{' | '}' | '(' | ')' | '[' | ']' | '<' | '>' | '=' | ';' | '|' | '\\' | '$' | '+' | '&' => {
                signs += 1
            }
            c if c.is_alphanumeric() => letters += 1,
            _ => {}
        }
    }
    letters == 0 || signs * 6 > letters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        assert_eq!(
            texts(
                "Dr. J. Kerr runs v1.2 on foo.example.com, e.g. at night. Good!\n- It costs 3.50 (approx. 4). Ok?"
            ),
            [
                "Dr. J. Kerr runs v1.2 on foo.example.com, e.g. at night.",
                "Good!",
                "It costs 3.50 (approx. 4).",
                "Ok?"
            ]
        );
        assert_eq!(texts("我们用红色。价格是30元！好吗？"), ["我们用红色。", "价格是30元！", "好吗？"]);
    }

    #[test]
    fn a_sentence_about_it_stays_with_what_it_is() {
        assert_eq!(
            texts("I take the port back. It should be 81. Thanks."),
            ["I take the port back. It should be 81.", "Thanks."]
        );
    }

    #[test]
    fn code_is_not_a_statement() {
        assert_eq!(texts("Before.\n```rust\nlet x = 1;\n```\nAfter.\nfn main() {\n}"), ["Before.", "After."]);
        assert_eq!(texts("Before.\n```\nnever closed").len(), 2);
    }

    #[test]
    fn long_sentences_come_in_pieces() {
        let text = "word ".repeat(400);
        let pieces = texts(&text);
        assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.chars().count() <= MAX_CHARS));
        assert_eq!(pieces.join(" "), text.trim());
        assert!(texts(&"日".repeat(1_000)).iter().all(|piece| piece.chars().count() <= MAX_CHARS));
    }

    #[test]
    fn phrases_are_whole_words() {
        let sentence = Sentence::new("Let’s use, say, Redis.");
        assert!(sentence.says("let's use") && sentence.starts_with("let's"));
        assert!(!sentence.says("us"));
    }
}
