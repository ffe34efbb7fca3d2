//! A conversation whose client sends only new messages.

use crate::conformance::scene::{Scene, Sent, completion, message};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::Reply;
use serde_json::{Value, json};
use std::net::SocketAddr;

pub(crate) const INSTRUCTION: &str = "Be brief.";

/// The question of a turn, long enough that a summary of a few turns is shorter.
pub(crate) fn question(turn: usize) -> String {
    format!("question {turn}: how long is pier {turn}? {}", "please measure. ".repeat(8))
}

/// The answer of a turn.
pub(crate) fn answer(turn: usize) -> String {
    format!("answer {turn}: the pier {turn} is {turn} metres long, {}", "as measured. ".repeat(8))
}

/// Sends one turn. Returns the response and the forwarded request.
pub(crate) async fn turn(scene: &Scene, name: &str, number: usize) -> (Reply, Sent) {
    scene.upstream.answer(completion(&answer(number)));
    scene.send(name, &[message("system", INSTRUCTION), message("user", &question(number))]).await
}

/// Sends these turns. Returns the response and the forwarded request of the last one.
pub(crate) async fn turns(
    scene: &Scene,
    name: &str,
    numbers: std::ops::RangeInclusive<usize>,
) -> (Reply, Sent) {
    let mut last = None;
    for number in numbers {
        last = Some(turn(scene, name, number).await);
    }
    last.unwrap()
}

/// The texts of a request without instructions and the summary.
pub(crate) fn recent(sent: &Sent) -> Vec<&str> {
    let talk = sent.messages().iter().filter(|message| message["role"] != "system");
    talk.map(|message| message["content"].as_str().unwrap_or_default()).collect()
}

/// The questions and answers of these turns.
pub(crate) fn exchanged(turns: std::ops::RangeInclusive<usize>) -> Vec<String> {
    turns.flat_map(|turn| [question(turn), answer(turn)]).collect()
}

/// Sends a request with any members and headers.
pub(crate) async fn send(address: SocketAddr, headers: &[(&str, &str)], body: &Value) -> Reply {
    exchange(address, post(CHAT, headers, body.to_string())).await
}

pub(crate) fn body(model: &str, messages: &[Value]) -> Value {
    json!({ "model": model, "messages": messages })
}

/// The headers of a conversation of this name.
pub(crate) fn headers(name: &str) -> [(&str, &str); 2] {
    [("x-conversation-id", name), ("authorization", "Bearer ada")]
}
