use super::{admin_with, call, error_code, memory_store, options, send, test_router};
use crate::router::Router;
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_store::Conversations;

const JSON: (&str, &str) = ("content-type", "application/json");

fn agent_request(turns: usize) -> Value {
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

fn explain_router() -> Arc<Router> {
    let file = "[[routes]]\nname = \"a\"\nmatch = { models = [\"gpt-*\"] }\n[[routes]]\nname = \"b\"\nmatch = { models = [\"o*\"] }\n[routes.context]\nstrategy = \"passthrough\"\n";
    test_router(admin_with(Conversations::new(memory_store(), options()), file, Vec::new))
}

async fn explain(router: &Arc<Router>, target: &str, sent: &Value) -> (u16, Value) {
    let (status, text) = send(router, Method::POST, target, &[JSON], sent.to_string()).await;
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn a_request_is_explained_under_the_route_it_matches() {
    let router = explain_router();
    let (status, page) = explain(&router, "/api/explain", &json!({"request": agent_request(14)})).await;
    assert_eq!(status, 200, "{page}");
    assert_eq!((&page["explanation"]["route"], &page["messages_total"]), (&json!("a"), &json!(29)));
    assert_eq!(page["explanation"]["verdict"]["ending"], "edited");
    let masked = page["explanation"]["messages"].as_array().unwrap();
    let masked: Vec<_> =
        masked.iter().filter(|entry| entry["action"] == "mask").map(|one| &one["index"]).collect();
    assert_eq!(masked.len(), page["changes"].as_array().unwrap().len());
    let change = &page["changes"][0];
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
    assert!(
        lines.iter().filter(|line| line["op"] == "-").count() >= 60,
        "one removed line per line of the text"
    );
}

#[tokio::test]
async fn route_strategy_and_policy_can_be_overridden() {
    let router = explain_router();
    let request = agent_request(14);
    let explain_with = async |more: Value| {
        let mut sent = json!({"request": request});
        sent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, page) = explain(&router, "/api/explain", &sent).await;
        (status, page["explanation"]["verdict"]["masked"].clone(), page["error"]["message"].clone())
    };
    assert_eq!(explain_with(json!({"route": "b"})).await, (200, json!(0), Value::Null));
    assert_eq!(explain_with(json!({"strategy": "passthrough"})).await, (200, json!(0), Value::Null));
    let policy = "[context.mask]\nkeep = { turns = 2 }\n";
    assert_eq!(explain_with(json!({"policy": policy})).await, (200, json!(12), Value::Null));
    assert_eq!(explain_with(json!({"policy": null, "route": null, "strategy": null})).await.0, 200);
    let (status, _, message) = explain_with(json!({"policy": "[context.mask]\nkeep = 7"})).await;
    assert!(
        status == 400 && message.as_str().unwrap().starts_with("policy:2: `context.mask.keep`"),
        "{message}"
    );
    assert_eq!(explain_with(json!({"route": "nowhere"})).await.2, "no such route; the routes are a, b");
    assert_eq!(explain_with(json!({"strategy": "x"})).await.0, 400);
}

#[tokio::test]
async fn pages_are_bounded_and_the_clients_bytes_are_kept() {
    let router = explain_router();
    let sent = json!({"request": agent_request(400)});
    let (status, page) = explain(&router, "/api/explain?offset=500&limit=10", &sent).await;
    assert_eq!(status, 200);
    let indexes: Vec<u64> = page["explanation"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["index"].as_u64())
        .collect();
    assert_eq!(indexes, (500..510).collect::<Vec<_>>());
    assert!(page["changes"].as_array().unwrap().iter().all(|entry| entry["first"].as_u64() >= Some(500)));
    assert_eq!(
        explain(&router, "/api/explain?offset=5000", &sent).await.1["explanation"]["messages"],
        json!([])
    );
    assert_eq!(explain(&router, "/api/explain?limit=501", &sent).await.0, 400);

    let odd = "{\"request\":{ \"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\" ,\"n\":1.50e3,\"content\":\"x\",\"observation\":{\"type\":\"tool_output\"}}]}}";
    let (_, text) = send(&router, Method::POST, "/api/explain", &[JSON], odd).await;
    assert!(text.contains("\\\"n\\\": 1.50e3"), "{text}");
}

#[tokio::test]
async fn invalid_requests_are_reported_without_quoting_them() {
    let router = explain_router();
    for (body, status, expected) in [
        ("", 400, "invalid_request"),
        ("{\"request\": {\"secret\"", 400, "invalid_request"),
        ("{\"request\": {\"messages\": 5}}", 400, "invalid_request"),
        ("{\"request\": {\"messages\": [], \"messages\": []}}", 400, "invalid_request"),
        ("{\"request\": [], \"other\": 1}", 400, "invalid_request"),
        ("[]", 400, "invalid_request"),
    ] {
        let (given, text) = send(&router, Method::POST, "/api/explain", &[JSON], body).await;
        assert_eq!((given, error_code(&text).as_str()), (status, expected), "{body}");
        assert!(!text.contains("secret"), "{text}");
    }
    let (status, text) =
        send(&router, Method::POST, "/api/explain", &[("content-type", "text/plain")], "{}").await;
    assert_eq!((status, error_code(&text).as_str()), (415, "unsupported_media_type"));
    let (status, _) = call(&router, Method::GET, "/api/explain").await;
    assert_eq!(status, 405);
    let (status, page) =
        explain(&router, "/api/explain", &json!({"request": {"model": "claude-x", "messages": []}})).await;
    assert_eq!((status, &page["explanation"]["route"]), (200, &Value::Null), "no route matches");
}
