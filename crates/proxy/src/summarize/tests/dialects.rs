//! Endpoints that do not understand everything.

use super::*;

/// Refuses requests that have this member, and answers others.
fn refuses(upstream: &MockUpstream, member: &'static str, status: u16, message: &'static str) {
    upstream.script(move |request| match request.json().get(member) {
        Some(_) => Answer::error(status, "unsupported", message),
        None => good("Use redb"),
    });
}

fn has(upstream: &MockUpstream, member: &str) -> Vec<bool> {
    upstream.requests().iter().map(|request| request.json().get(member).is_some()).collect()
}

#[tokio::test]
async fn an_endpoint_without_schemas_is_asked_plainly_from_then_on() {
    for (status, model) in [(400, "plain-400"), (404, "plain-404"), (422, "plain-422"), (501, "plain-501")] {
        let upstream = MockUpstream::start().await;
        refuses(&upstream, "response_format", status, "what?");
        let bench = Bench::at(&upstream, model, "");
        for calls in [2, 1] {
            let made = bench.summarize(material()).await.unwrap();
            assert_eq!(made.summary.decisions, decided("Use redb"));
            assert_eq!(made.spent.calls, calls, "{status}");
        }
        assert_eq!(has(&upstream, "response_format"), [true, false, false]);
    }
}

#[tokio::test]
async fn what_is_refused_either_way_teaches_nothing() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::error(400, "model_not_found", "no such model"));
    let bench = Bench::at(&upstream, "missing", "");
    for _ in 0..2 {
        let failed = bench.summarize(material()).await.unwrap_err();
        assert_eq!((failed.reason(), failed.spent.calls), ("summarizer_refused", 2));
    }
    assert_eq!(has(&upstream, "response_format"), [true, false, true, false]);
}

#[tokio::test]
async fn the_operator_can_insist() {
    let upstream = MockUpstream::start().await;
    refuses(&upstream, "response_format", 400, "what?");
    let failed =
        Bench::at(&upstream, "insist", "json_schema = true").summarize(material()).await.unwrap_err();
    assert_eq!((failed.reason(), failed.spent.calls), ("summarizer_refused", 1));
    let made = Bench::at(&upstream, "insist", "json_schema = false").summarize(material()).await.unwrap();
    assert_eq!(made.spent.calls, 1);
    assert_eq!(has(&upstream, "response_format"), [true, false]);
}

#[tokio::test]
async fn reasoning_models_get_the_limit_that_they_know() {
    let upstream = MockUpstream::start().await;
    let message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    refuses(&upstream, "max_tokens", 400, message);
    let bench = Bench::at(&upstream, "reasoning", "");
    for calls in [2, 1] {
        assert_eq!(bench.summarize(material()).await.unwrap().spent.calls, calls);
    }
    assert_eq!(has(&upstream, "max_completion_tokens"), [false, true, true]);
    assert_eq!(has(&upstream, "temperature"), [true, false, false]);
    assert_eq!(has(&upstream, "response_format"), [true, true, true]);
}

#[tokio::test]
async fn an_endpoint_that_knows_neither() {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| {
        let body = request.json();
        if body.get("temperature").is_some() {
            Answer::error(400, "unsupported_value", "'temperature' does not support 0")
        } else if body.get("response_format").is_some() {
            Answer::error(400, "unsupported", "'response_format' is not supported")
        } else {
            good("Use redb")
        }
    });
    let bench = Bench::at(&upstream, "neither", "");
    for calls in [3, 1] {
        assert_eq!(bench.summarize(material()).await.unwrap().spent.calls, calls);
    }
}
