//! Stories whose messages cost what they should, to the token.

use crate::conformance::scene::{Scene, Sent};
use crate::support::client::{CHAT, exchange, post};
use crate::support::command::{command, run};
use crate::support::reply::Reply;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What the user says last.
const QUESTION: usize = 10;
/// What opens the answer, once per request.
const PRIMING: usize = 3;

/// A message of exactly so many tokens that begins with a number: three are its frame, one its role, one the number, and each
/// word is one more.
pub(crate) fn part(role: &str, number: usize, tokens: usize) -> Value {
    assert!(number < 1000 && tokens >= 5);
    json!({ "role": role, "content": format!("{number}{}", " word".repeat(tokens - 5)) })
}

/// A story of parts of these sizes, told in turns by the user and the assistant, beside a scaffold (instructions, the last question
/// and what opens the answer) of so many tokens.
pub(crate) fn tale(scaffold: usize, parts: &[usize]) -> Vec<Value> {
    assert!(parts.len().is_multiple_of(2), "the assistant was the last to speak");
    let mut messages = vec![part("system", 0, scaffold - QUESTION - PRIMING)];
    let role = |number: usize| if number.is_multiple_of(2) { "user" } else { "assistant" };
    messages.extend(parts.iter().enumerate().map(|(number, tokens)| part(role(number), number, *tokens)));
    messages.push(part("user", 999, QUESTION));
    messages
}

/// What reached the upstream of a story.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The numbers of the parts before and behind the marker; without one, all are before it.
    pub(crate) head: Vec<usize>,
    pub(crate) tail: Vec<usize>,
    pub(crate) marker: Option<String>,
}

impl Told {
    pub(crate) fn of(sent: &Sent) -> Told {
        let mut told = Told { head: Vec::new(), tail: Vec::new(), marker: None };
        let messages = sent.messages();
        // Neither the instructions nor the question, which are both there.
        assert_eq!((&messages[0]["role"], messages.len() > 2), (&"system".into(), true));
        assert!(messages[messages.len() - 1]["content"].as_str().unwrap().starts_with("999 "));
        for content in &sent.contents()[1..messages.len() - 1] {
            let number = content.split(' ').next().and_then(|number| number.parse().ok());
            match (number, &told.marker) {
                (Some(number), None) => told.head.push(number),
                (Some(number), Some(_)) => told.tail.push(number),
                (None, None) => told.marker = Some((*content).to_owned()),
                (None, Some(_)) => panic!("a second marker: {content}"),
            }
        }
        told
    }

    /// How many parts there are on each side of the marker.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.head.len(), self.tail.len())
    }
}

/// The same as [`Scene::ask`], with an answer of at most so many tokens, which sets the budget.
pub(crate) async fn ask(
    scene: &Scene,
    name: &str,
    model: &str,
    messages: &[Value],
    answer: Option<u64>,
) -> Reply {
    let mut body = json!({ "model": model, "messages": messages });
    if let Some(answer) = answer {
        body["max_tokens"] = answer.into();
    }
    let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
    exchange(scene.tidegate.address, post(CHAT, &headers, body.to_string())).await
}

/// A command of the binary beside a configuration with this profile.
pub(crate) async fn tidegate(settings: &str, request: &Value, args: &[&str]) -> String {
    let directory = TempDir::new().unwrap();
    let config = format!("[context]\nprofile = \"story\"\n{settings}");
    std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
    std::fs::write(directory.path().join("request.json"), request.to_string()).unwrap();
    run(command(directory.path()).args(args)).await.out
}
