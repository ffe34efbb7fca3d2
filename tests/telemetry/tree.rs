//! The spans that a collector receives.

use super::scene::{MASKING, ask, one, request, traced, upstream};
use crate::support::chat::{body, chat};
use crate::support::client::{CHAT, exchange, post};
use tidegate_testkit::{Answer, Fact, MockUpstream, OtlpReceiver, SpanFacts, SpanKind, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const FOLDING: &str = "[store]\nurl = \"memory:\"\n[context]\nstrategy = \"summarization\"\n[context.fold]\n\
    when = { user_turns = 4 }\nkeep = { user_turns = 2 }\nmode = \"inline\"\n";

#[tokio::test]
async fn a_request_that_folds_is_traced_over_grpc() {
    let collector = OtlpReceiver::start().await;
    let url = collector.grpc_url();
    fold(&collector, &url, "grpc").await;
}

#[tokio::test]
async fn a_request_that_folds_is_traced_over_http() {
    let collector = OtlpReceiver::start().await;
    let url = collector.http_url();
    fold(&collector, &url, "http/protobuf").await;
}

async fn fold(collector: &OtlpReceiver, url: &str, protocol: &str) {
    let upstream = upstream().await;
    let setup = traced(FOLDING, &upstream, url).env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol);
    let tidegate = setup.start().await;
    let reply = ask(&tidegate, "harbour", body(&chat(4)), &[("traceparent", PARENT)]).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.header("x-tidegate-edits").unwrap().contains("folded=9"));

    let spans = request(collector, TRACE).await;
    let server = one(&spans, "POST /v1/chat/completions");
    assert_eq!((server.kind, server.parent.as_str()), (SpanKind::Server, "00f067aa0ba902b7"));
    for step in ["receive", "route", "identify", "recall", "rewrite", "fold", "forward", "relay", "remember"]
    {
        let span = one(&spans, step);
        assert_eq!((span.kind, &span.parent), (SpanKind::Internal, &server.id), "{step}");
        assert!(span.start >= server.start && span.end >= span.start, "{step}");
    }
    let order = ["receive", "route", "identify", "recall", "rewrite", "forward", "relay"];
    let order: Vec<u64> = order.iter().map(|step| one(&spans, step).start).collect();
    assert!(order.is_sorted(), "{order:?}");

    let call = one(&spans, "chat gpt-4o");
    assert_eq!((call.kind, &call.parent), (SpanKind::Client, &server.id));
    assert_upstream_call(call, &upstream);
    assert_plan(server);
    let service = Fact::Text("tidegate".to_owned());
    assert_eq!(server.resource.get("service.name"), Some(&service));
    assert!(server.resource.contains_key("service.version"));
}

/// Asserts the GenAI semantic conventions of the upstream call.
fn assert_upstream_call(call: &SpanFacts, upstream: &MockUpstream) {
    for (key, wanted) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-4o"),
        ("gen_ai.conversation.id", "harbour"),
        ("gen_ai.response.id", "chatcmpl-7"),
        ("gen_ai.response.model", "gpt-4o-2024-08-06"),
        ("server.address", "127.0.0.1"),
    ] {
        assert_eq!(call.text(key), Some(wanted), "{key}");
    }
    for (key, wanted) in [
        ("server.port", i64::from(upstream.address().port())),
        ("gen_ai.usage.input_tokens", 2_000),
        ("gen_ai.usage.output_tokens", 10),
        ("gen_ai.usage.cache_read.input_tokens", 1_024),
    ] {
        assert_eq!(call.int(key), Some(wanted), "{key}");
    }
    let stop = Fact::List(vec![Fact::Text("stop".to_owned())]);
    assert_eq!(call.attributes.get("gen_ai.response.finish_reasons"), Some(&stop));
    assert!(!call.attributes.contains_key("gen_ai.request.stream"), "it was not streamed");
    assert_eq!(call.attributes.get("gen_ai.conversation.compacted"), Some(&Fact::Flag(true)));
    assert!(!call.is_error);
}

