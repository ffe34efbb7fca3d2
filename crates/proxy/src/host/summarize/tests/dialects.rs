//! Endpoints that do not support every request format.

use super::*;

/// Rejects requests with this member and answers others.
fn rejects(upstream: &MockUpstream, member: &'static str, status: u16, message: &'static str) {
    upstream.script(move |request| match request.json().get(member) {
        Some(_) => Answer::error(status, "unsupported", message),
        None => valid_answer("Use redb"),
    });
}

fn has(upstream: &MockUpstream, member: &str) -> Vec<bool> {
    upstream.requests().iter().map(|request| request.json().get(member).is_some()).collect()
}

#[tokio::test]
async fn an_endpoint_that_rejects_schemas_gets_none_from_then_on() {
    for (status, model) in [(400, "plain-400"), (404, "plain-404"), (422, "plain-422"), (501, "plain-501")] {
        let upstream = MockUpstream::start().await;
        rejects(&upstream, "response_format", status, "what?");
        let fixture = Fixture::at(&upstream, model, "");
        for calls in [2, 1] {
            let made = fixture.summarize(material()).await.unwrap();
            assert_eq!(made.summary.decisions, decisions("Use redb"));
            assert_eq!(made.spent.calls, calls, "{status}");
        }
        assert_eq!(has(&upstream, "response_format"), [true, false, false]);
    }
}

#[tokio::test]
async fn a_request_rejected_in_every_dialect_changes_nothing() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::error(400, "model_not_found", "no such model"));
    let fixture = Fixture::at(&upstream, "missing", "");
    for _ in 0..2 {
        let failed = fixture.summarize(material()).await.unwrap_err();
        assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_refused", 2));
    }
    assert_eq!(has(&upstream, "response_format"), [true, false, true, false]);
}

#[tokio::test]
async fn the_operator_can_force_or_disable_the_schema() {
    let upstream = MockUpstream::start().await;
    rejects(&upstream, "response_format", 400, "what?");
    let failed =
        Fixture::at(&upstream, "insist", "json_schema = true").summarize(material()).await.unwrap_err();
    assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_refused", 1));
    let made = Fixture::at(&upstream, "insist", "json_schema = false").summarize(material()).await.unwrap();
    assert_eq!(made.spent.calls, 1);
    assert_eq!(has(&upstream, "response_format"), [true, false]);
}

#[tokio::test]
async fn reasoning_models_get_max_completion_tokens() {
    let upstream = MockUpstream::start().await;
    let message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    rejects(&upstream, "max_tokens", 400, message);
    let fixture = Fixture::at(&upstream, "reasoning", "");
    for calls in [2, 1] {
        assert_eq!(fixture.summarize(material()).await.unwrap().spent.calls, calls);
    }
    assert_eq!(has(&upstream, "max_completion_tokens"), [false, true, true]);
    assert_eq!(has(&upstream, "temperature"), [true, false, false]);
    assert_eq!(has(&upstream, "response_format"), [true, true, true]);
}

#[tokio::test]
async fn an_endpoint_can_reject_both_the_temperature_and_the_schema() {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| {
        let body = request.json();
        if body.get("temperature").is_some() {
            Answer::error(400, "unsupported_value", "'temperature' does not support 0")
        } else if body.get("response_format").is_some() {
            Answer::error(400, "unsupported", "'response_format' is not supported")
        } else {
            valid_answer("Use redb")
        }
    });
    let fixture = Fixture::at(&upstream, "neither", "");
    for calls in [3, 1] {
        assert_eq!(fixture.summarize(material()).await.unwrap().spent.calls, calls);
    }
}

/// Small enough for a bounded schema.
const SMALL: &str = "window = 2048";

/// The kind of schema in a request.
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

/// Answers requests with this kind of schema and rejects others.
fn accepts(upstream: &MockUpstream, known: &'static str) {
    upstream.script(move |request| match schema(&request.json()) {
        schema if schema == known => valid_answer("Use redb"),
        _ => Answer::error(400, "invalid_request_error", "'maxLength' is not permitted"),
    });
}

#[tokio::test]
async fn the_bounds_are_dropped_before_the_schema() {
    let cases: [(&str, &'static str, &[&str]); 3] = [
        ("bounds", "bounded", &["bounded", "bounded"]),
        ("no-bounds", "plain", &["bounded", "plain", "plain"]),
        ("no-schema", "none", &["bounded", "plain", "none", "none"]),
    ];
    for (model, known, expected) in cases {
        let upstream = MockUpstream::start().await;
        accepts(&upstream, known);
        let fixture = Fixture::at(&upstream, model, SMALL);
        for _ in 0..2 {
            let made = fixture.summarize(material()).await.unwrap();
            assert_eq!(made.summary.decisions, decisions("Use redb"));
        }
        assert_eq!(schemas(&upstream), expected);
    }
}

#[tokio::test]
async fn forcing_a_schema_does_not_force_its_bounds() {
    let upstream = MockUpstream::start().await;
    accepts(&upstream, "plain");
    let fixture = Fixture::at(&upstream, "insist-small", "window = 2048\njson_schema = true");
    assert_eq!(fixture.summarize(material()).await.unwrap().spent.calls, 2);
    accepts(&upstream, "none");
    let failed = fixture.summarize(material()).await.unwrap_err();
    assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_refused", 1));
    assert_eq!(schemas(&upstream), ["bounded", "plain", "plain"]);
}

#[tokio::test]
async fn a_model_with_a_large_window_gets_no_bounds() {
    let upstream = MockUpstream::start().await;
    accepts(&upstream, "plain");
    let fixture = Fixture::at(&upstream, "roomy", "window = 8192");
    assert_eq!(fixture.summarize(material()).await.unwrap().spent.calls, 1);
}
