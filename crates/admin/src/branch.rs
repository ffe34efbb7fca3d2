//! Conversations that can be sent again, made from the messages that were recorded.
//!
//! A client that edits its history or regenerates an answer makes a branch. Every branch is one line of JSON:
//!
//! ```json
//! {"id":"NAME","model":"gpt-4o","messages":[…],"times":[…]}
//! ```
//!
//! The first line is the branch that was continued last, the next ones have the ids `NAME#2`, `NAME#3` and so on, the
//! newest first. Messages are the client's own bytes, in the order in which they were sent, and `"times"` says of each when it
//! was recorded, in milliseconds since 1970. Three more members are there
//! only when they say something: `"branches": n` on the first line if there are more than are written, `"memory": "…"` on
//! the first line if something is pinned to the conversation, and `"incomplete": true` where the messages before the first
//! one have expired or cannot be read.

use crate::page::Summary;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap, HashSet};
use tidegate_engine::Digest;
use tidegate_store::{MessageId, RawMessage};
use tidegate_wire::Dialect;

/// Every branch repeats what it shares with the others, so that an agent that regenerates every answer would make an
/// export grow with the square of its length.
const MOST_BRANCHES: usize = 100;

/// All branches, one line each.
pub(crate) fn lines(
    summary: &Summary,
    memory: Option<&str>,
    messages: &[RawMessage],
) -> serde_json::Result<Vec<u8>> {
    let tree = Tree::of(messages);
    let leaves = tree.leaves();
    let name = if summary.name.is_empty() { &summary.id } else { &summary.name };
    let mut lines = Vec::new();
    for (number, leaf) in (1..).zip(leaves.iter().take(MOST_BRANCHES)) {
        let id = if number == 1 { name.clone() } else { format!("{name}#{number}") };
        let branch = tree.branch(leaf);
        lines.extend_from_slice(b"{\"id\":");
        serde_json::to_writer(&mut lines, &id)?;
        lines.extend_from_slice(b",\"model\":");
        serde_json::to_writer(&mut lines, &summary.model)?;
        if number == 1 && leaves.len() > MOST_BRANCHES {
            lines.extend_from_slice(format!(",\"branches\":{}", leaves.len()).as_bytes());
        }
        if let Some(memory) = memory.filter(|_| number == 1) {
            lines.extend_from_slice(b",\"memory\":");
            serde_json::to_writer(&mut lines, memory)?;
        }
        if !branch.is_whole {
            lines.extend_from_slice(b",\"incomplete\":true");
        }
        lines.extend_from_slice(b",\"messages\":[");
        for (index, message) in branch.messages.iter().enumerate() {
            if index > 0 {
                lines.push(b',');
            }
            write(&mut lines, message)?;
        }
        let times: Vec<u64> = branch.messages.iter().map(|message| message.at).collect();
        lines.extend_from_slice(b"],\"times\":");
        serde_json::to_writer(&mut lines, &times)?;
        lines.extend_from_slice(b"}\n");
    }
    Ok(lines)
}

/// The messages of the request that ended with the message `end`, at the time `at`, in order: none if that one is not there.
pub(crate) fn of_turn<'a>(messages: &'a [RawMessage], end: &str, at: u64) -> Vec<&'a RawMessage> {
    let tree = Tree::of(messages);
    let Ok(end) = end.parse::<Digest>() else { return Vec::new() };
    match tree.spoken.get(&MessageId(end.0)) {
        Some(leaf) => {
            let mut messages = tree.ending(Some(leaf), at).messages;
            // An instruction that came later stands in for one that is missing in an export; here it was not there.
            messages.retain(|message| message.at <= at || !is_instruction(message));
            messages
        }
        None => Vec::new(),
    }
}

/// A request that holds them.
pub(crate) fn body(model: &str, messages: &[&RawMessage]) -> Vec<u8> {
    let mut body = b"{\"model\":".to_vec();
    // Writing into memory does not fail.
    let _ = serde_json::to_writer(&mut body, model);
    body.extend_from_slice(b",\"messages\":[");
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&message.json);
    }
    body.extend_from_slice(b"]}");
    body
}

/// A message on one line. A line break in JSON that stands for one is escaped, so the others are only white space.
fn write(lines: &mut Vec<u8>, message: &RawMessage) -> serde_json::Result<()> {
    match serde_json::from_slice::<&RawValue>(&message.json) {
        Ok(raw) => {
            let spaced =
                raw.get().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
            lines.extend(spaced);
            Ok(())
        }
        // Not to be lost, although it cannot be sent.
        Err(_) => serde_json::to_writer(lines, &String::from_utf8_lossy(&message.json)),
    }
}

/// What one request would hold.
#[derive(Debug)]
struct Branch<'a> {
    messages: Vec<&'a RawMessage>,
    /// Whether nothing is missing before the first message.
    is_whole: bool,
}