/// Asserts the attributes that describe the edits.
fn assert_plan(server: &SpanFacts) {
    for (key, wanted) in [
        ("tidegate.route", "default"),
        ("tidegate.strategy", "summarization"),
        ("tidegate.outcome", "answered"),
        ("tidegate.verdict", "fits"),
        ("tidegate.trigger", "turns"),
        ("tidegate.upstream", "default"),
        ("http.request.method", "POST"),
        ("http.route", "/v1/chat/completions"),
        ("url.path", "/v1/chat/completions"),
    ] {
        assert_eq!(server.text(key), Some(wanted), "{key}");
    }
    let int = |key: &str| server.int(key).unwrap_or_else(|| panic!("no {key} in {server:#?}"));
    assert_eq!((int("http.response.status_code"), int("tidegate.messages.folded")), (200, 9));
    assert_eq!((int("tidegate.messages.masked"), int("tidegate.messages.dropped")), (0, 0));
    assert!(int("tidegate.tokens.before") > int("tidegate.tokens.after"));
    assert!(int("tidegate.tokens.summary") > 0);
    assert!(
        int("tidegate.tokens.after") <= int("tidegate.budget")
            && int("tidegate.budget") < int("tidegate.window")
    );
    assert_eq!(int("tidegate.tokens.cache_read"), 1_024);
    // 976 fresh tokens at 2.50 a million, 1,024 at 1.25, ten at 10.
    let billed = server.float("tidegate.cost.billed_usd").unwrap();
    assert!((billed - 0.003_82).abs() < 1e-9, "{billed}");
    assert!(server.float("tidegate.cost.avoided_usd").is_some());
    let fold =
        server.events.iter().find(|event| event.name == "tidegate.fold").expect("an event of the fold");
    assert_eq!(fold.attributes["tidegate.messages"], Fact::Int(9));
    assert_eq!(fold.attributes["tidegate.fold.mode"], Fact::Text("inline".to_owned()));
}

#[tokio::test]
async fn a_background_fold_is_a_child_of_its_request() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let settings = FOLDING.replace("inline", "background");
    let tidegate =
        traced(&settings, &upstream, &collector.grpc_url()).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let tidegate = tidegate.start().await;
    ask(&tidegate, "harbour", body(&chat(4)), &[("traceparent", PARENT)]).await;
    let has_fold = |spans: &[SpanFacts]| spans.iter().any(|span| span.name == "fold");
    let spans = collector.spans("a fold", has_fold).await;
    let spans: Vec<SpanFacts> = [spans, request(&collector, TRACE).await].concat();
    let server = spans.iter().find(|span| span.kind == SpanKind::Server).unwrap();
    let fold = spans.iter().find(|span| span.name == "fold").unwrap();
    assert_eq!((&fold.trace, &fold.parent), (&server.trace, &server.id));
    assert_eq!(fold.text("tidegate.fold.outcome"), Some("made"));
    assert!(fold.end > server.start);
    let event = server.events.iter().find(|event| event.name == "tidegate.fold").unwrap();
    assert_eq!(event.attributes["tidegate.fold.mode"], Fact::Text("background".to_owned()));
}

#[tokio::test]
async fn a_refusal_is_an_event_and_not_an_error() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let settings = format!("{MASKING}[context.budget]\nmax_input = 50\n");
    let tidegate = traced(&settings, &upstream, &collector.http_url()).start().await;
    let reply = ask(&tidegate, "harbour", body(&chat(3)), &[("traceparent", PARENT)]).await;
    assert_eq!(reply.status, 422);
    let spans = request(&collector, TRACE).await;
    let server = one(&spans, "POST /v1/chat/completions");
    assert_eq!(server.text("tidegate.outcome"), Some("refused"));
    assert_eq!(server.text("tidegate.verdict"), Some("over_budget"));
    assert_eq!(server.int("http.response.status_code"), Some(422));
    assert_eq!(server.events.len(), 1);
    assert_eq!(server.events[0].name, "tidegate.refused");
    let code = Fact::Text("context_budget_exceeded".to_owned());
    assert_eq!(server.events[0].attributes["tidegate.reason"], code);
    assert!(!server.is_error, "a client error is reported as a server error");
    assert!(spans.iter().all(|span| span.kind != SpanKind::Client), "nothing was sent");
}

#[tokio::test]
async fn a_plateau_is_an_event() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let settings = format!("{MASKING}[context.limits]\nplateau_window = 2\n");
    let tidegate = traced(&settings, &upstream, &collector.http_url()).start().await;
    let turn = |number: usize| {
        format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{number}","type":"function","function":{{"name":"run","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c{number}","content":"the same again"}}"#
        )
    };
    let turns: String = (0..4).map(turn).collect();
    let body = format!(r#"{{"model":"gpt-4o","messages":[{{"role":"user","content":"go"}}{turns}]}}"#);
    let reply = ask(&tidegate, "stuck", body, &[("traceparent", PARENT)]).await;
    assert!(reply.header("x-tidegate-stop-hint").is_some(), "{:?}", reply.headers);
    let spans = request(&collector, TRACE).await;
    let server = one(&spans, "POST /v1/chat/completions");
    let plateau = server.events.iter().find(|event| event.name == "tidegate.plateau").expect("an event");
    assert!(matches!(plateau.attributes["tidegate.plateau.turns"], Fact::Int(turns) if turns >= 2));
}

