//! The words of a message, by which its passages are found again.
//!
//! A message is divided into passages of a few sentences. Of each, only hashes of its words are kept, no text. Words are runs of letters
//! and digits in lower case; scripts that are written without spaces give pairs of neighbouring characters instead.

use crate::{Content, MessageView, Part};
use std::borrow::Cow;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The words of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The passages of the message's [text](MessageView::text), in order.
    pub passages: Box<[TermCount]>,
    /// Sorted by word, then by passage.
    pub postings: Box<[Posting]>,
}

/// A passage of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermCount {
    /// Where it starts and ends, in bytes.
    pub start: u32,
    pub end: u32,
    /// How many words it has.
    pub words: u32,
}

/// How often a passage uses a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    pub word: u32,
    pub passage: u16,
    pub count: u16,
}

/// The length in bytes up to which a message is one passage, and that of a passage of a longer one.
const MAX_PASSAGE: usize = 800;

/// How much of a text is indexed. A longer one is a dump that no passage stands for.
const MAX_INDEXED: usize = 1 << 20;

impl Terms {
    #[must_use]
    pub fn of(text: &str) -> Terms {
        let mut passages = Vec::new();
        let mut words = Vec::new();
        for range in divided(text) {
            let Ok(passage) = u16::try_from(passages.len()) else { break };
            let before = words.len();
            each_word(&text[range.clone()], |word| words.push((word, passage)));
            let count = u32::try_from(words.len() - before).unwrap_or(u32::MAX);
            // Texts are limited to what fits.
            let (start, end) = (range.start as u32, range.end as u32);
            passages.push(TermCount { start, end, words: count });
        }
        words.sort_unstable();
        let runs = words.chunk_by(|one, next| one == next);
        let posting = |run: &[(u32, u16)]| {
            let (word, passage) = *run.first()?;
            Some(Posting { word, passage, count: u16::try_from(run.len()).unwrap_or(u16::MAX) })
        };
        Terms { passages: passages.into(), postings: runs.filter_map(posting).collect() }
    }

    /// The distinct words of a text, sorted.
    #[must_use]
    pub fn words(text: &str) -> Vec<u32> {
        let mut words = Vec::new();
        let indexed = divided(text).last().map_or(0, |last| last.end);
        each_word(&text[..indexed], |word| words.push(word));
        words.sort_unstable();
        words.dedup();
        words
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.passages) + size_of_val(&*self.postings)
    }
}

impl<'a> MessageView<'a> {
    /// Everything that the message says in words: results, its own text, and calls. It follows from what is part of the digest, so equal
    /// digests mean equal texts.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        if let (Content::Text(text), true) =
            (&self.content, self.results.is_empty() && self.refusal.is_none())
            && self.calls().next().is_none()
        {
            return Cow::Borrowed(text);
        }
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        for content in self.contents() {
            match content {
                Content::Text(text) => texts.push(Cow::Borrowed(text)),
                Content::Parts(parts) => texts.extend(parts.iter().filter_map(|part| match part {
                    Part::Text(text) | Part::Refusal(text) => Some(Cow::Borrowed(&**text)),
                    Part::Image { .. } | Part::Audio { .. } | Part::File { .. } | Part::Other(_) => None,
                })),
                Content::Absent | Content::Null | Content::Unexpected(_) => {}
            }
        }
        texts.extend(self.refusal.as_deref().map(Cow::Borrowed));
        texts.extend(self.calls().map(|call| Cow::Owned(format!("{}({})", call.name, call.arguments))));
        texts.retain(|text| !text.is_empty());
        match <[_; 1]>::try_from(texts) {
            Ok([only]) => only,
            Err(texts) => Cow::Owned(texts.join("\n")),
        }
    }
}

/// Divides a text into passages. White space between them belongs to none.
fn divided(text: &str) -> impl Iterator<Item = Range<usize>> {
    let indexed = &text[..floor(text, MAX_INDEXED)];
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &indexed[at..];
        let skipped = rest.len() - rest.trim_start().len();
        let rest = &rest[skipped..];
        if rest.is_empty() {
            return None;
        }
        let start = at + skipped;
        at = start + cut(rest);
        Some(start..start + indexed[start..at].trim_end().len())
    })
}

/// Where the first passage of a text ends: after a paragraph, a line, a sentence or a word, whichever leaves it long enough.
fn cut(text: &str) -> usize {
    if text.len() <= MAX_PASSAGE {
        return text.len();
    }
    let most = &text[..floor(text, MAX_PASSAGE)];
    let after = |end: &str| most.rfind(end).map(|at| at + end.len());
    let sentence = || [". ", "! ", "? ", "。", "！", "？", "; "].iter().filter_map(|end| after(end)).max();
    let word = || most.rfind(char::is_whitespace).map(|at| at + 1);
    let enough = |at: &usize| *at >= most.len() / 2;
    let ends = [after("\n\n"), after("\n"), sentence(), word()];
    let best = ends.into_iter().flatten().find(enough).unwrap_or(most.len());
    // A white space can be longer than a byte.
    floor(text, best).max(1)
}

