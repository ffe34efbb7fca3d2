//! Section "Masking": what is masked, with which placeholder, and what never is.

use super::run::{NO_CACHE, PLACEHOLDER, result_at, run};
use crate::conformance::scene::{Scene, message};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::edited;
use serde_json::{Value, json};

/// The run with the results of these turns masked and everything else unchanged.
fn masked(turns: usize, which: std::ops::Range<usize>) -> Vec<Value> {
    let mut messages = run(turns);
    for turn in which {
        messages[result_at(turn)]["content"] = PLACEHOLDER.into();
    }
    messages
}

#[tokio::test]
async fn the_window_is_ten_turns_and_rolls() {
    let scene = Scene::start("agent", NO_CACHE).await;
    for turns in 9..=14 {
        let (reply, sent) = scene.send("c", &run(turns)).await;
        let left = turns.saturating_sub(10);
        assert_eq!(edited(&reply, "masked"), left, "{turns} turns");
        // Reasoning, actions and other members are unchanged.
        assert_eq!(sent.messages(), masked(turns, 0..left));
    }
}

/// The deviation: where cached input is cheaper, masking at every turn would cost more than it saves.
#[tokio::test]
async fn with_a_discount_on_cached_input_the_window_waits_until_masking_pays() {
    // Where the price of cached input is missing, there may be a larger discount, so the window waits longer.
    let silent = "[models.\"gpt-4o\"]\ninput = 2.5\noutput = 10.0\n";
    for (prices, last) in [("", 30), (silent, 110)] {
        let scene = Scene::start("agent", prices).await;
        let mut counts = Vec::new();
        for turns in 9..=last {
            let (reply, _) = scene.send("c", &run(turns)).await;
            counts.push(edited(&reply, "masked"));
        }
        assert_eq!(counts[..4], [0, 0, 0, 0], "one result outside the window is not worth it");
        let moves = counts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=4).contains(&moves), "{counts:?}");
    }
}

#[tokio::test]
async fn the_environment_and_the_configuration_set_the_window() {
    let by_variable =
        Scene::start_with("agent", "", |setup| setup.env("AGENT_CONTEXT_MASKING_WINDOW", "3")).await;
    let by_setting = Scene::start("agent", "[context.mask]\nkeep = { turns = 3 }\n").await;
    for scene in [by_variable, by_setting] {
        let (_, sent) = scene.send("three", &run(3)).await;
        assert_eq!(sent.messages(), run(3));
        let (_, sent) = scene.send("eight", &run(8)).await;
        assert_eq!(sent.messages(), masked(8, 0..5));
    }
}

/// Every byte of the request except masked contents.
#[tokio::test]
async fn everything_else_is_forwarded_byte_for_byte() {
    let scene = Scene::start("agent", "[context.mask]\nkeep = { turns = 1 }\n").await;
    let body = |first: &str| {
        format!(
            "{{ \"temperature\":1.0e0, \"model\":\"gpt-4o\",\"messages\" : [\n{{\"role\":\"user\",\"content\":\"go \\u00e9\"}},\
             {{\"role\":\"assistant\",\"reasoning\":[1.50, 2e9],\"content\":\"Thought:\\tone\",\"tool_calls\":[{{\"type\":\"function\",\"id\":\"a\",\
             \"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}}] }} ,{{\"content\": {first} ,\"tool_call_id\":\"a\",\"role\":\"tool\"}},\
             {{\"role\":\"assistant\",\"content\":\"Thought: two\"}}, {{\"role\":\"user\",\"content\":\"on\"}} ]}}"
        )
    };
    let sent = body(&format!("\"{}\"", "much output ".repeat(40)));
    let reply = exchange(scene.tidegate.address, post(CHAT, &[("x-conversation-id", "c")], sent)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let arrived = scene.upstream.next_request().await.body;
    assert_eq!(String::from_utf8(arrived).unwrap(), body(&format!("\"{PLACEHOLDER}\"")));
}

/// Section "Enabling", last point: a tagged output that is not a tool message is masked.
#[tokio::test]
async fn a_tagged_output_is_masked_and_the_tag_is_removed() {
    let scene = Scene::start("agent", "[context.mask]\nkeep = { turns = 2 }\n").await;
    let output = |turn: usize| format!("Observation {turn}: {}", "a line of it ".repeat(20));
    let chat = |is_tagged: bool, masked_turns: usize| {
        let mut messages = vec![message("user", "Go on.")];
        for turn in 0..5 {
            messages.push(message("assistant", &format!("Action: look at part {turn}")));
            let content = if turn < masked_turns { PLACEHOLDER.to_owned() } else { output(turn) };
            let mut observation = message("user", &content);
            if is_tagged {
                observation["observation"] = json!({ "type": "tool_output" });
            }
            messages.push(observation);
        }
        messages
    };
    let (reply, sent) = scene.send("tagged", &chat(true, 0)).await;
    assert_eq!(sent.messages(), chat(false, 3));
    assert_eq!(edited(&reply, "masked"), 3);
    // Without the tag it is a user message and is kept.
    let (_, sent) = scene.send("plain", &chat(false, 0)).await;
    assert_eq!(sent.messages(), chat(false, 0));
}
