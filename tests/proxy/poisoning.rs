//! What a client writes teaches nobody a window, however the upstream's errors quote it.

use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream};

const CONFIG: &str = "[store]\nurl = \"memory:\"\n[context.mask]\npace = { batch = 1000 }\n";

/// What the attacker wants everybody's window to be.
const PHRASES: [&str; 4] = [
    "This model's maximum context length is 300 tokens. However, your messages resulted in 9000 tokens.",
    "prompt is too long: 9000 tokens > 300 maximum",
    "The input (9000 tokens) is longer than the model's context length (300 tokens).",
    "Range of input length should be [1, 300]",
];

/// An upstream that refuses what holds a phrase, and quotes it.
async fn upstream(quote: fn(&str) -> Value) -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.script(move |request| {
        let request = request.json();
        let strings = [
            &request["messages"][0]["content"],
            &request["tools"][0]["function"]["name"],
            &request["response_format"]["type"],
        ];
        let quoted = strings.into_iter().filter_map(Value::as_str).find(|text| {
            let text = text.to_ascii_lowercase();
            PHRASES.iter().any(|phrase| text.contains(&phrase.to_ascii_lowercase()))
        });
        match quoted {
            Some(text) => Answer::json(400, quote(text)),
            None => Answer::chat("ok"),
        }
    });
    upstream
}

async fn ask(tidegate: &Tidegate, tenant: &str, body: impl Into<String>) -> Reply {
    let bearer = format!("Bearer {tenant}");
    let headers = [("x-conversation-id", tenant), ("authorization", bearer.as_str())];
    exchange(tidegate.address, post(CHAT, &headers, body.into())).await
}

/// Ways to bring a phrase into an error. The rest of the request is long enough for the window to be possible.
fn attacks(phrase: &str) -> Vec<String> {
    let padding = json!({"role": "user", "content": "the tide ".repeat(2_000)});
    let hello = json!({"role": "user", "content": "Hello."});
    let tool = json!({"type": "function", "function": {"name": phrase}});
    let plain =
        json!({"model": "shared", "messages": [{"role": "user", "content": phrase}, padding]}).to_string();
    let escaped: String = phrase.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    vec![
        plain.replace(phrase, &escaped),
        plain.replace(phrase, &phrase.to_uppercase()),
        plain,
        json!({"model": "shared", "messages": [hello, padding], "tools": [tool]}).to_string(),
        json!({"model": "shared", "messages": [hello, padding], "response_format": {"type": phrase}})
            .to_string(),
    ]
}

#[tokio::test]
async fn an_error_that_quotes_the_client_teaches_nothing() {
    let quotes: [fn(&str) -> Value; 4] = [
        |text| json!({"error": {"message": format!("Invalid value: '{text}'. Supported values are: 'text'."), "type": "invalid_request_error"}}),
        |text| json!({"detail": format!("'{text}' is not of type 'object'")}),
        // Nothing of the upstream's own stands before it.
        |text| json!({"error": {"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"}}),
        |text| json!({"error": {"message": "Provider returned error", "metadata": {"raw": format!("ValueError: {text}")}}}),
    ];
    for quote in quotes {
        let upstream = upstream(quote).await;
        let tidegate = Setup::new(CONFIG).before(&upstream).start().await;
        for attack in PHRASES.into_iter().flat_map(attacks) {
            assert_eq!(ask(&tidegate, "mallory", &*attack).await.status, 400, "{attack}");
            let windows: Value = admin(tidegate.admin, "/api/windows").await.json();
            assert_eq!(windows["windows"], json!([]), "{attack}");
        }
        // Everybody else's requests go out as they are.
        let turns = (0..40).map(|turn| json!({"role": if turn % 2 == 0 { "user" } else { "assistant" }, "content": "How high is the tide? ".repeat(40)}));
        let body = json!({"model": "shared", "messages": turns.collect::<Vec<Value>>()}).to_string();
        let reply = ask(&tidegate, "ada", &*body).await;
        assert_eq!((reply.status, reply.header("x-tidegate-budget")), (200, Some("none")));
        assert_eq!(upstream.requests().last().unwrap().body, body.as_bytes());
    }
}

/// A request cannot have been too long for a window that is many times its size.
#[tokio::test]
async fn a_window_that_the_request_fits_into_is_not_learnt() {
    let upstream = MockUpstream::start().await;
    let message = "This model's maximum context length is 128000 tokens. However, your messages resulted in 192041 tokens.";
    upstream.script(|_| Answer::error(400, "context_length_exceeded", message));
    let tidegate = Setup::new(CONFIG).before(&upstream).start().await;
    let body = json!({"model": "shared", "messages": [{"role": "user", "content": "Hello."}]}).to_string();
    let reply = ask(&tidegate, "ada", body).await;
    assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (400, None));
    let windows: Value = admin(tidegate.admin, "/api/windows").await.json();
    assert_eq!(windows["windows"], json!([]));
}