/// Messages by the one before them.
#[derive(Debug)]
struct Tree<'a> {
    spoken: HashMap<MessageId, &'a RawMessage>,
    /// Outside the chain, by the message that they came behind.
    instructions: HashMap<MessageId, Vec<&'a RawMessage>>,
}

/// Stands before the first message.
const START: MessageId = MessageId([0; 32]);

impl<'a> Tree<'a> {
    fn of(messages: &'a [RawMessage]) -> Tree<'a> {
        let mut tree = Tree { spoken: HashMap::new(), instructions: HashMap::new() };
        for message in messages {
            if is_instruction(message) {
                tree.instructions.entry(message.parent).or_default().push(message);
            } else {
                tree.spoken.insert(message.id, message);
            }
        }
        tree
    }

    /// The last message of every branch, the newest first. Instructions alone are a branch too.
    fn leaves(&self) -> Vec<Option<&'a RawMessage>> {
        let parents: HashSet<MessageId> = self.spoken.values().map(|message| message.parent).collect();
        let mut leaves: Vec<&RawMessage> =
            self.spoken.values().copied().filter(|message| !parents.contains(&message.id)).collect();
        leaves.sort_by_key(|leaf| std::cmp::Reverse((leaf.at, leaf.position, leaf.id)));
        if leaves.is_empty() && self.instructions.contains_key(&START) {
            return vec![None];
        }
        leaves.into_iter().map(Some).collect()
    }

    fn branch(&self, leaf: &Option<&'a RawMessage>) -> Branch<'a> {
        self.ending(*leaf, leaf.map_or(u64::MAX, |leaf| leaf.at))
    }

    /// What led to a message, with the instructions as they were at a time.
    fn ending(&self, leaf: Option<&'a RawMessage>, at: u64) -> Branch<'a> {
        let mut chain = Vec::new();
        let mut next = leaf;
        // The bound only matters for a damaged store, in which a message could stand before itself.
        while let Some(message) = next.filter(|_| chain.len() < self.spoken.len()) {
            chain.push(message);
            next = self.spoken.get(&message.parent).copied();
        }
        chain.reverse();
        let first = chain.first().map_or(START, |first| first.parent);
        let mut messages = self.instructions_behind(first, at);
        for message in chain {
            messages.push(message);
            messages.extend(self.instructions_behind(message.id, at));
        }
        Branch { messages, is_whole: first == START }
    }

    /// The instructions between a message and the next. One with a clock in it is another in every request: the one that
    /// this branch had last stands for all at its place.
    fn instructions_behind(&self, id: MessageId, end: u64) -> Vec<&'a RawMessage> {
        let mut places: BTreeMap<u32, &RawMessage> = BTreeMap::new();
        for one in self.instructions.get(&id).into_iter().flatten().copied() {
            let place = places.entry(one.position).or_insert(one);
            let is_better = match (one.at <= end, place.at <= end) {
                (true, true) => one.at > place.at,
                (false, false) => one.at < place.at,
                (in_time, _) => in_time,
            };
            if is_better {
                *place = one;
            }
        }
        places.into_values().collect()
    }
}

fn is_instruction(message: &RawMessage) -> bool {
    Dialect::Chat.read_facts(&message.json).is_ok_and(|facts| facts.role.is_instruction())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// A message named by one byte behind another.
    fn message(id: u8, parent: u8, position: u32, at: u64, json: &str) -> RawMessage {
        let json = json.to_owned().into();
        RawMessage { id: MessageId([id; 32]), parent: MessageId([parent; 32]), position, at, json }
    }

    fn said(role: &str, text: &str) -> String {
        format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}")
    }

