//! Token counts of a model without a known tokenizer are calibrated by the usage that its upstream reports.

use crate::support::agent::{body, conversation, send};
use crate::support::reply::figure;
use crate::support::tidegate::Tidegate;
use serde_json::json;
use tidegate_testkit::{Answer, MockUpstream};

/// The token counts before and after some turns in which the upstream reports 1.5 times the estimate.
async fn counts(model: &str, stream: bool, later: &[(&str, &str)]) -> (u64, u64) {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let sent = body(model, &conversation(4), &[]);
    upstream.answer(Answer::json(200, "{}"));
    let (reply, _) = send(&tidegate, &upstream, &[], &sent).await;
    let first = figure(&reply, "x-tidegate-tokens-before");
    let usage =
        json!({"prompt_tokens": first * 3 / 2, "completion_tokens": 1, "total_tokens": first * 3 / 2 + 1});
    let chunk = json!({"object": "chat.completion.chunk", "choices": [], "usage": usage}).to_string();
    upstream.answer(if stream {
        Answer::sse([chunk.as_str(), "[DONE]"])
    } else {
        Answer::json(200, json!({"object": "chat.completion", "choices": [], "usage": usage}))
    });
    for _ in 0..8 {
        send(&tidegate, &upstream, &[], &sent).await;
    }
    let (reply, _) = send(&tidegate, &upstream, later, &sent).await;
    (first, figure(&reply, "x-tidegate-tokens-before"))
}

/// What the provider takes away or has already is not in our count, so the two cannot be compared.
#[tokio::test]
async fn requests_that_the_provider_manages_teach_nothing() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    upstream.answer(Answer::json(200, "{}"));
    let plain = body("mystery-1", &conversation(4), &[]);
    let before = figure(&send(&tidegate, &upstream, &[], &plain).await.0, "x-tidegate-tokens-before");
    let usage = json!({"prompt_tokens": before / 2, "completion_tokens": 1});
    upstream.answer(Answer::json(200, json!({"object": "chat.completion", "choices": [], "usage": usage})));
    let native = plain.replacen('{', r#"{"context_management":[{"type":"compaction"}],"#, 1);
    for _ in 0..8 {
        let (reply, _) = send(&tidegate, &upstream, &[], &native).await;
        assert_eq!(reply.header("x-tidegate-edits"), Some("native"));
    }
    let (reply, _) = send(&tidegate, &upstream, &[], &plain).await;
    assert_eq!(figure(&reply, "x-tidegate-tokens-before"), before);
}

#[tokio::test]
async fn an_unknown_model_is_calibrated_within_a_few_turns() {
    for stream in [false, true] {
        let (first, last) = counts("mystery-1", stream, &[]).await;
        let ratio = last as f64 / first as f64;
        assert!((1.45..1.55).contains(&ratio), "{first} {last}, streamed: {stream}");
    }
}

#[tokio::test]
async fn a_model_with_a_known_tokenizer_is_not_calibrated() {
    let (first, last) = counts("gpt-4o", false, &[]).await;
    assert_eq!(first, last);
}

/// One tenant's upstream must not change another tenant's budget.
#[tokio::test]
async fn calibration_is_per_tenant() {
    let (first, last) = counts("mystery-1", false, &[("authorization", "Bearer other")]).await;
    assert_eq!(first, last);
}