/// The largest index up to `at` that is between two characters.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn each_word(text: &str, mut found: impl FnMut(u32)) {
    let mut word = String::new();
    let mut dense: Option<char> = None;
    for letter in text.chars() {
        if letter.is_ascii() {
            dense = None;
            if letter.is_ascii_alphanumeric() {
                word.push(letter.to_ascii_lowercase());
            } else {
                finish(&mut word, &mut found);
            }
        } else if is_dense(letter) {
            finish(&mut word, &mut found);
            if let Some(before) = dense.replace(letter) {
                let mut pair = [0; 8];
                let length = before.encode_utf8(&mut pair).len();
                let length = length + letter.encode_utf8(&mut pair[length..]).len();
                found(hash(&pair[..length]));
            }
        } else {
            dense = None;
            if letter.is_alphanumeric() || is_mark(letter) {
                word.extend(letter.to_lowercase());
            } else {
                finish(&mut word, &mut found);
            }
        }
    }
    finish(&mut word, &mut found);
}

fn finish(word: &mut String, found: &mut impl FnMut(u32)) {
    if !word.is_empty() {
        found(hash(stem(word).as_bytes()));
        word.clear();
    }
}

/// A word without an ending of one or two letters: many languages tell one from many by it.
fn stem(word: &str) -> &str {
    if word.len() <= 4 || !word.as_bytes()[0].is_ascii_alphabetic() {
        return word;
    }
    let stem = word.strip_suffix("es").or_else(|| word.strip_suffix('s')).unwrap_or(word);
    stem.strip_suffix('e').unwrap_or(stem)
}

/// Whether a script is written without spaces between words, or joins them with their endings.
fn is_dense(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}')
}

/// Whether a character only changes the one before it, as vowel signs do.
fn is_mark(letter: char) -> bool {
    matches!(letter,
        '\u{0300}'..='\u{036f}' | '\u{0591}'..='\u{05c7}' | '\u{0610}'..='\u{061a}' | '\u{064b}'..='\u{065f}' | '\u{0670}'
        | '\u{0900}'..='\u{0903}' | '\u{093a}'..='\u{094f}' | '\u{0980}'..='\u{0983}' | '\u{09bc}'..='\u{09cd}'
        | '\u{0b82}' | '\u{0bbe}'..='\u{0bcd}' | '\u{0c3e}'..='\u{0c56}' | '\u{200c}' | '\u{200d}')
}

/// The same in every process, so that all of them find the same passages.
fn hash(word: &[u8]) -> u32 {
    XxHash3_64::oneshot(word) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use proptest::prelude::*;

    fn same(one: &str, other: &str) -> usize {
        let other = Terms::words(other);
        Terms::words(one).iter().filter(|word| other.binary_search(word).is_ok()).count()
    }

    #[test]
    fn words_are_found_whatever_their_case_and_number() {
        assert_eq!(same("The Quick fox", "QUICK foxes!"), 2);
        assert_eq!(same("src/parser_04.rs", "parser 04"), 2);
        assert_eq!(same("Straße, Ärger", "STRASSE ärger"), 1);
        assert_eq!(same("gas", "ga"), 0, "short words have no ending");
        assert_eq!(Terms::words("--- ?!"), Vec::<u32>::new());
    }

    #[test]
    fn scripts_without_spaces_are_found_by_pairs_of_characters() {
        assert_eq!(same("会议定在星期五下午", "星期五开会吗"), 2);
        assert_eq!(same("パスワードは何ですか", "パスワード"), 4);
        assert_eq!(same("회의는 금요일입니다", "금요일"), 2);
    }

    #[test]
    fn long_texts_are_divided_where_they_pause() {
        let sentence = "This is one sentence of a long text. ";
        let text = format!("{}\n\n{}", sentence.repeat(15), sentence.repeat(40));
        let terms = Terms::of(&text);
        assert!(terms.passages.len() >= 3, "{:?}", terms.passages);
        for passage in &terms.passages {
            let passage = &text[passage.start as usize..passage.end as usize];
            assert!(passage.starts_with("This") && passage.ends_with("text."), "{passage}");
        }
        assert_eq!(Terms::of("short").passages.len(), 1);
        assert_eq!(Terms::of(" \n").passages.len(), 0);
    }

    #[test]
    fn the_text_of_a_message_is_everything_that_it_says() {
        let text =
            |dialect: Dialect, json: &str| dialect.read_message(json.as_bytes()).unwrap().text().into_owned();
        assert_eq!(text(Dialect::Chat, r#"{"role":"user","content":"a\nb"}"#), "a\nb");
        let parts = r#"{"role":"user","content":[{"type":"text","text":"a\nb"}]}"#;
        assert_eq!(text(Dialect::Chat, parts), "a\nb", "a lone part is the same message");
        let calls = r#"{"role":"assistant","content":"x","tool_calls":[{"id":"c","type":"function",
            "function":{"name":"run","arguments":"{\"a\":1}"}}]}"#;
        assert_eq!(text(Dialect::Chat, calls), "x\nrun({\"a\":1})");
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"42"},
            {"type":"text","text":"and now?"}]}"#;
        assert_eq!(text(Dialect::Messages, result), "42\nand now?");
    }

    proptest! {
        #[test]
        fn passages_hold_all_words_in_order(text in "(\\PC|[ \\n.。a-z]){0,3000}") {
            let terms = Terms::of(&text);
            let mut end = 0;
            let mut kept = String::new();
            for passage in &terms.passages {
                prop_assert!(passage.start >= end && passage.end > passage.start);
                prop_assert!((passage.end - passage.start) as usize <= MAX_PASSAGE);
                kept.push_str(&text[passage.start as usize..passage.end as usize]);
                end = passage.end;
            }
            let visible = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            prop_assert_eq!(visible(&kept), visible(&text));
            prop_assert!(terms.postings.is_sorted_by_key(|posting| (posting.word, posting.passage)));
        }
    }
}
