//! What is recorded of an answer, whatever its size, compression and status.

use super::ask::{api, json, until_counted};
use crate::support::client::{Client, exchange, post};
use crate::support::metrics::value;
use crate::support::tidegate::Tidegate;
use crate::support::within;
use serde_json::{Value, json as js};
use tidegate_testkit::{Answer, Coding, MockUpstream};

const CHAT: &str = "/v1/chat/completions";

/// 2.50 USD per answer, and the next one is refused.
const LIMITED: &str = "[store]\nurl = \"memory:\"\n[context.limits]\nmax_cost_usd = 1.0\n\
    [models.m]\nwindow = 2000000\nencoding = \"o200k_base\"\ninput = 2.5\noutput = 10.0\n";

const ASKED: [(&str, &str); 2] = [("x-conversation-id", "c"), ("authorization", "Bearer ada")];

fn question(more: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}]{more}}}"#)
}

fn document(content: &str, extra: &str) -> String {
    format!(
        r#"{{"id":"c","choices":[{{"index":0,{extra}"message":{{"role":"assistant","content":"{content}"}},"finish_reason":"stop"}}],
        "usage":{{"prompt_tokens":1000000,"completion_tokens":1}}}}"#
    )
}

fn events() -> Answer {
    Answer::sse([
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"ok"}}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1000000,"completion_tokens":1}}"#,
        "[DONE]",
    ])
}

/// Asks twice. The first answer costs more than the limit, so the second request is refused.
async fn assert_counted(upstream: &MockUpstream, answer: Answer, accepts: &str, what: &str) {
    let tidegate = Tidegate::start(LIMITED, upstream).await;
    upstream.answer(answer);
    let headers = [ASKED[0], ASKED[1], ("accept-encoding", accepts)];
    let reply = exchange(tidegate.address, post(CHAT, &headers, question(""))).await;
    assert_eq!(reply.status, 200, "{what}: {}", reply.text());
    until_counted(&tidegate, 1).await;
    let turn = &json(&tidegate, "/api/conversations/c").await["turns"][0];
    assert_eq!(
        (&turn["prompt_tokens"], &turn["cost_estimated"]),
        (&js!(1_000_000), &js!(false)),
        "{what}: {turn}"
    );
    let refused = exchange(tidegate.address, post(CHAT, &headers, question(""))).await;
    assert_eq!((refused.status, refused.error_code().as_str()), (422, "max_cost_exceeded"), "{what}");
}

#[tokio::test]
async fn usage_is_read_through_every_compression() {
    let upstream = MockUpstream::start().await;
    for coding in Coding::ALL {
        for is_chunked in [false, true] {
            upstream.encode(Some(coding), is_chunked);
            for answer in [Answer::json(200, document("ok", "")), events()] {
                assert_counted(&upstream, answer, "gzip, deflate, br, zstd", coding.name()).await;
            }
        }
    }
}

#[tokio::test]
async fn a_compressed_answer_reaches_the_client_as_it_came() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for coding in Coding::ALL {
        upstream.encode(None, false);
        let body = coding.compress(document("ok", "").as_bytes());
        let answer = Answer::new(200).header("content-type", "application/json");
        upstream.answer(answer.header("content-encoding", coding.name()).chunk(body.clone()));
        let reply = exchange(tidegate.address, post(CHAT, &ASKED, question(""))).await;
        assert_eq!(reply.body, body, "{}", coding.name());
        assert_eq!(reply.header("content-encoding"), Some(coding.name()));
    }
}

