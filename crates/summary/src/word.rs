//! Words that carry a meaning of their own, and lists of words.

/// Whether the text names something or somebody, or holds a number.
pub(crate) fn has_substance(text: &str) -> bool {
    let mut begins = true;
    text.split_whitespace().any(|word| {
        let is_first = std::mem::replace(&mut begins, word.ends_with(['.', '!', '?', ':']));
        let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
        inner.chars().any(char::is_numeric) || (is_name(inner) && !is_first) || is_identifier(inner)
    })
}

/// Whether a word that begins no sentence is spelt like a name.
pub(crate) fn is_name(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase) && word.len() > 1
}

/// Whether a word is spelt like a path, an address or a name in a program.
pub(crate) fn is_identifier(word: &str) -> bool {
    word.contains(['_', '/', '@', '\\', '.'])
}

/// The members of a list that is written as a sentence would be: `let's use, we agreed, never`.
pub(crate) fn phrases(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_have_substance() {
        for text in ["The owner is Ann, I think.", "See config.toml", "It took 3 days", "我们有5天"] {
            assert!(has_substance(text), "{text}");
        }
        assert!(!has_substance("It was long ago. I know."));
    }
}