/// What only the new conventions name is left out under the old ones.
#[tokio::test]
async fn the_new_conventions_name_the_previous_response_and_the_reasoning() {
    for (semconv, is_named) in [("new", true), ("both", true), ("old", false)] {
        let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
        let settings = format!("{FOLDING}[telemetry]\nsemconv = \"{semconv}\"\n");
        let tidegate = traced(&settings, &upstream, &collector.http_url()).start().await;
        let asked = r#"{"model":"gpt-5","input":"go on","previous_response_id":"resp_7","reasoning":{"effort":"high"}}"#;
        exchange(tidegate.address, post("/v1/responses", &[("traceparent", PARENT)], asked)).await;
        let spans = request(&collector, TRACE).await;
        let call = spans.iter().find(|span| span.kind == SpanKind::Client).expect("a call");
        let named = ["gen_ai.request.previous_response.id", "gen_ai.request.reasoning.level"];
        assert_eq!(
            named.map(|key| call.text(key)),
            if is_named { [Some("resp_7"), Some("high")] } else { [None; 2] }
        );

        let other = TRACE.replace('4', "5");
        let parent = PARENT.replace(TRACE, &other);
        ask(&tidegate, "harbour", body(&chat(4)), &[("traceparent", &parent)]).await;
        let spans = request(&collector, &other).await;
        let call = spans.iter().find(|span| span.kind == SpanKind::Client).expect("a call");
        assert_eq!(call.attributes.contains_key("gen_ai.conversation.compacted"), is_named, "{semconv}");
    }
}

/// The metrics of a host that nobody knows name the provider whose protocol it speaks, as its spans do.
#[tokio::test]
async fn metrics_and_spans_name_the_same_provider() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let tidegate = traced(MASKING, &upstream, &collector.http_url()).start().await;
    let asked = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    exchange(tidegate.address, post("/v1/messages", &[("traceparent", PARENT)], asked)).await;
    let spans = request(&collector, TRACE).await;
    let call = spans.iter().find(|span| span.kind == SpanKind::Client).expect("a call");
    assert_eq!(call.text("gen_ai.provider.name"), Some("anthropic"));
    let mut page = String::new();
    until("the duration is recorded", async || {
        page = super::scene::page(&tidegate).await;
        page.contains("gen_ai_client_inference_duration_seconds_count")
    })
    .await;
    assert!(page.contains("gen_ai_provider_name=\"anthropic\""), "{page}");
    assert!(!page.contains("gen_ai_provider_name=\"openai\""), "{page}");
}

#[tokio::test]
async fn streams_and_upstream_errors_are_traced() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let tidegate = traced(MASKING, &upstream, &collector.http_url()).start().await;
    upstream.then(Answer::chat("streamed"));
    let streamed = body(&chat(1)).replacen('{', r#"{"stream":true,"#, 1);
    ask(&tidegate, "s", streamed, &[("traceparent", PARENT)]).await;
    let spans = request(&collector, TRACE).await;
    let call = one(&spans, "chat gpt-4o");
    assert_eq!(call.attributes.get("gen_ai.request.stream"), Some(&Fact::Flag(true)));
    assert!(!call.attributes.contains_key("gen_ai.conversation.compacted"), "nothing was folded");

    upstream.then(Answer::json(429, r#"{"error":{"message":"slow down"}}"#));
    let other = TRACE.replace('4', "5");
    let parent = PARENT.replace(TRACE, &other);
    ask(&tidegate, "e", body(&chat(1)), &[("traceparent", &parent)]).await;
    let is_there = |spans: &[SpanFacts]| {
        spans.iter().filter(|span| span.trace == other).any(|span| span.kind == SpanKind::Server)
    };
    let spans = collector.spans("the failed request", is_there).await;
    let spans: Vec<SpanFacts> = spans.into_iter().filter(|span| span.trace == other).collect();
    let call = one(&spans, "chat gpt-4o");
    assert_eq!((call.text("error.type"), call.is_error), (Some("429"), true));
    assert!(
        !one(&spans, "POST /v1/chat/completions").is_error,
        "an upstream error is reported as a server error"
    );
}

/// The conventions forbid generated ids and content hashes.
#[tokio::test]
async fn only_ids_that_a_client_gave_are_conversation_ids() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let tidegate = traced(MASKING, &upstream, &collector.http_url()).start().await;
    let key = ("authorization", "Bearer key");
    for (number, (headers, id)) in [
        (vec![key], None),
        (vec![key, ("x-conversation-id", "mine")], Some("mine")),
        (vec![key, ("session-id", "session 7")], None),
        (vec![key, ("session-id", "session-7")], Some("session-7")),
    ]
    .into_iter()
    .enumerate()
    {
        let trace = TRACE.replace("4b", &format!("a{number}"));
        let parent = PARENT.replace(TRACE, &trace);
        let headers: Vec<(&str, &str)> = headers.into_iter().chain([("traceparent", &*parent)]).collect();
        let reply = exchange(tidegate.address, post(CHAT, &headers, body(&chat(1)))).await;
        assert_eq!(reply.status, 200);
        let spans = request(&collector, &trace).await;
        assert_eq!(one(&spans, "chat gpt-4o").text("gen_ai.conversation.id"), id, "{headers:?}");
    }
}
