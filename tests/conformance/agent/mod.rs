//! Profile `agent`.

use crate::scene::{Scene, edited, message};
use serde_json::json;

#[tokio::test]
async fn the_results_of_the_last_ten_turns_stay() {
    let scene = Scene::start("agent", "").await;
    let mut messages = vec![message("system", "Work."), message("user", "Go on.")];
    for turn in 0..12 {
        let call = json!({ "id": format!("c{turn}"), "type": "function", "function": { "name": "look", "arguments": format!("{{\"n\":{turn}}}") } });
        messages
            .push(json!({ "role": "assistant", "content": format!("thought {turn}"), "tool_calls": [call] }));
        messages.push(json!({ "role": "tool", "tool_call_id": format!("c{turn}"), "content": format!("result {turn} {}", "line ".repeat(50)) }));
    }
    let (reply, sent) = scene.say("c", &messages).await;
    assert_eq!(edited(&reply, "masked"), 2);
    let placeholder = "[OMITTED_OBSERVATION: too old; available in memory store]";
    assert_eq!((sent.contents()[3], sent.contents()[5]), (placeholder, placeholder));
    assert!(sent.contents()[7].starts_with("result 2 "));
}
