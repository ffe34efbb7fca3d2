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
        assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_refused", 2));
    }
    assert_eq!(has(&upstream, "response_format"), [true, false, true, false]);
}

#[tokio::test]
async fn the_operator_can_insist() {
    let upstream = MockUpstream::start().await;
    refuses(&upstream, "response_format", 400, "what?");
    let failed =
        Bench::at(&upstream, "insist", "json_schema = true").summarize(material()).await.unwrap_err();
    assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_refused", 1));
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

/// A model with a small window is asked within bounds.
const SMALL: &str = "window = 2048";

/// What a request's schema is: with lengths, without, or none.
fn schema(request: &Value) -> &'static str {
    match request.get("response_format") {
        Some(format) if format.to_string().contains("maxLength") => "bounded",
        Some(_) => "plain",
        None => "none",
    }
}

fn schemas(upstream: &MockUpstream) -> Vec<&'static str> {
    upstream.requests().iter().map(|request| schema(&request.json())).collect()
}

/// Answers requests with this schema, and refuses others.
fn understands(upstream: &MockUpstream, known: &'static str) {
    upstream.script(move |request| match schema(&request.json()) {
        schema if schema == known => good("Use redb"),
        _ => Answer::error(400, "invalid_request_error", "'maxLength' is not permitted"),
    });
}

#[tokio::test]
async fn bounds_go_before_the_schema_does() {
    let cases: [(&str, &'static str, &[&str]); 3] = [
        ("bounds", "bounded", &["bounded", "bounded"]),
        ("no-bounds", "plain", &["bounded", "plain", "plain"]),
        ("no-schema", "none", &["bounded", "plain", "none", "none"]),
    ];
    for (model, known, expected) in cases {
        let upstream = MockUpstream::start().await;
        understands(&upstream, known);
        let bench = Bench::at(&upstream, model, SMALL);
        for _ in 0..2 {
            let made = bench.summarize(material()).await.unwrap();
            assert_eq!(made.summary.decisions, decided("Use redb"));
        }
        assert_eq!(schemas(&upstream), expected);
    }
}

#[tokio::test]
async fn insisting_on_a_schema_is_not_insisting_on_bounds() {
    let upstream = MockUpstream::start().await;
    understands(&upstream, "plain");
    let bench = Bench::at(&upstream, "insist-small", "window = 2048\njson_schema = true");
    assert_eq!(bench.summarize(material()).await.unwrap().spent.calls, 2);
    understands(&upstream, "none");
    let failed = bench.summarize(material()).await.unwrap_err();
    assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_refused", 1));
    assert_eq!(schemas(&upstream), ["bounded", "plain", "plain"]);
}

#[tokio::test]
async fn a_model_with_room_is_asked_without_bounds() {
    let upstream = MockUpstream::start().await;
    understands(&upstream, "plain");
    let bench = Bench::at(&upstream, "roomy", "window = 8192");
    assert_eq!(bench.summarize(material()).await.unwrap().spent.calls, 1);
}
