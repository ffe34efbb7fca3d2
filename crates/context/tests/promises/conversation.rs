//! Generates agent conversations: with single and parallel tool calls, legacy function calls, results as plain text, images,
//! instructions in the middle, and unknown members.

use crate::material::{ATTACHMENTS, ODD, text};
use crate::spelling::{Dice, Member, Part, Spelled, object, string};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
}

/// A message as the client sends it, and the facts that the properties check.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) speaker: Speaker,
    pub(crate) spelled: Spelled,
    pub(crate) tagged: bool,
    /// Whether it is a user message that reports an observation as text.
    pub(crate) reports: bool,
    pub(crate) has_content: bool,
    /// The tool whose result it is.
    pub(crate) tool: Option<&'static str>,
}

impl Speaker {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Speaker::System => "system",
            Speaker::Developer => "developer",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
            Speaker::Tool => "tool",
            Speaker::Function => "function",
        }
    }

    pub(crate) fn is_instruction(self) -> bool {
        matches!(self, Speaker::System | Speaker::Developer)
    }
}

/// One step of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    instruction: Option<Speaker>,
    /// The number of words that the user says first.
    user: Option<usize>,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Say,
    /// Parallel calls, each with its result.
    Call(Vec<Outcome>),
    LegacyCall(Outcome),
    /// A call and its result as plain text.
    Report(Outcome),
    /// A result in a user message, recognizable only by its tag.
    Tagged(Outcome),
}

#[derive(Clone, Debug)]
struct Outcome {
    words: usize,
    shape: Shape,
    tool: &'static str,
    tagged: bool,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Text,
    TextParts,
    MixedParts,
    Null,
}

pub(crate) const TOOLS: [&str; 4] = ["search", "read_file", "shell", "sm\u{f6}rg\u{e5}s\""];

fn outcome() -> impl Strategy<Value = Outcome> {
    // Includes results about as long as a placeholder, for which masking may not pay.
    let words = prop_oneof![3 => 0usize..24, 3 => 24usize..400];
    let shape = prop_oneof![
        8 => Just(Shape::Text), 2 => Just(Shape::TextParts), 1 => Just(Shape::MixedParts), 1 => Just(Shape::Null)
    ];
    let tool = prop::sample::select(&TOOLS[..]);
    (words, shape, tool, prop::bool::weighted(0.15)).prop_map(|(words, shape, tool, tagged)| Outcome {
        words,
        shape,
        tool,
        tagged,
    })
}

pub(crate) fn turn() -> impl Strategy<Value = Turn> {
    let action = prop_oneof![
        1 => Just(Action::Say),
        5 => prop::collection::vec(outcome(), 1..4).prop_map(Action::Call),
        1 => outcome().prop_map(Action::LegacyCall),
        2 => outcome().prop_map(Action::Report),
        1 => outcome().prop_map(Action::Tagged),
    ];
    let speaker = prop::sample::select(&[Speaker::System, Speaker::Developer][..]);
    let instruction = prop::option::weighted(0.1, speaker);
    (instruction, prop::option::weighted(0.3, 1usize..60), action)
        .prop_map(|(instruction, user, action)| Turn { instruction, user, action })
}

/// Generates the messages of a conversation. The message at `edited` differs from the unedited version.
pub(crate) fn messages(turns: &[Turn], seed: u64, edited: Option<usize>) -> Vec<Sent> {
    let mut writer = Writer { seed, edited, sent: Vec::new(), calls: 0 };
    writer.say(Speaker::System, 30);
    writer.say(Speaker::User, 20);
    for turn in turns {
        if let Some(speaker) = turn.instruction {
            writer.say(speaker, 12);
        }
        if let Some(words) = turn.user {
            writer.say(Speaker::User, words);
        }
        writer.act(&turn.action);
    }
    writer.sent
}

struct Writer {
    seed: u64,
    edited: Option<usize>,
    sent: Vec<Sent>,
    calls: usize,
}

impl Writer {
    fn dice(&self) -> Dice {
        let index = self.sent.len();
        let version = u64::from(self.edited == Some(index));
        Dice::new(self.seed ^ ((index as u64) << 32) ^ (version << 63))
    }

