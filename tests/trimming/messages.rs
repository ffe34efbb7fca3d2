//! The same for Anthropic's messages, in which one message can hold several results.

use super::{TRIM, edits, log};
use crate::messages::{send, upstream};
use crate::support::tidegate::Tidegate;
use serde_json::{Value, json};
use tidegate_testkit::messages_api::{assert_valid, breakpoints};

/// A run in which every step makes two calls. The results are a long text, and a list with a short text, an image and a long text.
fn request(steps: usize) -> String {
    let mut messages = vec![json!({"role": "user", "content": "Fix the bug."})];
    for step in 0..steps {
        let call = |id: &str| json!({"type": "tool_use", "id": format!("{id}{step}"), "name": "shell", "input": {"n": step}});
        messages.push(json!({"role": "assistant", "content": [call("a"), call("b")]}));
        let image =
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": format!("a{step}"), "content": log(2 * step), "is_error": true},
            {"type": "tool_result", "tool_use_id": format!("b{step}"), "cache_control": {"type": "ephemeral"}, "content": [
                {"type": "text", "text": "short"}, image, {"type": "text", "text": log(2 * step + 1)}]},
            {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
        ]}));
        if step > 0 {
            // At most four markers are allowed, and clients move them.
            let before = 2 * step;
            messages[before]["content"][1].as_object_mut().unwrap().remove("cache_control");
        }
    }
    json!({"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": messages}).to_string()
}

/// What the model has asked for whole would only be asked for again.
#[tokio::test]
async fn what_a_client_of_the_mcp_server_has_recalled_stays_whole() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(&format!("{TRIM}[context.recall]\ntool = true\n"), &upstream).await;
    for (recall, trimmed) in [("mcp__tidegate__recall", 2), ("mcp__shop__recall", 4)] {
        let mut sent: Value = serde_json::from_str(&request(5)).unwrap();
        sent["tools"] = ["shell", recall, "mcp__tidegate__recall"].map(|name| json!({"name": name})).into();
        for step in [1, 3] {
            for call in 0..2 {
                sent["messages"][2 * step + 1]["content"][call]["name"] = json!(recall);
            }
        }
        let (reply, arrived) = send(&tidegate, &upstream, &sent.to_string()).await;
        assert_eq!(edits(&reply), format!("masked=0,trimmed={trimmed},folded=0,dropped=0"));
        let arrived: Value = serde_json::from_str(&arrived).unwrap();
        let is_whole = |step: usize| arrived["messages"][2 * step + 2] == sent["messages"][2 * step + 2];
        assert_eq!([0, 1, 2, 3].map(is_whole), [false, trimmed == 2, false, trimmed == 2]);
    }
}

#[tokio::test]
async fn every_long_text_of_a_result_becomes_an_excerpt() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(TRIM, &upstream).await;
    let mut first = None;
    for steps in 1..6 {
        let sent = request(steps);
        let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
        assert_eq!(edits(&reply), format!("masked=0,trimmed={},folded=0,dropped=0", steps - 1));
        let (before, after): (Value, Value) =
            (serde_json::from_str(&sent).unwrap(), serde_json::from_str(&arrived).unwrap());
        assert_valid(&after);
        assert_eq!(breakpoints(&after), breakpoints(&before));
        assert_eq!(after["messages"][2 * steps], before["messages"][2 * steps], "the fresh results");
        if steps > 1 {
            let results = &after["messages"][2]["content"];
            let (text, parts) = (&results[0]["content"], &results[1]["content"]);
            for (number, excerpt) in [(0, text), (1, &parts[2]["text"])] {
                let excerpt = excerpt.as_str().unwrap();
                assert!(excerpt.contains(&format!("ERROR: cannot open build {number}")), "{excerpt}");
                assert!(excerpt.len() < 1800 && excerpt.contains("the original is intact"), "{excerpt}");
            }
            assert_eq!(parts[0], before["messages"][2]["content"][1]["content"][0], "the short text");
            assert_eq!(parts[1], before["messages"][2]["content"][1]["content"][1], "the image");
            assert_eq!(results[0]["is_error"], json!(true));
            assert_eq!(first.get_or_insert_with(|| parts.clone()), parts, "an excerpt changed");
        }
    }
}
