//! The built-in OpenAI behaviour and the `x-mock` header.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream, filler};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The status and body of one exchange on a new connection. The body includes chunk framing.
async fn call(upstream: &MockUpstream, line: &str, headers: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut client = TcpStream::connect(upstream.address()).await.unwrap();
    let head =
        format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    (status, answer.split_off(split + 4))
}

async fn chat(upstream: &MockUpstream, body: Value) -> Value {
    let (status, answer) = call(upstream, "POST /v1/chat/completions", "", body.to_string().as_bytes()).await;
    assert_eq!(status, 200);
    serde_json::from_slice(&answer).unwrap()
}

/// The payloads of a streamed chat.
async fn stream(upstream: &MockUpstream, mut body: Value) -> Vec<String> {
    body["stream"] = true.into();
    let (_, answer) = call(upstream, "POST /v1/chat/completions", "", body.to_string().as_bytes()).await;
    let text = String::from_utf8(answer).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
}

fn user(text: &str) -> Value {
    json!({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]})
}

#[tokio::test]
async fn whole_and_streamed_answers_have_the_same_text() {
    let upstream = MockUpstream::start().await;
    let whole = chat(&upstream, user("hello there")).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "You said: hello there");
    assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 0);

    let events = stream(&upstream, user("hello there")).await;
    assert_eq!(events.last().unwrap(), "[DONE]");
    let deltas = events[..events.len() - 1].iter().map(|event| serde_json::from_str::<Value>(event).unwrap());
    let text: String = deltas
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "You said: hello there");
}

#[tokio::test]
async fn usage_is_streamed_only_if_requested() {
    let upstream = MockUpstream::start().await;
    let mut asking = user("hi");
    asking["stream_options"] = json!({"include_usage": true});
    for script in ["built in", "Answer::chat_stream"] {
        if script != "built in" {
            upstream.answer(Answer::chat_stream(["a", " b"]));
        }
        let with = stream(&upstream, asking.clone()).await;
        let last: Value = serde_json::from_str(&with[with.len() - 2]).unwrap();
        assert!(last["usage"]["total_tokens"].is_u64(), "{script}: {last}");
        assert_eq!(last["choices"], json!([]), "{script}");
        let without = stream(&upstream, user("hi")).await;
        assert!(!without.concat().contains("usage"), "{script}");
    }
}

#[tokio::test]
async fn a_question_about_the_weather_calls_a_tool() {
    let upstream = MockUpstream::start().await;
    let mut body = user("weather in Oslo?");
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    body["tools"] =
        json!([{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]);
    let call = chat(&upstream, body.clone()).await["choices"][0].clone();
    assert_eq!(call["finish_reason"], "tool_calls");
    let function = &call["message"]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "get_weather");
    assert_eq!(function["arguments"], r#"{"city":"weather in Oslo?"}"#);

    let events = stream(&upstream, body).await;
    let pieces = events.iter().filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let arguments: String = pieces
        .filter_map(|event| {
            let call = &event["choices"][0]["delta"]["tool_calls"][0];
            call["function"]["arguments"].as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(arguments, r#"{"city":"weather in Oslo?"}"#);
}

#[tokio::test]
async fn a_schema_is_filled() {
    let upstream = MockUpstream::start().await;
    let mut body = user("Ada");
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}});
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema}});
    let answer = chat(&upstream, body).await;
    let content: Value =
        serde_json::from_str(answer["choices"][0]["message"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content, json!({"name": "Ada", "age": 7}));
}

#[tokio::test]
async fn the_other_endpoints_answer_in_openais_format() {
    let upstream = MockUpstream::start().await;
    let (status, models) = call(&upstream, "GET /v1/models", "", b"").await;
    assert_eq!((status, models.starts_with(b"{\"data\":[")), (200, true));

    let (_, embedding) = call(&upstream, "POST /v1/embeddings", "", br#"{"input":"a","model":"e"}"#).await;
    let embedding: Value = serde_json::from_slice(&embedding).unwrap();
    assert_eq!(embedding["data"][0]["embedding"].as_array().unwrap().len(), 8);

    let form = b"--B\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
        --B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n\x00\r\n\x01\r\n--B--\r\n";
    let kind = "content-type: multipart/form-data; boundary=B\r\n";
    let (_, file) = call(&upstream, "POST /v1/files", kind, form).await;
    let file: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(
        (&file["bytes"], &file["filename"], &file["purpose"]),
        (&json!(4), &json!("a.bin"), &json!("batch"))
    );

    let (_, content) = call(&upstream, "GET /v1/files/file-5000/content", "", b"").await;
    assert!(content == filler(5000));

    let (status, error) = call(&upstream, "GET /v1/nowhere", "", b"").await;
    let error: Value = serde_json::from_slice(&error).unwrap();
    assert_eq!((status, &error["error"]["message"]), (404, &json!("Invalid URL (GET /v1/nowhere)")));
}

#[tokio::test]
async fn the_override_header_fails_a_number_of_times() {
    let upstream = MockUpstream::start().await;
    let header =
        "x-mock: {\"status\":429,\"times\":2,\"key\":\"abc\",\"headers\":{\"retry-after-ms\":\"1\"}}\r\n";
    for expected in [429, 429, 200] {
        assert_eq!(call(&upstream, "GET /v1/models", header, b"").await.0, expected);
    }
}

#[tokio::test]
async fn the_override_header_breaks_fills_and_echoes() {
    let upstream = MockUpstream::start().await;
    let (_, broken) = call(&upstream, "GET /v1/models", "x-mock: {\"break_after_bytes\":7}\r\n", b"").await;
    assert_eq!(broken, b"{\"data\"");
    let (_, filled) = call(&upstream, "GET /v1/models", "x-mock: {\"body_bytes\":70000}\r\n", b"").await;
    assert!(filled == filler(70_000));
    let (_, echo) = call(&upstream, "POST /a?b", "X-Mock: {\"echo\":true}\r\n", b"\xff").await;
    let echo: Value = serde_json::from_slice(&echo).unwrap();
    assert_eq!((&echo["target"], &echo["body_base64"]), (&json!("/a?b"), &json!("/w==")));
    assert_eq!(echo["headers"][2], json!(["X-Mock", "{\"echo\":true}"]));
}

#[tokio::test]
async fn the_override_header_stalls() {
    let upstream = MockUpstream::start().await;
    for wish in ["{\"stall\":\"before_first_byte\"}", "{\"stall_after_events\":2}"] {
        let mut client = TcpStream::connect(upstream.address()).await.unwrap();
        let body = json!({"stream": true, "messages": [{"role": "user", "content": "a b c"}]}).to_string();
        let length = body.len();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {length}\r\nx-mock: {wish}\r\n\r\n{body}"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        upstream.next_request().await;
        let mut seen = String::new();
        while wish.contains("after") && seen.matches("data: ").count() < 2 {
            seen.push(char::from(client.read_u8().await.unwrap()));
        }
        drop(client);
        upstream.disconnected().await;
    }
}
