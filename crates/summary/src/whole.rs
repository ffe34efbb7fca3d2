//! What is left of a text that was broken off.

use crate::sentence::parts;

/// The text up to the end of its last whole sentence; empty if it has none. A line that another follows is whole.
pub(crate) fn whole(text: &str) -> &str {
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
    fn sentences_are_whole_and_what_follows_is_not() {
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
            assert_eq!(whole(text), expected, "{text}");
        }
    }
}
