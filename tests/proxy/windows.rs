//! Whose word counts for the size of a model's window, and for how long.

use crate::support::client::{CHAT, admin, exchange, get, post};
use crate::support::command::command;
use crate::support::reply::{Reply, figure};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, until};

const CONFIG: &str = "[store]\nurl = \"memory:\"\n[context.mask]\npace = { batch = 1000 }\n";

fn body(model: &str, words: usize) -> String {
    let messages = [json!({"role": "user", "content": "the tide ".repeat(words / 2)})];
    json!({"model": model, "messages": messages}).to_string()
}

async fn ask(tidegate: &Tidegate, path: &str, body: &str) -> Reply {
    let headers = [("x-conversation-id", "c"), ("authorization", "Bearer ada")];
    exchange(tidegate.address, post(path, &headers, body)).await
}

async fn windows(tidegate: &Tidegate) -> Value {
    let page: Value = admin(tidegate.admin, "/api/windows").await.json();
    page["windows"].clone()
}

/// A gateway, a fine-tune or another server can have any window under a known name.
#[tokio::test]
async fn a_published_window_refuses_nothing_on_another_host() {
    let upstream = MockUpstream::start().await;
    let tidegate = Setup::new(CONFIG).before(&upstream).start().await;
    for model in ["gpt-4", "gpt-4o", "gemini-2.5-computer-use", "mistral-large-2402"] {
        let long = body(model, 150_000);
        let reply = ask(&tidegate, CHAT, &long).await;
        assert_eq!(reply.status, 200, "{model}: {}", reply.text());
        assert_eq!(upstream.next_request().await.body, long.as_bytes(), "{model}");
        assert!(figure(&reply, "x-tidegate-budget") < 128_000, "{model}: edits keep to it all the same");
    }
    // Where the operator vouches for it, it counts.
    let config = format!("{CONFIG}[models.\"gpt-4\"]\nwindow = 8192\n");
    let tidegate = Setup::new(&config).before(&upstream).start().await;
    let refused = ask(&tidegate, CHAT, &body("gpt-4", 12_000)).await;
    assert_eq!((refused.status, refused.error_code().as_str()), (422, "context_budget_exceeded"));
}

#[tokio::test]
async fn a_published_window_is_certain_at_its_provider() {
    let directory = TempDir::new().unwrap();
    let request = directory.path().join("request.json");
    std::fs::write(&request, body("gpt-4", 12_000)).unwrap();
    for (url, is_refused) in [
        ("https://api.openai.com", true),
        ("https://eu.api.openai.com/v1", true),
        ("https://openrouter.ai/api/v1", false),
        ("https://acme.openai.azure.com", false),
        ("http://127.0.0.1:8000", false),
    ] {
        let config = format!("[upstreams.default]\nurl = \"{url}\"\n");
        std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
        let explained = command(directory.path()).arg("explain").arg(&request).output().await.unwrap();
        let text = String::from_utf8_lossy(&explained.stdout).into_owned();
        assert_eq!(text.contains("refused with 422"), is_refused, "{url}: {text}");
    }
}

/// The schemas of tools are counted as OpenAI is thought to show them to its models, which nobody knows.
#[tokio::test]
async fn tools_alone_are_no_reason_to_refuse() {
    let upstream = MockUpstream::start().await;
    let config = format!("{CONFIG}[models.\"exact\"]\nwindow = 4000\nencoding = \"o200k_base\"\n");
    let tidegate = Setup::new(&config).before(&upstream).start().await;
    let tool = |number: usize| {
        let description = "Reads the tide tables of a harbour. ".repeat(50);
        json!({"type": "function", "function": {"name": format!("tool_{number}"), "description": description}})
    };
    let schema = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {"description": "x ".repeat(5_000)}}});
    let hello = [json!({"role": "user", "content": "Hello."})];
    for rest in
        [json!({"tools": (0..20).map(tool).collect::<Vec<Value>>()}), json!({"response_format": schema})]
    {
        let mut body = rest;
        body["model"] = "exact".into();
        body["messages"] = hello.to_vec().into();
        let reply = ask(&tidegate, CHAT, &body.to_string()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(ask(&tidegate, CHAT, &body("exact", 6_000)).await.status, 422, "texts are counted");
}

#[tokio::test]
async fn a_learnt_window_follows_the_list_of_models() {
    let upstream = MockUpstream::start().await;
    let listed = Arc::new(AtomicU64::new(0));
    let answered = listed.clone();
    upstream.script(move |request| match request.target.as_str() {
        "/v1/models" => {
            let window = answered.load(Ordering::SeqCst);
            Answer::json(
                200,
                json!({"data": [{"type": "model", "id": "fresh-model", "max_input_tokens": window}]}),
            )
        }
        _ => Answer::chat("ok"),
    });
    let tidegate = Setup::new(CONFIG).before(&upstream).start().await;
    for window in [30_000, 60_000, 40_000] {
        listed.store(window, Ordering::SeqCst);
        exchange(tidegate.address, get("/v1/models")).await;
        until("the window is known", async || windows(&tidegate).await[0]["window"] == window).await;
        let reply = ask(&tidegate, CHAT, &body("fresh-model", 10)).await;
        assert_eq!(figure(&reply, "x-tidegate-budget"), window - 2_048 - window / 20);
    }
}

/// An upstream that answers a longer request has a larger window by now.
#[tokio::test]
async fn a_learnt_window_is_forgotten_once_it_is_outgrown() {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| match request.target.as_str() {
        "/v1/models" => Answer::json(200, json!({"data": [{"id": "fresh-model", "max_model_len": 3_000}]})),
        _ => {
            let used = request.body.len() / 5;
            let message = json!({"role": "assistant", "content": "ok"});
            Answer::json(
                200,
                json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": used, "completion_tokens": 1, "total_tokens": used + 1}}),
            )
        }
    });
    let tidegate = Setup::new(CONFIG).before(&upstream).start().await;
    exchange(tidegate.address, get("/v1/models")).await;
    until("the window is known", async || windows(&tidegate).await[0]["window"] == 3_000).await;
    // A request that fits says nothing.
    let reply = ask(&tidegate, CHAT, &body("fresh-model", 1_000)).await;
    assert!(figure(&reply, "x-tidegate-budget") < 3_000);
    assert_eq!(windows(&tidegate).await[0]["window"], 3_000);
    // One that cannot be shortened is the upstream's to judge.
    assert_eq!(ask(&tidegate, CHAT, &body("fresh-model", 10_000)).await.status, 200);
    until("the window is forgotten", async || windows(&tidegate).await == json!([])).await;
    let reply = ask(&tidegate, CHAT, &body("fresh-model", 1_000)).await;
    assert_eq!(reply.header("x-tidegate-budget"), Some("none"));
}
