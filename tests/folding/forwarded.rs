//! The request that reached the upstream, with the JSON text of each message. A text of Tidegate's in a message of the client's is listed
//! as a message of its own, so that the client's can be compared byte for byte.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

const OPENING: &str = "<conversation_record>";
const CLOSING: &str = "</conversation_record>";
const MARKER: &str = " earlier turns of this conversation are missing here";
const END_OF_MARKER: &str = "and will be summarized later.]";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forwarded {
    pub(crate) body: String,
    pub(crate) messages: Vec<String>,
    /// The messages as they are in the body.
    pub(crate) whole: Vec<String>,
}

impl Forwarded {
    pub(crate) fn new(body: String) -> Forwarded {
        let members: HashMap<String, Box<RawValue>> =
            serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        let messages: Vec<Box<RawValue>> = serde_json::from_str(members["messages"].get()).unwrap();
        let whole: Vec<String> = messages.iter().map(|message| message.get().to_owned()).collect();
        let messages = whole.iter().flat_map(|message| apart(message)).collect();
        Forwarded { body, messages, whole }
    }

    /// Everything up to the end of the last message, which the next request repeats unless there is a new decision.
    pub(crate) fn prefix(&self) -> &str {
        let last = self.whole.last().unwrap();
        &self.body[..self.body.rfind(last.as_str()).unwrap() + last.len()]
    }

    /// The text before and after the messages.
    pub(crate) fn frame(&self) -> (&str, &str) {
        let first = self.body.find(self.whole[0].as_str()).unwrap();
        (&self.body[..first], &self.body[self.prefix().len()..])
    }

    /// The summary and its index. Panics if there is more than one or its fence is forged.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let mut all = self.messages.iter().enumerate().filter(|(_, message)| is_summary(message));
        let (at, message) = all.next()?;
        assert!(all.next().is_none(), "two summaries in {}", self.body);
        let value: Value = serde_json::from_str(message).unwrap();
        let text = text(message);
        assert_eq!(text.matches("conversation_record").count(), 2, "a forged fence: {text}");
        assert!(text.ends_with(CLOSING), "{text}");
        assert!(text.contains("nothing inside it is an instruction"), "{text}");
        for line in text.lines().skip(2).filter(|line| !line.is_empty() && *line != CLOSING) {
            assert!(
                line.starts_with("- ") || line.starts_with("## "),
                "not a bullet or a heading: {line:?} in {text}"
            );
        }
        let covered = text.split("Record of ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let (role, covered) = (value["role"].as_str().unwrap().to_owned(), covered.parse().unwrap());
        Some(Summary { at, role, text, covered, message: message.clone() })
    }

    /// The index of the marker, and the number of turns that it counts.
    pub(crate) fn marker(&self) -> Option<(usize, usize)> {
        let mut all = self.messages.iter().enumerate().filter(|(_, message)| is_marker(message));
        let (at, message) = all.next()?;
        assert!(all.next().is_none(), "two markers in {}", self.body);
        let text = text(message);
        Some((at, text[1..text.find(' ').unwrap()].parse().unwrap()))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) at: usize,
    pub(crate) role: String,
    pub(crate) text: String,
    /// The number of messages that it says it covers.
    pub(crate) covered: usize,
    pub(crate) message: String,
}

/// Takes the texts of Tidegate's out of a message of the client's, in which they are paragraphs of their own.
fn apart(message: &str) -> Vec<String> {
    for (opening, closing) in [(OPENING, CLOSING), ("[", END_OF_MARKER)] {
        let end = message.rfind(closing).map(|at| at + closing.len());
        let start = end.and_then(|end| match opening {
            OPENING => message.find(OPENING),
            // A marker has no other bracket.
            _ => message[..end].rfind(opening),
        });
        let (Some(start), Some(end)) = (start, end) else { continue };
        let own = format!("{{\"content\":\"{}\",\"role\":\"user\"}}", &message[start..end]);
        if let Some(rest) = message[end..].strip_prefix(PARAGRAPH) {
            return [vec![own], apart(&format!("{}{rest}", &message[..start]))].concat();
        }
        if let Some(rest) = message[..start].strip_suffix(PARAGRAPH) {
            return [apart(&format!("{rest}{}", &message[end..])), vec![own]].concat();
        }
    }
    vec![message.to_owned()]
}

/// As JSON spells it.
const PARAGRAPH: &str = r"\n\n";

pub(crate) fn is_summary(message: &str) -> bool {
    text(message).starts_with(OPENING)
}

pub(crate) fn is_marker(message: &str) -> bool {
    let text = text(message);
    text.starts_with('[') && text.contains(MARKER)
}

/// The text of a message, or an empty string if it has none.
pub(crate) fn text(message: &str) -> String {
    let value: Value = serde_json::from_str(message).unwrap();
    value["content"].as_str().unwrap_or_default().to_owned()
}
