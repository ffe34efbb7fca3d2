//! Shortens texts at character boundaries and marks the cut.

/// Shortens a text to its first `max` characters, of which the last is `…`. Cuts between words if possible.
pub(crate) fn head(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else {
        return text.to_owned();
    };
    let Some((before_last, _)) = text[..end].char_indices().next_back() else {
        return String::new();
    };
    let kept = &text[..before_last];
    // Cut at a word boundary only if it is in the last fifth. Text without spaces would lose too much.
    let at = match kept.rfind(char::is_whitespace) {
        Some(space) if space * 5 >= kept.len() * 4 => space,
        _ => kept.len(),
    };
    format!("{}…", kept[..at].trim_end())
}

/// Shortens a text to its beginning and end, with a note of how much was cut out.
///
/// A tool output says what it is at the beginning and how it ended at the end, so the middle matters least.
pub(crate) fn ends(text: &str, max: usize) -> String {
    let total = text.chars().count();
    if total <= max {
        return text.to_owned();
    }
    let tail_chars = max / 3;
    let head_chars = max - tail_chars;
    let head_end = boundary(text, head_chars);
    let tail_start = boundary(text, total - tail_chars);
    format!("{}\n[… {} characters left out …]\n{}", &text[..head_end], total - max, &text[tail_start..])
}

fn boundary(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_cuts_between_words_and_never_exceeds_the_limit() {
        assert_eq!(head("short", 10), "short");
        assert_eq!(head("one two three four", 15), "one two three…");
        assert_eq!(head("ääääää", 3), "ää…");
        assert_eq!(head("abc", 0), "");
        assert_eq!(head("abc", 1), "…");
    }

    #[test]
    fn ends_notes_how_much_was_cut_out() {
        assert_eq!(ends("abcdefghijkl", 6), "abcd\n[… 6 characters left out …]\nkl");
        assert_eq!(ends("éé", 2), "éé");
        assert_eq!(ends("ééé", 0), "\n[… 3 characters left out …]\n");
    }
}