    /// The ids of all lines and what their messages say.
    fn exported(messages: &[RawMessage]) -> Vec<(String, String)> {
        let summary = Summary { name: "n".to_owned(), model: "m".to_owned(), ..Summary::default() };
        let text = String::from_utf8(lines(&summary, None, messages).unwrap()).unwrap();
        let one = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["model"], "m");
            let all = line["messages"].as_array().unwrap().iter();
            let texts: Vec<&str> = all.map(|message| message["content"].as_str().unwrap_or("?")).collect();
            let mark = if line["incomplete"] == true { "…" } else { "" };
            (line["id"].as_str().unwrap().to_owned(), mark.to_owned() + &texts.join(" "))
        };
        text.lines().map(one).collect()
    }

    fn expected(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn every_branch_is_a_line_and_the_one_continued_last_is_the_first() {
        let messages = [
            message(9, 0, 0, 10, &said("system", "be")),
            message(1, 0, 1, 10, &said("user", "ask")),
            message(2, 1, 2, 11, &said("assistant", "no")),
            message(3, 1, 2, 12, &said("assistant", "yes")),
            message(4, 3, 3, 13, &said("user", "more")),
        ];
        assert_eq!(exported(&messages), expected(&[("n", "be ask yes more"), ("n#2", "be ask no")]));
    }

    #[test]
    fn an_instruction_that_changes_stands_once_at_its_place() {
        let messages = [
            message(9, 0, 0, 10, &said("system", "nine")),
            message(8, 0, 0, 20, &said("system", "ten")),
            message(7, 0, 1, 10, &said("developer", "dev")),
            message(1, 0, 2, 10, &said("user", "ask")),
            message(6, 1, 3, 20, &said("system", "mid")),
            message(2, 1, 4, 20, &said("user", "more")),
            message(3, 1, 3, 11, &said("assistant", "old")),
        ];
        let lines = [("n", "ten dev ask mid more"), ("n#2", "nine dev ask mid old")];
        // The instruction in the middle came later than the second branch, which has no other at that place.
        assert_eq!(exported(&messages), expected(&lines));
    }

    #[test]
    fn a_turn_is_what_led_to_its_end_with_the_instructions_of_its_time() {
        let messages = [
            message(9, 0, 0, 10, &said("system", "nine")),
            message(8, 0, 0, 20, &said("system", "ten")),
            message(1, 0, 1, 10, &said("user", "ask")),
            message(2, 1, 2, 11, &said("assistant", "no")),
            message(3, 1, 2, 12, &said("assistant", "yes")),
            message(4, 3, 3, 20, &said("user", "more")),
        ];
        let turn = |end: u8, at| {
            let turn = of_turn(&messages, &Digest([end; 32]).to_string(), at);
            let body: Value = serde_json::from_slice(&body("m", &turn)).unwrap();
            let texts: Vec<&str> = body["messages"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|one| one["content"].as_str())
                .collect();
            texts.join(" ")
        };
        assert_eq!(turn(1, 10), "nine ask");
        assert_eq!(turn(4, 20), "ten ask yes more");
        assert_eq!(turn(2, 15), "nine ask no");
        assert_eq!(turn(1, 5), "ask", "both instructions came later");
        assert_eq!((turn(7, 20), of_turn(&messages, "", 20)), (String::new(), Vec::new()));
    }

    #[test]
    fn what_is_missing_is_said_and_a_loop_ends() {
        let messages =
            [message(2, 1, 2, 11, &said("assistant", "a")), message(3, 2, 3, 12, &said("user", "b"))];
        assert_eq!(exported(&messages), expected(&[("n", "…a b")]));
        assert_eq!(exported(&[]), []);
        let looped = [message(1, 2, 0, 1, "{}"), message(2, 1, 1, 1, "{}"), message(3, 2, 2, 2, "{}")];
        assert_eq!(exported(&looped).len(), 1);
        let alone = [message(9, 0, 0, 10, &said("system", "be"))];
        assert_eq!(exported(&alone), expected(&[("n", "be")]));
    }

    #[test]
    fn a_message_is_its_own_bytes_on_one_line() {
        let odd = "{\"role\" : \"user\",\r\n \"content\":\"a\\nb\",\"n\":1.50e3}";
        let summary = Summary { id: "k".to_owned(), ..Summary::default() };
        let text =
            |json| String::from_utf8(lines(&summary, None, &[message(1, 0, 0, 1, json)]).unwrap()).unwrap();
        assert_eq!(
            text(odd),
            "{\"id\":\"k\",\"model\":\"\",\"messages\":[{\"role\" : \"user\",   \"content\":\"a\\nb\",\"n\":1.50e3}],\"times\":[1]}\n"
        );
        assert_eq!(
            text("no\njson"),
            "{\"id\":\"k\",\"model\":\"\",\"messages\":[\"no\\njson\"],\"times\":[1]}\n"
        );
    }

    #[test]
    fn what_is_pinned_stands_on_the_first_line_alone() {
        let messages = [
            message(1, 0, 0, 1, &said("user", "ask")),
            message(2, 1, 1, 2, &said("assistant", "a")),
            message(3, 1, 1, 3, &said("assistant", "b")),
        ];
        let summary = Summary { name: "n".to_owned(), ..Summary::default() };
        let text = String::from_utf8(lines(&summary, Some("two\nlines"), &messages).unwrap()).unwrap();
        let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((read[0]["memory"].as_str(), read[1].get("memory")), (Some("two\nlines"), None), "{text}");
    }

    #[test]
    fn branches_without_end_are_cut_and_counted() {
        let mut messages = vec![message(1, 0, 0, 1, &said("user", "ask"))];
        for number in 0..150 {
            messages.push(message(number + 50, 1, 1, u64::from(number), &said("assistant", "x")));
        }
        let summary = Summary { name: "n".to_owned(), ..Summary::default() };
        let text = String::from_utf8(lines(&summary, None, &messages).unwrap()).unwrap();
        assert_eq!(text.lines().count(), 100);
        assert!(text.starts_with("{\"id\":\"n\",\"model\":\"\",\"branches\":150,\"messages\""), "{text}");
    }
}
