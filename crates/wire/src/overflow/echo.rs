//! Finds an upstream's words in the request that it answers.

/// Whether a request's JSON contains these letters and digits, however they are spelled, spaced and escaped in it.
pub(super) fn contains(request: &[u8], words: &str) -> bool {
    // Memory for the whole of it would have to be accounted for, so it is searched piece by piece.
    let mut window = Vec::with_capacity(PIECE + words.len());
    let mut letters = normal(request).peekable();
    while letters.peek().is_some() {
        window.extend(letters.by_ref().take(PIECE));
        if memchr::memmem::find(&window, words.as_bytes()).is_some() {
            return true;
        }
        let overlap = words.len().saturating_sub(1).min(window.len());
        window.drain(..window.len() - overlap);
    }
    false
}

const PIECE: usize = 16 * 1024;

/// The letters and digits of a text in lowercase. JSON's escapes are read, also those of JSON in a string.
pub(super) fn normal(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (first, behind) = rest.split_first()?;
            rest = behind;
            if *first != b'\\' {
                if first.is_ascii_alphanumeric() {
                    return Some(first.to_ascii_lowercase());
                }
                continue;
            }
            match rest {
                [b'\\', ..] => {}
                [b'u', a, b, c, d, behind @ ..] => {
                    let code = std::str::from_utf8(&[*a, *b, *c, *d])
                        .ok()
                        .and_then(|code| u8::from_str_radix(code, 16).ok());
                    rest = behind;
                    if let Some(code) = code.filter(u8::is_ascii_alphanumeric) {
                        return Some(code.to_ascii_lowercase());
                    }
                }
                [_, behind @ ..] => rest = behind,
                [] => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn words_are_found_however_they_are_written() {
        let words = "lengthis300tokens";
        for request in [
            "a length is 300 tokens",
            "LENGTH\\n is\\t\\\"300\\\" ToKeNs",
            "\\u006cength is 30\\u0030 tokens",
            "{\\\"x\\\": \\\"\\\\u006Cength is 300 token\\\\u0073\\\"}",
            "leng\\u2028th is 3,0-0 tokens",
        ] {
            assert!(contains(request.as_bytes(), words), "{request}");
        }
        for request in ["", "\\", "\\u", "\\u00", "length is 301 tokens", "\\u006", "ength is 300 tokens"] {
            assert!(!contains(request.as_bytes(), words), "{request}");
        }
    }

    #[test]
    fn words_are_found_wherever_they_stand() {
        for before in (super::PIECE - 20..super::PIECE + 2).chain([0, 3 * super::PIECE]) {
            let request = format!("{}length is 300 tokens{}", "x".repeat(before), "y".repeat(40_000));
            assert!(contains(request.as_bytes(), "lengthis300tokens"), "{before}");
        }
    }
}
