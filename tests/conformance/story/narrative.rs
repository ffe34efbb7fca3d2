//! Stories with messages of an exact number of tokens.

use crate::conformance::scene::{Scene, Sent};
use crate::support::client::{CHAT, exchange, post};
use crate::support::command::{command, run};
use crate::support::reply::Reply;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The tokens of the last message.
const QUESTION: usize = 10;
/// The tokens that prime the reply, once per request.
const PRIMING: usize = 3;

/// A message of exactly `tokens` tokens that starts with `number`: three for its frame, one for its role, one for the number, and one
/// per word.
pub(crate) fn part(role: &str, number: usize, tokens: usize) -> Value {
    assert!(number < 1000 && tokens >= 5);
    json!({ "role": role, "content": format!("{number}{}", " word".repeat(tokens - 5)) })
}

/// A story with parts of these sizes, alternating between the user and the assistant, and a scaffold (instructions, the last question
/// and the reply priming) of `scaffold` tokens.
pub(crate) fn narrative(scaffold: usize, parts: &[usize]) -> Vec<Value> {
    assert!(parts.len().is_multiple_of(2), "the last part is the assistant's");
    let mut messages = vec![part("system", 0, scaffold - QUESTION - PRIMING)];
    let role = |number: usize| if number.is_multiple_of(2) { "user" } else { "assistant" };
    messages.extend(parts.iter().enumerate().map(|(number, tokens)| part(role(number), number, *tokens)));
    messages.push(part("user", 999, QUESTION));
    messages
}

/// The parts of a story that reached the upstream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The numbers of the parts before and after the marker; without one, all are in `head`.
    pub(crate) head: Vec<usize>,
    pub(crate) tail: Vec<usize>,
    pub(crate) marker: Option<String>,
}

impl Window {
    pub(crate) fn of(sent: &Sent) -> Window {
        let mut window = Window { head: Vec::new(), tail: Vec::new(), marker: None };
        let messages = sent.messages();
        // Skip the instructions and the question, which are always there.
        assert_eq!((&messages[0]["role"], messages.len() > 2), (&"system".into(), true));
        assert!(messages[messages.len() - 1]["content"].as_str().unwrap().starts_with("999 "));
        for content in &sent.contents()[1..messages.len() - 1] {
            let number = content.split(' ').next().and_then(|number| number.parse().ok());
            match (number, &window.marker) {
                (Some(number), None) => window.head.push(number),
                (Some(number), Some(_)) => window.tail.push(number),
                (None, None) => window.marker = Some((*content).to_owned()),
                (None, Some(_)) => panic!("a second marker: {content}"),
            }
        }
        window
    }

    /// The number of parts before and after the marker.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.head.len(), self.tail.len())
    }
}

/// Like [`Scene::ask`], with `max_tokens`, which sets the budget.
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

/// Runs a command with this profile. Returns its standard output.
pub(crate) async fn tidegate(settings: &str, request: &Value, args: &[&str]) -> String {
    let directory = TempDir::new().unwrap();
    let config = format!("[context]\nprofile = \"story\"\n{settings}");
    std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
    std::fs::write(directory.path().join("request.json"), request.to_string()).unwrap();
    run(command(directory.path()).args(args)).await.out
}