#[tokio::test]
async fn usage_is_read_from_answers_of_any_size() {
    let upstream = MockUpstream::start().await;
    let alternatives = r#"{"token":"x","logprob":-0.1,"bytes":[120]},"#.repeat(50_000);
    let logprobs = format!(r#""logprobs":{{"content":[{alternatives}{{}}]}},"#);
    let long = Answer::json(200, document("ok", &logprobs));
    assert_counted(&upstream, long, "identity", "probabilities").await;
    let huge = Answer::json(200, document(&"x".repeat(9 << 20), ""));
    assert_counted(&upstream, huge, "identity", "a text of nine megabytes").await;
    let usage = r#""usage":{"prompt_tokens":1000000,"completion_tokens":1}"#;
    for (what, long) in [("one text", "x".repeat(2 << 20)), ("many texts", r#"","a":""#.repeat(400_000))] {
        let event = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{long}"}}}}],{usage}}}"#);
        let event = Answer::sse([&event, "[DONE]"]);
        assert_counted(&upstream, event, "identity", what).await;
    }
}

/// An upstream bills what it has read, whether anybody waits for the answer or not.
#[tokio::test]
async fn a_request_that_nobody_waits_for_costs_what_was_sent() {
    let upstream = MockUpstream::start().await;
    let config = format!("{LIMITED}[upstreams.default]\nfirst_byte_timeout = \"10s\"\n");
    let tidegate = Tidegate::start(&config, &upstream).await;
    upstream.then(Answer::new(200).stall());
    let text = "word ".repeat(500_000);
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let mut client = Client::connect(tidegate.address).await;
    client.send(post(CHAT, &ASKED, body)).await;
    upstream.next_request().await;
    drop(client);
    let turn = turns(&tidegate, 1).await.remove(0);
    // 500,000 tokens at 2.50 USD per million.
    let cost = turn["cost_usd"].as_f64().unwrap();
    assert!((1.2..1.3).contains(&cost) && turn["cost_estimated"] == true, "{turn}");
    assert_eq!(turn["outcome"], "client_closed", "{turn}");
    let refused = exchange(tidegate.address, post(CHAT, &ASKED, question(""))).await;
    assert_eq!((refused.status, refused.error_code().as_str()), (422, "max_cost_exceeded"));
}

/// Usage that cannot be read is estimated, so that a limit holds all the same.
#[tokio::test]
async fn an_unreadable_answer_is_estimated() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(LIMITED, &upstream).await;
    let secret =
        Answer::new(200).header("content-type", "application/json").header("content-encoding", "x-secret");
    upstream.answer(secret.fill(400_000));
    let reply = exchange(tidegate.address, post(CHAT, &ASKED, question(""))).await;
    assert_eq!(reply.status, 200);
    until_counted(&tidegate, 1).await;
    let turn = &json(&tidegate, "/api/conversations/c").await["turns"][0];
    // What is compressed in an unknown way has a token in each byte: 400,000 at 10 USD per million, and a few for the question.
    let cost = turn["cost_usd"].as_f64().unwrap();
    assert!((4.0..4.01).contains(&cost) && turn["cost_estimated"] == true, "{turn}");
    let refused = exchange(tidegate.address, post(CHAT, &ASKED, question(""))).await;
    assert_eq!((refused.status, refused.error_code().as_str()), (422, "max_cost_exceeded"));
}

async fn turns(tidegate: &Tidegate, requests: u64) -> Vec<Value> {
    until_counted(tidegate, requests).await;
    json(tidegate, "/api/conversations/c").await["turns"].as_array().unwrap().clone()
}

#[tokio::test]
async fn every_forwarded_request_has_a_turn() {
    let upstream = MockUpstream::start().await;
    let config = "[store]\nurl = \"memory:\"\n[upstreams.default]\nfirst_byte_timeout = \"200ms\"\n";
    let mut tidegate = Tidegate::start(config, &upstream).await;
    upstream.then(Answer::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "7"));
    upstream.then(Answer::error(500, "server_error", "oops"));
    upstream.then(Answer::new(200).stall());
    for status in [429, 500, 504] {
        let reply = exchange(tidegate.address, post(CHAT, &ASKED, question(""))).await;
        assert_eq!(reply.status, status, "{}", reply.text());
        upstream.next_request().await;
    }
    upstream.then(Answer::new(200).stall());
    let mut client = Client::connect(tidegate.address).await;
    client.send(post(CHAT, &ASKED, question(""))).await;
    upstream.next_request().await;
    drop(client);
    let turns = turns(&tidegate, 4).await;
    let told: Vec<_> =
        turns.iter().map(|turn| (&turn["status"], &turn["outcome"], &turn["retry_after_s"])).collect();
    let expected = [
        (js!(429), js!("upstream_error"), js!(7)),
        (js!(500), js!("upstream_error"), Value::Null),
        (js!(504), js!("upstream_error"), Value::Null),
        (js!(499), js!("client_closed"), Value::Null),
    ];
    for one in &expected {
        assert!(told.contains(&(&one.0, &one.1, &one.2)), "{one:?} in {told:?}");
    }
    // None of them is a turn of the conversation, and none was billed.
    let conversation = json(&tidegate, "/api/conversations/c").await["conversation"].clone();
    assert_eq!(
        (&conversation["turns"], &conversation["cost_usd"]),
        (&js!(0), &Value::Null),
        "{conversation}"
    );

    let line = tidegate.access_log(4).await.remove(0);
    assert_eq!(
        (&line["outcome"], &line["retry_after_s"], &line["model"], &line["conversation"]),
        (&js!("upstream_error"), &js!(7), &js!("m"), &js!("c"))
    );
    assert!(line["upstream_ms"].as_f64() > Some(0.0), "{line}");
    let page = api(tidegate.admin, "GET", "/metrics", &[]).await.text();
    let answers =
        |class: &str| value(&page, "tidegate_upstream_responses_total", &[&format!("status=\"{class}\"")]);
    assert_eq!((answers("4xx"), answers("5xx"), answers("none")), (Some(1.0), Some(1.0), Some(2.0)));
    assert_eq!(value(&page, "tidegate_upstream_rate_limited_total", &[]), Some(1.0));
    assert_eq!(value(&page, "tidegate_requests_total", &["outcome=\"upstream_error\""]), Some(3.0));
    // The overview is updated every few seconds.
    let look = async {
        loop {
            let totals = json(&tidegate, "/api/overview").await["totals"].clone();
            if (&totals["errors"], &totals["rate_limited"]) == (&js!(3), &js!(1)) {
                return;
            }
        }
    };
    within("the overview shows the errors", look).await;
}

#[tokio::test]
async fn azure_deployments_are_the_model_unless_the_body_names_one() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let path = "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21";
    let unnamed = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
    for body in [unnamed.to_owned(), question("")] {
        let reply = exchange(tidegate.address, post(path, &[("api-key", "k")], body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let lines = tidegate.access_log(2).await;
    assert_eq!((&lines[0]["model"], &lines[1]["model"]), (&js!("gpt-4o"), &js!("m")));
}
