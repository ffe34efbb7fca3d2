//! Building blocks of generated messages.

use crate::spelling::{Dice, LONE_SURROGATE};

/// Values that do not survive a round trip through a JSON tree.
pub(crate) const ODD: [&str; 8] = [
    "123456789012345678901234567890",
    "2e9",
    "1e999",
    "-0",
    "\"\\ud800 \\u0000\"",
    "{\"content\":\"not the content\",\"observation\":{\"type\":\"tool_output\"},\"b\":1,\"a\":2}",
    "[ [ ], { } ,1.50]",
    "\"}],\\\"messages\\\":[\"",
];

pub(crate) const ATTACHMENTS: [&str; 4] = [
    r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","detail":"low"}}"#,
    r#"{"input_audio":{"data":"UklGRiQAAABXQVZFZm10","format":"wav"},"type":"input_audio"}"#,
    r#"{"type":"file","file":{"file_data":"data:text/plain;base64,aGVsbG8=","filename":"a.txt"}}"#,
    r#"{"type":"x_unknown","x":[1e5]}"#,
];

const WORDS: [&str; 16] = [
    "the",
    "tide",
    "gate",
    "opens",
    "{\"a\": [1,2]}",
    "\"quoted\"",
    "back\\slash",
    "a/b",
    "\u{65e5}\u{672c}\u{8a9e}",
    "caf\u{e9}",
    "\u{1f30a}",
    "\u{0}",
    "fn main() {",
    "0x1f",
    "line\n",
    "tab\t",
];

/// Generates `words` words after `lead`. Many need escaping in JSON or are hard to tokenize.
pub(crate) fn text(dice: &mut Dice, lead: &str, words: usize) -> String {
    let mut text = lead.to_owned();
    for _ in 0..words {
        text.push_str(dice.pick(&WORDS));
        text.push(if dice.one_in(200) { LONE_SURROGATE } else { ' ' });
    }
    text
}