    fn say(&mut self, speaker: Speaker, words: usize) {
        let mut dice = self.dice();
        let content = text(&mut dice, "", words);
        let content = string(&mut dice, &content);
        self.push(dice, speaker, Some(content), Vec::new(), Sent::plain);
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Say => self.say(Speaker::Assistant, 25),
            Action::Call(outcomes) => {
                let first = self.calls;
                self.calls += outcomes.len();
                self.call(first, outcomes);
                for (index, outcome) in outcomes.iter().enumerate() {
                    let id = format!("\"call_{}\"", first + index);
                    self.result(Speaker::Tool, outcome, vec![(Part::Other, "tool_call_id", id)], "");
                }
            }
            Action::LegacyCall(outcome) => {
                let mut dice = self.dice();
                let name = string(&mut dice, outcome.tool);
                let call = object(
                    &mut dice,
                    vec![
                        (Part::Other, "name", name.clone()),
                        (Part::Other, "arguments", "\"{\\\"a\\\":1}\"".into()),
                    ],
                );
                let members = vec![(Part::Other, "function_call", call.text)];
                self.push(dice, Speaker::Assistant, Some("null".into()), members, Sent::plain);
                self.result(Speaker::Function, outcome, vec![(Part::Other, "name", name)], "");
            }
            Action::Report(outcome) => {
                self.say(Speaker::Assistant, 15);
                self.result(Speaker::User, outcome, Vec::new(), "Observation: ");
            }
            Action::Tagged(outcome) => {
                self.say(Speaker::Assistant, 15);
                let outcome = Outcome { tagged: true, ..outcome.clone() };
                self.result(Speaker::User, &outcome, Vec::new(), "");
            }
        }
    }

    fn call(&mut self, first: usize, outcomes: &[Outcome]) {
        let mut dice = self.dice();
        let mut calls = Vec::new();
        for (index, outcome) in outcomes.iter().enumerate() {
            let name = string(&mut dice, outcome.tool);
            let arguments = text(&mut dice, "{\"q\": 1e999} ", 6);
            let arguments = string(&mut dice, &arguments);
            let function =
                object(&mut dice, vec![(Part::Other, "name", name), (Part::Other, "arguments", arguments)]);
            let members = vec![
                (Part::Other, "id", format!("\"call_{}\"", first + index)),
                (Part::Other, "type", "\"function\"".into()),
                (Part::Other, "function", function.text),
            ];
            calls.push(object(&mut dice, members).text);
        }
        let members = vec![(Part::Other, "tool_calls", format!("[{}]", calls.join(" , ")))];
        let said = text(&mut dice, "", 8);
        let said = string(&mut dice, &said);
        let content = dice.pick(&[Some("null"), Some(said.as_str()), None]).map(str::to_owned);
        self.push(dice, Speaker::Assistant, content, members, Sent::plain);
    }

    fn result(&mut self, speaker: Speaker, outcome: &Outcome, mut members: Vec<Member>, lead: &'static str) {
        let mut dice = self.dice();
        let said = text(&mut dice, lead, outcome.words);
        let said = string(&mut dice, &said);
        let part = object(
            &mut dice,
            vec![(Part::Other, "type", "\"text\"".into()), (Part::Other, "text", said.clone())],
        );
        let content = match outcome.shape {
            Shape::Text => said,
            Shape::TextParts => format!("[{} ]", part.text),
            Shape::MixedParts => format!("[{},{}]", part.text, dice.pick(&ATTACHMENTS)),
            Shape::Null => "null".into(),
        };
        if outcome.tagged {
            let tag =
                dice.pick(&["{\"type\":\"tool_output\"}", "{ \"n\":[1], \"t\\u0079pe\" : \"tool_output\" }"]);
            members.push((Part::Tag, "observation", tag.into()));
        }
        let has_content = !matches!(outcome.shape, Shape::Null);
        let reports = !lead.is_empty() && has_content;
        let tool = match speaker {
            Speaker::Tool | Speaker::Function => Some(outcome.tool),
            _ => None,
        };
        let tagged = outcome.tagged;
        self.push(dice, speaker, Some(content), members, |sent| Sent {
            tagged,
            reports,
            has_content,
            tool,
            ..sent
        });
    }

    /// Adds the members that every message has, and some unknown ones. `x_serial` identifies the message.
    fn push(
        &mut self,
        mut dice: Dice,
        speaker: Speaker,
        content: Option<String>,
        mut members: Vec<Member>,
        known: impl FnOnce(Sent) -> Sent,
    ) {
        let role = speaker.name();
        let role = if dice.one_in(20) {
            format!("\"\\u{:04x}{}\"", role.as_bytes()[0], &role[1..])
        } else {
            format!("\"{role}\"")
        };
        members.push((Part::Other, "role", role));
        members.push((Part::Other, "x_serial", self.sent.len().to_string()));
        members.extend(content.map(|content| (Part::Content, "content", content)));
        if dice.one_in(4) {
            members.push((Part::Other, "x_odd", dice.pick(&ODD).into()));
        }
        if dice.one_in(8) {
            members.push((Part::Other, "x_twice", "1.0".into()));
            members.push((Part::Other, "x_twice", "2e9".into()));
        }
        if self.edited == Some(self.sent.len()) {
            // Makes the message differ even if its content does not.
            members.push((Part::Other, "refusal", "\"edited\"".into()));
        }
        if speaker == Speaker::User && dice.one_in(6) {
            members.push((Part::Other, "name", "\"ada\"".into()));
        }
        let spelled = object(&mut dice, members);
        let sent = Sent { speaker, spelled, tagged: false, reports: false, has_content: true, tool: None };
        self.sent.push(known(sent));
    }
}

impl Sent {
    fn plain(self) -> Sent {
        self
    }
}
