//! Trace context is read from the request and passed to the upstream.

use super::scene::{MASKING, ask, one, request, traced, upstream};
use crate::support::chat::{body, chat};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{MockUpstream, OtlpReceiver};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const STATE: &str = "vendor=opaque,other=1";

async fn header(upstream: &MockUpstream, name: &str) -> Option<String> {
    let headers = upstream.next_request().await.headers;
    headers.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[tokio::test]
async fn the_upstream_continues_the_clients_trace() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let tidegate = traced(MASKING, &upstream, &collector.http_url()).start().await;
    ask(&tidegate, "p", body(&chat(1)), &[("traceparent", PARENT), ("tracestate", STATE)]).await;
    let headers = upstream.next_request().await.headers;
    let value = |name: &str| {
        headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    };
    let spans = request(&collector, TRACE).await;
    let call = one(&spans, "chat gpt-4o");
    assert_eq!(value("traceparent"), Some(format!("00-{TRACE}-{}-01", call.id).as_str()));
    assert_eq!(value("tracestate"), Some(STATE));
    assert_eq!(call.trace_state, STATE);
}

#[tokio::test]
async fn an_unsampled_request_is_not_traced() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let tidegate = traced(MASKING, &upstream, &collector.http_url()).start().await;
    let unsampled = PARENT.replace("-01", "-00");
    ask(&tidegate, "p", body(&chat(1)), &[("traceparent", &unsampled)]).await;
    let passed = header(&upstream, "traceparent").await.unwrap();
    assert!(passed.starts_with(&format!("00-{TRACE}-")) && passed.ends_with("-00"), "{passed}");
    // A later request is traced.
    let other = PARENT.replace(TRACE, &TRACE.replace('0', "1"));
    ask(&tidegate, "p", body(&chat(1)), &[("traceparent", &other)]).await;
    let spans = request(&collector, &TRACE.replace('0', "1")).await;
    assert!(!spans.is_empty());
    let all = collector.spans("any", |spans| !spans.is_empty()).await;
    assert!(all.iter().all(|span| span.trace != TRACE), "it was traced");
}

#[tokio::test]
async fn the_sample_ratio_spares_requests_that_are_already_sampled() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let settings = format!("{MASKING}[telemetry]\nsample_ratio = 0.0\n");
    let tidegate = traced(&settings, &upstream, &collector.http_url()).start().await;
    ask(&tidegate, "p", body(&chat(1)), &[]).await;
    // A sampled parent is traced despite the ratio.
    ask(&tidegate, "p", body(&chat(1)), &[("traceparent", PARENT)]).await;
    let spans = request(&collector, TRACE).await;
    assert!(!spans.is_empty());
    let all = collector.spans("any", |spans| !spans.is_empty()).await;
    assert!(all.iter().all(|span| span.trace == TRACE));
}

#[tokio::test]
async fn without_a_collector_traceparent_passes_unchanged() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(MASKING, &upstream).await;
    ask(&tidegate, "p", body(&chat(1)), &[("traceparent", PARENT)]).await;
    assert_eq!(header(&upstream, "traceparent").await.as_deref(), Some(PARENT));
    ask(&tidegate, "p", body(&chat(1)), &[]).await;
    assert_eq!(header(&upstream, "traceparent").await, None);
}
