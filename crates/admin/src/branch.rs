//! Rebuilds conversations from their recorded messages, so that they can be sent again.
//!
//! A client that edits its history or regenerates a response creates a branch. Every branch is exported as one
//! line of JSON:
//!
//! ```json
//! {"id":"NAME","model":"gpt-4o","messages":[…],"times":[…]}
//! ```
//!
//! The first line is the most recently continued branch. The following ones have the ids `NAME#2`, `NAME#3` and so
//! on, newest first. Messages are the client's own bytes in the order in which they were sent, and `"times"` holds
//! the time each was recorded, in milliseconds since 1970. Three members are optional: `"branches": n` on the first
//! line if there are more branches than were exported, `"memory": "…"` on the first line if a note is pinned to the
//! conversation, and `"incomplete": true` on a branch whose first messages have expired or cannot be read. Items of OpenAI's responses
//! are exported as `"input"`, each with a time.

use crate::page::ConversationSummary;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap, HashSet};
use tidegate_engine::Digest;
use tidegate_store::{MessageId, RawMessage};
use tidegate_wire::Dialect;

/// The maximum number of exported branches. Each branch repeats the prefix it shares with the others, so an
/// agent that regenerates every response would make the export grow quadratically.
const MAX_BRANCHES: usize = 100;

/// The maximum length of an export with more than one branch, for the same reason.
const MAX_BYTES: usize = 256 << 20;

/// Exports all branches, one line of JSON each.
pub(crate) fn export_lines(
    summary: &ConversationSummary,
    memory: Option<&str>,
    messages: &[RawMessage],
) -> serde_json::Result<Vec<u8>> {
    let tree = MessageTree::new(messages);
    let leaves = tree.leaves();
    let exported = tree.fitting(&leaves, MAX_BYTES);
    let name = if summary.name.is_empty() { &summary.id } else { &summary.name };
    let mut lines = Vec::new();
    for (number, leaf) in (1..).zip(leaves.iter().take(exported)) {
        let id = if number == 1 { name.clone() } else { format!("{name}#{number}") };
        let branch = tree.branch(leaf);
        lines.extend_from_slice(b"{\"id\":");
        serde_json::to_writer(&mut lines, &id)?;
        lines.extend_from_slice(b",\"model\":");
        serde_json::to_writer(&mut lines, &summary.model)?;
        if number == 1 && leaves.len() > exported {
            lines.extend_from_slice(format!(",\"branches\":{}", leaves.len()).as_bytes());
        }
        if let Some(memory) = memory.filter(|_| number == 1) {
            lines.extend_from_slice(b",\"memory\":");
            serde_json::to_writer(&mut lines, memory)?;
        }
        if !branch.is_complete {
            lines.extend_from_slice(b",\"incomplete\":true");
        }
        let is_item = |message: &&RawMessage| Dialect::of_recorded(&message.json) == Dialect::Responses;
        let dialect = if branch.messages.iter().any(is_item) { Dialect::Responses } else { Dialect::Chat };
        lines.extend_from_slice(format!(",\"{}\":[", dialect.messages_key()).as_bytes());
        let mut times: Vec<u64> = Vec::new();
        for message in &branch.messages {
            if !times.is_empty() {
                lines.push(b',');
            }
            let count = write_message(&mut lines, dialect, message)?;
            times.extend(std::iter::repeat_n(message.at, count));
        }
        lines.extend_from_slice(b"],\"times\":");
        serde_json::to_writer(&mut lines, &times)?;
        lines.extend_from_slice(b"}\n");
    }
    Ok(lines)
}

/// Returns the messages of the request recorded at `at` whose last message is `end`, in order. Empty if `end`
/// is not recorded.
pub(crate) fn turn_messages<'a>(messages: &'a [RawMessage], end: &str, at: u64) -> Vec<&'a RawMessage> {
    let tree = MessageTree::new(messages);
    let Ok(end) = end.parse::<Digest>() else { return Vec::new() };
    match tree.messages.get(&MessageId(end.0)) {
        Some(leaf) => {
            let mut messages = tree.branch_ending_at(Some(leaf), at).messages;
            // An export uses a later instruction in place of a missing one. The request of this turn did not
            // contain it.
            messages.retain(|message| message.at <= at || !is_instruction(message));
            messages
        }
        None => Vec::new(),
    }
}

