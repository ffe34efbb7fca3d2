//! Writes to the terminal. Conversation content must not be able to control the terminal.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

/// Escapes everything a terminal could interpret, except line breaks and tabs.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_harmless(letter) || matches!(letter, '\n' | '\t') {
            plain.push(letter);
        } else {
            plain.extend(letter.escape_unicode());
        }
    }
    plain
}

/// Escapes a text and puts it on one line.
pub(crate) fn one_line(text: &str) -> String {
    plain(text).replace('\n', "\\n").replace('\t', " ")
}

/// Prints JSON. On a terminal, control characters are replaced by equivalent JSON escapes.
pub(crate) fn print_json(json: &[u8]) {
    match std::str::from_utf8(json) {
        Ok(text) if std::io::stdout().is_terminal() => print(escaped(text).as_bytes()),
        Ok(_) | Err(_) => print(json),
    }
}

pub(crate) fn print(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    // Ignores a closed pipe, such as `| head`.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Prints a notice to standard error.
pub(crate) fn notice(text: &str) {
    #[expect(clippy::print_stderr, reason = "standard output is for the result, and a person is waiting")]
    {
        eprintln!("{}", plain(text));
    }
}

/// JSON contains such characters only inside strings, where an escape is equivalent.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_harmless(letter) || matches!(letter, '\n' | '\t' | '\r') {
            out.push(letter);
        } else {
            // All of them are in the basic plane, so one escape is enough. Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        }
    }
    out
}

/// Neither a control character nor one that changes the text direction, which could disguise the text.
fn is_harmless(letter: char) -> bool {
    let is_directional = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !is_directional
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}[2Jb\r\u{9b}1m\u{7f}\n\tc"), "a\\u{1b}[2Jb\\u{d}\\u{9b}1m\\u{7f}\n\tc");
        assert_eq!(plain("a\u{202e}b é \u{1f30a}"), "a\\u{202e}b é \u{1f30a}");
        assert_eq!(one_line("a\nb\tc\u{7}"), "a\\nb c\\u{7}");
    }

    #[test]
    fn json_escaped_for_a_terminal_is_equivalent() {
        let json = "{\n\"a\":\"\u{9b}31m\u{202e}\u{7f}é\"}";
        let shown = escaped(json);
        assert!(shown.chars().all(|letter| is_harmless(letter) || letter == '\n'), "{shown:?}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(json));
    }
}
