use crate::Answer;
use crate::answer::{AnswerBlock, Member, push_member};

pub(crate) fn answer_message(answer: &Answer) -> Option<Vec<u8>> {
    if answer.failed || answer.truncated || answer.blocks.is_empty() {
        return None;
    }
    let blocks: Option<Vec<String>> = answer.blocks.iter().map(block).collect();
    Some(format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks?.join(",")).into_bytes())
}

/// `None` if the input of a call has not arrived as a whole.
pub(super) fn block(block: &AnswerBlock) -> Option<String> {
    let mut object = String::new();
    for (key, member) in &block.members {
        let streamed = Some(block.input.as_str()).filter(|input| key == "input" && !input.is_empty());
        match streamed {
            Some(input) => {
                serde_json::from_str::<serde::de::IgnoredAny>(input).ok()?;
                push_member(&mut object, key, input);
            }
            None => push_member(&mut object, key, &member.json()),
        }
    }
    Some(format!("{{{object}}}"))
}

impl AnswerBlock {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.members.iter().find_map(|(key, member)| match member {
            Member::Text(text) if key == name => Some(text.as_str()),
            Member::Text(_) | Member::Json(_) => None,
        })
    }

    pub(super) fn json(&self, name: &str) -> Option<String> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, member)| member.json())
    }

    /// Appends to a text.
    pub(super) fn append(&mut self, name: &str, more: &str) {
        match self.members.iter_mut().find(|(key, _)| key == name) {
            Some((_, Member::Text(text))) => text.push_str(more),
            Some((_, member)) => *member = Member::Text(more.to_owned()),
            None => self.members.push((name.to_owned(), Member::Text(more.to_owned()))),
        }
    }

    /// Adds an element to a list.
    pub(super) fn add(&mut self, name: &str, element: &str) {
        let known = self.json(name).and_then(|list| {
            let inside = list.strip_prefix('[')?.strip_suffix(']')?.trim().to_owned();
            Some(inside).filter(|inside| !inside.is_empty())
        });
        let list = match known {
            Some(known) => format!("[{known},{element}]"),
            None => format!("[{element}]"),
        };
        self.members.retain(|(key, _)| key != name);
        self.members.push((name.to_owned(), Member::Json(list)));
    }
}
