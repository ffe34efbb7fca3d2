//! Conversations of an exact number of tokens.

use crate::conformance::scene::{Scene, message};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::{Reply, figure};
use serde_json::{Value, json};

pub(crate) const INSTRUCTION: &str = "Be brief.";

/// Windows with input budgets of 1,000 and 1,001 tokens: `2530 − 506 − 1024` and `2531 − 506 − 1024`.
pub(crate) const MODELS: &str = "[models.\"even\"]\nwindow = 2530\nencoding = \"o200k_base\"\n\
                                 [models.\"odd\"]\nwindow = 2531\nencoding = \"o200k_base\"\n";

/// A model whose window is too large for any token threshold.
pub(crate) const WIDE: &str = "gpt-4o";

pub(crate) fn question(turn: usize) -> String {
    format!(
        "Question {turn}: the pier number {turn} needs {turn}00 planks, right? {}",
        "Please check it. ".repeat(6)
    )
}

pub(crate) fn answer(turn: usize) -> String {
    format!("Answer {turn}: yes, it is noted in the list of piers. {}", "It is fine. ".repeat(6))
}

/// A conversation of this many questions, the last one unanswered.
pub(crate) fn chat(turns: usize) -> Vec<Value> {
    let mut messages = vec![message("system", INSTRUCTION)];
    for turn in 1..=turns {
        messages.push(message("user", &question(turn)));
        messages.push(message("assistant", &answer(turn)));
    }
    messages.pop();
    messages
}

/// Sends a request for another model than the scene's.
pub(crate) async fn ask(scene: &Scene, model: &str, name: &str, messages: &[Value]) -> Reply {
    let body = json!({ "model": model, "messages": messages }).to_string();
    let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
    exchange(scene.tidegate.address, post(CHAT, &headers, body)).await
}

/// The messages with `words` more words in one of them, each a token.
pub(crate) fn longer(messages: &[Value], index: usize, words: u64) -> Vec<Value> {
    let mut messages = messages.to_vec();
    let text = messages[index]["content"].as_str().unwrap().trim_end().to_owned();
    messages[index]["content"] = json!(text + &" word".repeat(usize::try_from(words).unwrap()));
    messages
}

/// The messages, with one of them lengthened until the figure in `header` is `tokens`.
pub(crate) async fn sized(
    scene: &Scene,
    header: &str,
    messages: &[Value],
    index: usize,
    tokens: u64,
) -> Vec<Value> {
    let plain = figure(&ask(scene, WIDE, "probe", &longer(messages, index, 0)).await, header);
    assert!(plain <= tokens, "{plain} is already more than {tokens}");
    let sized = longer(messages, index, tokens - plain);
    assert_eq!(figure(&ask(scene, WIDE, "measured", &sized).await, header), tokens);
    sized
}
