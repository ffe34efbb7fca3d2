use super::{admin_with, ask, code, desk, memory, options, send};
use crate::desk::Desk;
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_store::Conversations;

const JSON: (&str, &str) = ("content-type", "application/json");

fn an_agents_request(turns: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "task"})];
    for turn in 0..turns {
        let call = json!({"id": format!("c{turn}"), "type": "function", "function": {"name": "ls", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(
            json!({"role": "tool", "tool_call_id": format!("c{turn}"), "content": "a file\n".repeat(60)}),
        );
    }
    json!({"model": "gpt-4o", "messages": messages})
}

fn a_desk() -> Arc<Desk> {
    let file = "[[routes]]\nname = \"a\"\nmatch = { models = [\"gpt-*\"] }\n[[routes]]\nname = \"b\"\nmatch = { models = [\"o*\"] }\n[routes.context]\nstrategy = \"passthrough\"\n";
    desk(admin_with(Conversations::new(memory(), options()), file, Vec::new))
}

async fn explained(desk: &Arc<Desk>, target: &str, sent: &Value) -> (u16, Value) {
    let (status, text) = send(desk, Method::POST, target, &[JSON], sent.to_string()).await;
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn a_request_is_explained_under_the_route_that_it_would_take() {
    let desk = a_desk();
    let (status, told) = explained(&desk, "/api/explain", &json!({"request": an_agents_request(14)})).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!((&told["explanation"]["route"], &told["messages_total"]), (&json!("a"), &json!(29)));
    assert_eq!(told["explanation"]["verdict"]["ending"], "edited");
    let masked = told["explanation"]["messages"].as_array().unwrap();
    let masked: Vec<_> =
        masked.iter().filter(|one| one["action"] == "mask").map(|one| &one["index"]).collect();
    assert_eq!(masked.len(), told["changes"].as_array().unwrap().len());
    let change = &told["changes"][0];
    assert_eq!(
        (&change["kind"], &change["first"], &change["title"]),
        (&json!("changed"), &json!(2), &json!("messages[2]: masked"))
    );
    let lines = change["lines"].as_array().unwrap();
    assert!(
        lines
            .iter()
            .any(|line| line["op"] == "+" && line["text"].as_str().unwrap().contains("OMITTED_OBSERVATION"))
    );
    assert!(lines.iter().filter(|line| line["op"] == "-").count() >= 60, "a line for each line of the text");
}

#[tokio::test]
async fn another_route_strategy_and_policy_can_be_tried() {
    let desk = a_desk();
    let request = an_agents_request(14);
    let ending = async |more: Value| {
        let mut sent = json!({"request": request});
        sent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, told) = explained(&desk, "/api/explain", &sent).await;
        (status, told["explanation"]["verdict"]["masked"].clone(), told["error"]["message"].clone())
    };
    assert_eq!(ending(json!({"route": "b"})).await, (200, json!(0), Value::Null));
    assert_eq!(ending(json!({"strategy": "passthrough"})).await, (200, json!(0), Value::Null));
    let policy = "[context.mask]\nkeep = { turns = 2 }\n";
    assert_eq!(ending(json!({"policy": policy})).await, (200, json!(12), Value::Null));
    assert_eq!(ending(json!({"policy": null, "route": null, "strategy": null})).await.0, 200);
    let (status, _, message) = ending(json!({"policy": "[context.mask]\nkeep = 7"})).await;
    assert!(
        status == 400 && message.as_str().unwrap().starts_with("policy:2: `context.mask.keep`"),
        "{message}"
    );
    assert_eq!(ending(json!({"route": "nowhere"})).await.2, "there is no such route; the routes are a, b");
    assert_eq!(ending(json!({"strategy": "x"})).await.0, 400);
}

#[tokio::test]
async fn pages_are_bounded_and_bytes_are_the_clients() {
    let desk = a_desk();
    let sent = json!({"request": an_agents_request(400)});
    let (status, told) = explained(&desk, "/api/explain?offset=500&limit=10", &sent).await;
    assert_eq!(status, 200);
    let indexes: Vec<u64> = told["explanation"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["index"].as_u64())
        .collect();
    assert_eq!(indexes, (500..510).collect::<Vec<_>>());
    assert!(told["changes"].as_array().unwrap().iter().all(|one| one["first"].as_u64() >= Some(500)));
    assert_eq!(
        explained(&desk, "/api/explain?offset=5000", &sent).await.1["explanation"]["messages"],
        json!([])
    );
    assert_eq!(explained(&desk, "/api/explain?limit=501", &sent).await.0, 400);

    let odd = "{\"request\":{ \"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\" ,\"n\":1.50e3,\"content\":\"x\",\"observation\":{\"type\":\"tool_output\"}}]}}";
    let (_, text) = send(&desk, Method::POST, "/api/explain", &[JSON], odd).await;
    assert!(text.contains("\\\"n\\\": 1.50e3"), "{text}");
}

#[tokio::test]
async fn what_is_no_request_is_said_without_quoting_it() {
    let desk = a_desk();
    for (body, status, said) in [
        ("", 400, "invalid_request"),
        ("{\"request\": {\"secret\"", 400, "invalid_request"),
        ("{\"request\": {\"messages\": 5}}", 400, "invalid_request"),
        ("{\"request\": {\"messages\": [], \"messages\": []}}", 400, "invalid_request"),
        ("{\"request\": [], \"other\": 1}", 400, "invalid_request"),
        ("[]", 400, "invalid_request"),
    ] {
        let (given, text) = send(&desk, Method::POST, "/api/explain", &[JSON], body).await;
        assert_eq!((given, code(&text).as_str()), (status, said), "{body}");
        assert!(!text.contains("secret"), "{text}");
    }
    let (status, text) =
        send(&desk, Method::POST, "/api/explain", &[("content-type", "text/plain")], "{}").await;
    assert_eq!((status, code(&text).as_str()), (415, "unsupported_media_type"));
    let (status, _) = ask(&desk, Method::GET, "/api/explain").await;
    assert_eq!(status, 405);
    let (status, told) =
        explained(&desk, "/api/explain", &json!({"request": {"model": "claude-x", "messages": []}})).await;
    assert_eq!((status, &told["explanation"]["route"]), (200, &Value::Null), "no route wants it");
}
