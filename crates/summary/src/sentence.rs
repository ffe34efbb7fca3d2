//! Sentences, in any script.

use std::ops::Range;

use crate::fence::without_bullet;
use crate::word::phrases;

/// A longer sentence is taken apart: it is a list or a paste, and an entry must stay readable.
const MAX_CHARS: usize = 280;

/// The sentences of a message. Code blocks are left out: they are artifacts, not statements.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    // An odd number of fences means that one was never closed; then all of it is text.
    let has_code = text.matches("```").count().is_multiple_of(2);
    for line in text.lines() {
        if has_code && line.trim_start().starts_with("```") {
            in_code = !in_code && line.matches("```").count() == 1;
            continue;
        }
        let line = without_number(without_bullet(line.trim()));
        if in_code || is_code(line) {
            continue;
        }
        for part in parts(line) {
            found.extend(pieces(&line[part]));
        }
    }
    found
}

/// Whether a sentence asks something.
pub(crate) fn is_question(sentence: &str) -> bool {
    let end = sentence.trim_end_matches(['"', '\'', ')', '*', '_', '”', '»', ' ']);
    end.ends_with(['?', '？', '؟', '⁇', '‽'])
}

/// The line without the number of an item before it: `2. Tidy up`, `3) Go home`. `17. März` is a date.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_short = (1..3).contains(&(line.len() - rest.len()));
    rest.strip_prefix(['.', ')'])
        .filter(|rest| is_short && rest.starts_with(' ') && !is_month(first_word(rest)))
        .map_or(line, |rest| without_bullet(rest.trim_start()))
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
            '。' | '！' | '？' | '।' | '｡' => {
                !next.is_some_and(|next| "。！？」』）\"".contains(next))
            }
            '.' | '!' | '?' | '…' | '؟' | '۔' => match next {
                None => true,
                Some(next) if next.is_whitespace() => {
                    c != '.'
                        || !(is_abbreviation(&line[start..at]) || is_ordinal(&line[start..at], &line[end..]))
                }
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

fn last_word(text: &str) -> &str {
    text.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or(text)
}

fn is_abbreviation(before: &str) -> bool {
    let word = last_word(before);
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    is_initial || phrases(ABBREVIATIONS).any(|known| word.eq_ignore_ascii_case(known))
}

const ABBREVIATIONS: &str = "\
    e.g, i.e, etc, vs, mr, mrs, ms, dr, st, no, approx, ca, fig, inc, prof, jr, sr, dept, est, z.b, d.h, u.a, bzw, usw, \
    nr, str, evtl, ggf, inkl, bspw, hr, fr, p.ej, sra, srta, ud, uds, núm, av, mme, mlle, env, p.ex, c.-à-d";

/// Whether a full stop belongs to the number before it, as in `am 19. Mai` and `im 2. Stock`.
///
/// A month or a word in lower case after it tells, or a German article or preposition before it.
fn is_ordinal(before: &str, after: &str) -> bool {
    let number = last_word(before);
    if number.len() > 2 || number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let next = first_word(after);
    let is_date = next.chars().next().is_some_and(char::is_lowercase)
        || is_month(next)
        || (number.len() <= 2 && !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit()));
    let article = last_word(before[..before.len() - number.len()].trim_end());
    is_date || phrases(BEFORE_ORDINALS).any(|known| article.eq_ignore_ascii_case(known))
}

fn first_word(text: &str) -> &str {
    text.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

fn is_month(word: &str) -> bool {
    phrases(MONTHS).any(|month| word.to_lowercase() == month)
}

const MONTHS: &str = "\
    januar, jänner, februar, märz, april, mai, juni, juli, august, september, oktober, november, dezember";

const BEFORE_ORDINALS: &str = "\
    am, der, die, das, den, dem, des, im, zum, zur, vom, bis, ab, jeden, jeder, jedes, dieser, dieses, dritten";

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

/// Whether a line is more signs than words, as code, tables, logs and tags are.
fn is_code(line: &str) -> bool {
    let is_tag = line.starts_with('<') && line.ends_with('>');
    if is_tag || (line.ends_with(['{', '}', ';']) && !line.contains(". ")) {
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

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        assert_eq!(
            sentences(
                "Dr. J. Kerr runs v1.2 on foo.example.com, e.g. at night. Good!\n- It costs 3.50 (approx. 4). Ok?"
            ),
            [
                "Dr. J. Kerr runs v1.2 on foo.example.com, e.g. at night.",
                "Good!",
                "It costs 3.50 (approx. 4).",
                "Ok?"
            ]
        );
        assert_eq!(sentences("我们用红色。价格是30元！好吗？"), ["我们用红色。", "价格是30元！", "好吗？"]);
        assert_eq!(
            sentences(
                "17. März statt 3. März.\nWir fahren am 19. Mai, z.B. mit Gleis 3. Die 2. Fahrt ist am 3. 6. um 9 Uhr. Es sind 30. Der Rest folgt."
            ),
            [
                "17. März statt 3. März.",
                "Wir fahren am 19. Mai, z.B. mit Gleis 3.",
                "Die 2. Fahrt ist am 3. 6. um 9 Uhr.",
                "Es sind 30.",
                "Der Rest folgt."
            ]
        );
    }

    #[test]
    fn code_is_not_a_statement() {
        let text = "Before.\n```rust\nlet x = 1;\n```\n<link href=\"https://x.example/a.css\" integrity=\"sha384\">\nAfter.\nfn main() {\n}";
        assert_eq!(sentences(text), ["Before.", "After."]);
        assert_eq!(sentences("Before.\n```\nnever closed").len(), 2);
    }

    #[test]
    fn long_sentences_come_in_pieces() {
        let text = "word ".repeat(400);
        let pieces = sentences(&text);
        assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.chars().count() <= MAX_CHARS));
        assert_eq!(pieces.join(" "), text.trim());
        assert!(sentences(&"日".repeat(1_000)).iter().all(|piece| piece.chars().count() <= MAX_CHARS));
    }
}
