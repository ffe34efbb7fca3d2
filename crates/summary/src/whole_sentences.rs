//! Recovers the complete sentences of a text that was cut off.

use crate::sentence::parts;

/// Returns the text up to the end of its last complete sentence, or an empty string if there is none. A line that is followed by another
/// one counts as complete.
pub(crate) fn whole_sentences(text: &str) -> &str {
    let last_line = text.rfind('\n').map_or(0, |at| at + 1);
    let line = &text[last_line..];
    let is_whole = |part: &std::ops::Range<usize>| line[part.clone()].ends_with(ENDS);
    let end = parts(line).into_iter().rfind(is_whole).map_or(0, |part| part.end);
    text[..last_line + end].trim_end()
}

const ENDS: [char; 11] = ['.', '!', '?', '…', '。', '！', '？', '।', '｡', '۔', '؟'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_after_the_last_sentence_end_is_removed() {
        for (text, expected) in [
            ("Use redb. Then mo", "Use redb."),
            ("Use redb.", "Use redb."),
            ("Use redb. -", "Use redb."),
            ("Version 1.5 of th", ""),
            ("One is done\nTwo. Thr", "One is done\nTwo."),
            ("One is done\nTwo thr", "One is done"),
            ("完成了。还有", "完成了。"),
            ("", ""),
        ] {
            assert_eq!(whole_sentences(text), expected, "{text}");
        }
    }
}
