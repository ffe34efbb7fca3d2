//! The same messages are left out for as long as possible, and calls stay with their results.

use super::narrative::{ask, narrative, part};
use crate::conformance::scene::{Scene, Sent};
use crate::support::reply::edited;
use serde_json::{Value, json};

/// 27,000 tokens are safe. Minus a fifth and the fixed reserve, 11,100 are left for the input.
const MODELS: &str = "[models.\"m\"]\nwindow = 30000\n[models.\"large\"]\nwindow = 300000\n";

async fn send(scene: &Scene, model: &str, messages: &[Value]) -> (usize, Sent) {
    let reply = ask(scene, "c", model, messages, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let sent = Sent(scene.upstream.next_request().await.json());
    assert_eq!(sent.0["model"], model, "another model was used");
    (edited(&reply, "dropped"), sent)
}

/// A story of this many parts that ends with a question.
fn story_of(parts: usize) -> Vec<Value> {
    let role = |number: usize| if number.is_multiple_of(2) { "user" } else { "assistant" };
    let messages = (0..parts).map(|number| part(role(number), number, 300));
    [part("system", 0, 1_000)].into_iter().chain(messages).collect()
}

fn marker_at(sent: &Sent) -> usize {
    sent.contents().iter().position(|text| text.contains("left out here")).expect("a marker")
}

/// Each request extends the previous one, so that the provider's cache is used.
#[tokio::test]
async fn the_same_middle_is_left_out_until_the_request_no_longer_fits() {
    let scene = Scene::start("story", MODELS).await;
    let (first, mut before) = send(&scene, "m", &story_of(41)).await;
    assert!(first > 0);
    let mut same = 0;
    for parts in (43..80).step_by(2) {
        let (dropped, sent) = send(&scene, "m", &story_of(parts)).await;
        // A retry forwards the same request.
        assert_eq!(send(&scene, "m", &story_of(parts)).await.1.0, sent.0);
        if dropped != first {
            // Finally it no longer fits, and more is left out; the beginning does not change.
            assert!(dropped > first && same >= 2, "{dropped}, after {same} times {first}");
            assert_eq!(marker_at(&sent), marker_at(&before));
            return;
        }
        let kept = before.messages().len();
        assert_eq!(&sent.messages()[..kept], before.messages(), "{parts} parts");
        (before, same) = (sent, same + 1);
    }
    panic!("it always fits");
}

/// A client that switches to a larger model gets all messages back. Tidegate never switches the model.
#[tokio::test]
async fn with_more_room_nothing_is_left_out() {
    let scene = Scene::start("story", MODELS).await;
    let story = narrative(1_000, &[300; 40]);
    assert!(send(&scene, "m", &story).await.0 > 0);
    let (dropped, sent) = send(&scene, "large", &story).await;
    assert_eq!((dropped, sent.messages()), (0, story.as_slice()));
    assert!(send(&scene, "m", &story).await.0 > 0);
}

/// A story whose assistant rolls dice with tool calls in every turn.
fn with_calls(turns: usize, calls: usize) -> Vec<Value> {
    let mut messages = vec![part("system", 0, 500)];
    for turn in 0..turns {
        let id = |call: usize| format!("{turn}-{call}");
        let one = |call: usize| {
            let function = json!({ "name": "roll", "arguments": format!("{{\"d\":{call}}}") });
            json!({ "id": id(call), "type": "function", "function": function })
        };
        messages.push(part("user", turn, 150));
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": (0..calls).map(one).collect::<Vec<_>>() }));
        for call in 0..calls {
            messages.push(json!({ "role": "tool", "tool_call_id": id(call), "content": format!("{turn}{}", " pip".repeat(80)) }));
        }
        messages.push(part("assistant", turn, 250));
    }
    messages.push(part("user", 999, 10));
    messages
}

#[tokio::test]
async fn no_call_is_separated_from_its_results() {
    for calls in [1, 2, 5] {
        let scene = Scene::start("story", MODELS).await;
        for turns in 26..32 {
            let (dropped, sent) = send(&scene, "m", &with_calls(turns, calls)).await;
            assert!(dropped > 0, "{calls} calls, {turns} turns");
            let ids = |role: &str| -> Vec<String> {
                let of = |message: &Value| match role {
                    "tool" => vec![message["tool_call_id"].as_str().unwrap_or_default().to_owned()],
                    _ => {
                        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                        calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect()
                    }
                };
                sent.messages().iter().filter(|message| message["role"] == role).flat_map(of).collect()
            };
            assert_eq!(ids("assistant"), ids("tool"), "{calls} calls, {turns} turns");
            // At least three messages before the marker and five after it.
            let at = marker_at(&sent);
            assert!(at > 3 && sent.messages().len() - at - 2 >= 5, "{at} of {}", sent.messages().len());
        }
    }
}