/// Builds a request body from recorded messages.
pub(crate) fn request_body(dialect: Dialect, model: &str, messages: &[&RawMessage]) -> Vec<u8> {
    let mut body = b"{\"model\":".to_vec();
    // Writing into memory does not fail.
    let _ = serde_json::to_writer(&mut body, model);
    body.extend_from_slice(format!(",\"{}\":[", dialect.messages_key()).as_bytes());
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(dialect.sent(&message.json));
    }
    body.extend_from_slice(b"]}");
    body
}

/// Writes a message on one line, and returns of how many elements it consists. Line breaks inside JSON strings are escaped, so any raw
/// one is only white space.
fn write_message(lines: &mut Vec<u8>, dialect: Dialect, message: &RawMessage) -> serde_json::Result<usize> {
    match serde_json::from_slice::<&RawValue>(&message.json) {
        Ok(_) => {
            let spaced = dialect.sent(&message.json).iter();
            lines.extend(spaced.map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
            let items = serde_json::from_slice::<Vec<&RawValue>>(&message.json);
            Ok(items.map_or(1, |items| items.len()))
        }
        // Exported as a string rather than lost, although it cannot be sent again.
        Err(_) => {
            serde_json::to_writer(lines, &String::from_utf8_lossy(&message.json))?;
            Ok(1)
        }
    }
}

/// One path through the message tree.
#[derive(Debug)]
struct Branch<'a> {
    messages: Vec<&'a RawMessage>,
    /// Whether the branch goes back to the start of the conversation.
    is_complete: bool,
}

/// Messages linked by their parents.
#[derive(Debug)]
struct MessageTree<'a> {
    messages: HashMap<MessageId, &'a RawMessage>,
    /// System and developer messages, by the message they follow. They are not part of the digest chain.
    instructions: HashMap<MessageId, Vec<&'a RawMessage>>,
}

/// The parent of the first message.
const START: MessageId = MessageId([0; 32]);

impl<'a> MessageTree<'a> {
    fn new(messages: &'a [RawMessage]) -> MessageTree<'a> {
        let mut tree = MessageTree { messages: HashMap::new(), instructions: HashMap::new() };
        for message in messages {
            if is_instruction(message) {
                tree.instructions.entry(message.parent).or_default().push(message);
            } else {
                tree.messages.insert(message.id, message);
            }
        }
        tree
    }

    /// The last message of every branch, newest first. Instructions alone are a branch too, with `None` as
    /// its leaf.
    fn leaves(&self) -> Vec<Option<&'a RawMessage>> {
        let parents: HashSet<MessageId> = self.messages.values().map(|message| message.parent).collect();
        let mut leaves: Vec<&RawMessage> =
            self.messages.values().copied().filter(|message| !parents.contains(&message.id)).collect();
        leaves.sort_by_key(|leaf| std::cmp::Reverse((leaf.at, leaf.position, leaf.id)));
        if leaves.is_empty() && self.instructions.contains_key(&START) {
            return vec![None];
        }
        leaves.into_iter().map(Some).collect()
    }

    /// The number of branches to export: no more than so many bytes of messages, but at least one.
    fn fitting(&self, leaves: &[Option<&'a RawMessage>], most: usize) -> usize {
        let mut bytes = 0;
        let fits = |leaf: &&Option<&'a RawMessage>| {
            bytes += self.branch(leaf).messages.iter().map(|message| message.json.len()).sum::<usize>();
            bytes <= most
        };
        leaves.iter().take(MAX_BRANCHES).take_while(fits).count().max(1)
    }

