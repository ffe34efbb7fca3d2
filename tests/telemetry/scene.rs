//! Starts the processes of a test: Tidegate, an upstream, a collector.

use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::metrics::value;
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{Answer, MockUpstream, OtlpReceiver, SpanFacts, SpanKind, until};

/// A word in every key, prompt and answer of these tests, to search for.
pub(crate) const SECRET: &str = "barnacle";

pub(crate) const MASKING: &str =
    "[store]\nurl = \"memory:\"\n[context.mask]\nkeep = { turns = 1 }\npace = \"every_turn\"\n";

/// An upstream with a fixed answer and usage.
pub(crate) async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, answer(2_000, 1_024)));
    upstream
}

/// A completion with this usage.
pub(crate) fn answer(prompt: u64, cached: u64) -> String {
    format!(
        r#"{{"id":"chatcmpl-7","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{{"index":0,"finish_reason":"stop",
        "message":{{"role":"assistant","content":"It is a {SECRET}."}}}}],"usage":{{"prompt_tokens":{prompt},"completion_tokens":10,
        "total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{cached}}}}}}}"#,
        prompt + 10
    )
}

/// A process that exports to the collector without delay.
pub(crate) fn traced(settings: &str, upstream: &MockUpstream, collector: &str) -> Setup {
    Setup::new(settings)
        .upstream(&upstream.url())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "50")
}

/// Sends a turn of the conversation `name`.
pub(crate) async fn ask(tidegate: &Tidegate, name: &str, body: String, more: &[(&str, &str)]) -> Reply {
    let key = format!("Bearer {SECRET}-key");
    let mut headers = vec![("x-conversation-id", name), ("authorization", key.as_str())];
    headers.extend_from_slice(more);
    exchange(tidegate.address, post(CHAT, &headers, body)).await
}

/// Waits for all spans of one request.
pub(crate) async fn request(collector: &OtlpReceiver, trace: &str) -> Vec<SpanFacts> {
    let of_trace = |spans: &[SpanFacts]| -> Vec<SpanFacts> {
        spans.iter().filter(|span| span.trace == trace).cloned().collect()
    };
    let is_whole = |spans: &[SpanFacts]| {
        let spans = of_trace(spans);
        let has = |name: &str| spans.iter().any(|span| span.name == name);
        spans.iter().any(|span| span.kind == SpanKind::Server)
            && (has("remember") || spans.iter().all(|span| span.kind != SpanKind::Client))
    };
    of_trace(&collector.spans(&format!("the request of trace {trace}"), is_whole).await)
}

pub(crate) fn one<'a>(spans: &'a [SpanFacts], name: &str) -> &'a SpanFacts {
    let mut found = spans.iter().filter(|span| span.name == name);
    let one = found.next().unwrap_or_else(|| panic!("no span `{name}` in {spans:#?}"));
    assert!(found.next().is_none(), "more than one span `{name}` in {spans:#?}");
    one
}

/// The `/metrics` page.
pub(crate) async fn page(tidegate: &Tidegate) -> String {
    admin(tidegate.admin, "/metrics").await.text()
}

/// Waits until this many requests are counted, which happens shortly after their responses.
pub(crate) async fn until_counted(tidegate: &Tidegate, requests: f64) -> String {
    until(&format!("{requests} requests are counted"), async || {
        let page = page(tidegate).await;
        let tokens = value(&page, "gen_ai_client_token_usage_count", &["input"]);
        tokens.unwrap_or(0.0) >= requests
    })
    .await;
    page(tidegate).await
}