    fn branch(&self, leaf: &Option<&'a RawMessage>) -> Branch<'a> {
        self.branch_ending_at(*leaf, leaf.map_or(u64::MAX, |leaf| leaf.at))
    }

    /// Returns the branch that ends at `leaf`, with the instructions in effect at time `at`.
    fn branch_ending_at(&self, leaf: Option<&'a RawMessage>, at: u64) -> Branch<'a> {
        let mut chain = Vec::new();
        let mut next = leaf;
        // Bounded in case a damaged store contains a cycle.
        while let Some(message) = next.filter(|_| chain.len() < self.messages.len()) {
            chain.push(message);
            next = self.messages.get(&message.parent).copied();
        }
        chain.reverse();
        let first = chain.first().map_or(START, |first| first.parent);
        let mut messages = self.instructions_after(first, at);
        for message in chain {
            messages.push(message);
            messages.extend(self.instructions_after(message.id, at));
        }
        Branch { messages, is_complete: first == START }
    }

    /// Returns the instructions between a message and the next. An instruction that contains a clock differs
    /// in every request: the latest version that this branch had is used for each position.
    fn instructions_after(&self, id: MessageId, end: u64) -> Vec<&'a RawMessage> {
        let mut positions: BTreeMap<u32, &RawMessage> = BTreeMap::new();
        for candidate in self.instructions.get(&id).into_iter().flatten().copied() {
            let current = positions.entry(candidate.position).or_insert(candidate);
            let is_better = match (candidate.at <= end, current.at <= end) {
                (true, true) => candidate.at > current.at,
                (false, false) => candidate.at < current.at,
                (in_time, _) => in_time,
            };
            if is_better {
                *current = candidate;
            }
        }
        positions.into_values().collect()
    }
}

fn is_instruction(message: &RawMessage) -> bool {
    Dialect::Chat.read_facts(&message.json).is_ok_and(|facts| facts.role.is_instruction())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tidegate_store::Standing;

    /// A message whose id and parent are named by one byte each.
    fn message(id: u8, parent: u8, position: u32, at: u64, json: &str) -> RawMessage {
        let json = json.to_owned().into();
        RawMessage {
            id: MessageId([id; 32]),
            parent: MessageId([parent; 32]),
            position,
            at,
            json,
            standing: Standing::Kept,
        }
    }

    fn json(role: &str, text: &str) -> String {
        format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}")
    }

    /// The id of each exported line and the texts of its messages.
    fn exported(messages: &[RawMessage]) -> Vec<(String, String)> {
        let summary = ConversationSummary {
            name: "n".to_owned(),
            model: "m".to_owned(),
            ..ConversationSummary::default()
        };
        let text = String::from_utf8(export_lines(&summary, None, messages).unwrap()).unwrap();
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
    fn each_branch_is_a_line_and_the_latest_comes_first() {
        let messages = [
            message(9, 0, 0, 10, &json("system", "be")),
            message(1, 0, 1, 10, &json("user", "ask")),
            message(2, 1, 2, 11, &json("assistant", "no")),
            message(3, 1, 2, 12, &json("assistant", "yes")),
            message(4, 3, 3, 13, &json("user", "more")),
        ];
        assert_eq!(exported(&messages), expected(&[("n", "be ask yes more"), ("n#2", "be ask no")]));
    }

    #[test]
    fn a_changing_instruction_appears_once_at_its_position() {
        let messages = [
            message(9, 0, 0, 10, &json("system", "nine")),
            message(8, 0, 0, 20, &json("system", "ten")),
            message(7, 0, 1, 10, &json("developer", "dev")),
            message(1, 0, 2, 10, &json("user", "ask")),
            message(6, 1, 3, 20, &json("system", "mid")),
            message(2, 1, 4, 20, &json("user", "more")),
            message(3, 1, 3, 11, &json("assistant", "old")),
        ];
        let lines = [("n", "ten dev ask mid more"), ("n#2", "nine dev ask mid old")];
        // The instruction in the middle is newer than the second branch, which has no other at that position.
        assert_eq!(exported(&messages), expected(&lines));
    }

    #[test]
    fn a_turn_has_its_messages_and_the_instructions_of_its_time() {
        let messages = [
            message(9, 0, 0, 10, &json("system", "nine")),
            message(8, 0, 0, 20, &json("system", "ten")),
            message(1, 0, 1, 10, &json("user", "ask")),
            message(2, 1, 2, 11, &json("assistant", "no")),
            message(3, 1, 2, 12, &json("assistant", "yes")),
            message(4, 3, 3, 20, &json("user", "more")),
        ];
        let turn = |end: u8, at| {
            let turn = turn_messages(&messages, &Digest([end; 32]).to_string(), at);
            let body: Value = serde_json::from_slice(&request_body(Dialect::Chat, "m", &turn)).unwrap();
            let texts: Vec<&str> = body["messages"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|message| message["content"].as_str())
                .collect();
            texts.join(" ")
        };
        assert_eq!(turn(1, 10), "nine ask");
        assert_eq!(turn(4, 20), "ten ask yes more");
        assert_eq!(turn(2, 15), "nine ask no");
        assert_eq!(turn(1, 5), "ask", "both instructions are newer");
        assert_eq!((turn(7, 20), turn_messages(&messages, "", 20)), (String::new(), Vec::new()));
    }

    #[test]
    fn missing_messages_are_marked_and_cycles_end() {
        let messages =
            [message(2, 1, 2, 11, &json("assistant", "a")), message(3, 2, 3, 12, &json("user", "b"))];
        assert_eq!(exported(&messages), expected(&[("n", "…a b")]));
        assert_eq!(exported(&[]), []);
        let cycle = [message(1, 2, 0, 1, "{}"), message(2, 1, 1, 1, "{}"), message(3, 2, 2, 2, "{}")];
        assert_eq!(exported(&cycle).len(), 1);
        let alone = [message(9, 0, 0, 10, &json("system", "be"))];
        assert_eq!(exported(&alone), expected(&[("n", "be")]));
    }

    #[test]
    fn a_message_keeps_its_bytes_on_one_line() {
        let odd = "{\"role\" : \"user\",\r\n \"content\":\"a\\nb\",\"n\":1.50e3}";
        let summary = ConversationSummary { id: "k".to_owned(), ..ConversationSummary::default() };
        let text = |json| {
            String::from_utf8(export_lines(&summary, None, &[message(1, 0, 0, 1, json)]).unwrap()).unwrap()
        };
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
    fn pinned_memory_is_only_on_the_first_line() {
        let messages = [
            message(1, 0, 0, 1, &json("user", "ask")),
            message(2, 1, 1, 2, &json("assistant", "a")),
            message(3, 1, 1, 3, &json("assistant", "b")),
        ];
        let summary = ConversationSummary { name: "n".to_owned(), ..ConversationSummary::default() };
        let text = String::from_utf8(export_lines(&summary, Some("two\nlines"), &messages).unwrap()).unwrap();
        let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((read[0]["memory"].as_str(), read[1].get("memory")), (Some("two\nlines"), None), "{text}");
    }

    #[test]
    fn branches_are_exported_as_long_as_they_fit() {
        let text = json("user", &"x".repeat(1_000));
        let messages: Vec<RawMessage> = (1..=5).map(|id| message(id, 0, 0, u64::from(id), &text)).collect();
        let tree = MessageTree::new(&messages);
        let fitting = |most| tree.fitting(&tree.leaves(), most);
        assert_eq!((fitting(1), fitting(2_500), fitting(1 << 20)), (1, 2, 5));
    }

    #[test]
    fn excess_branches_are_counted_but_not_exported() {
        let mut messages = vec![message(1, 0, 0, 1, &json("user", "ask"))];
        for number in 0..150 {
            messages.push(message(number + 50, 1, 1, u64::from(number), &json("assistant", "x")));
        }
        let summary = ConversationSummary { name: "n".to_owned(), ..ConversationSummary::default() };
        let text = String::from_utf8(export_lines(&summary, None, &messages).unwrap()).unwrap();
        assert_eq!(text.lines().count(), 100);
        assert!(text.starts_with("{\"id\":\"n\",\"model\":\"\",\"branches\":150,\"messages\""), "{text}");
    }
}
