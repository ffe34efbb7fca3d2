//! A request that the upstream refuses as too long is shortened and sent once more.

use crate::support::client::{CHAT, admin, exchange, get, post};
use crate::support::reply::{Reply, edited, figure};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tidegate_testkit::{Answer, Ending, MockUpstream, RedisServer, until};

/// The upstream's limit, and the tokens of a body as it counts them.
const WINDOW: u64 = 20_000;

fn tokens(body: &[u8]) -> u64 {
    body.len() as u64 / 5
}

/// The error of each provider, from its limit and its count.
fn error(provider: &str, used: u64) -> (u16, String) {
    let openai = |message: String| {
        json!({"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}).to_string()
    };
    let body = match provider {
        "openai" | "azure" | "deepseek" => openai(format!("This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {used} tokens. Please reduce the length of the messages.")),
        "openai-new" => openai("Your input exceeds the context window of this model. Please adjust your input and try again.".to_owned()),
        "anthropic" => json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("prompt is too long: {used} tokens > {WINDOW} maximum")}}).to_string(),
        "gemini" => json!([{"error": {"code": 400, "message": format!("The input token count ({used}) exceeds the maximum number of tokens allowed ({WINDOW})."), "status": "INVALID_ARGUMENT"}}]).to_string(),
        "mistral" => json!({"object": "error", "message": format!("Prompt contains {used} tokens and 0 draft tokens, too large for model with {WINDOW} maximum context length"), "type": "invalid_request_error", "code": "3051"}).to_string(),
        "vllm" => json!({"object": "error", "message": format!("This model's maximum context length is {WINDOW} tokens. However, your request has {used} input tokens. Please reduce the length of the input messages."), "type": "BadRequestError", "code": 400}).to_string(),
        "vllm-at-least" => openai(format!("This model's maximum context length is {WINDOW} tokens. However, you requested 0 output tokens and your prompt contains at least {} input tokens, for a total of at least {} tokens.", WINDOW + 1, WINDOW + 1)),
        "sglang-total" => openai(format!("Requested token count exceeds the model's maximum context length of {WINDOW} tokens. You requested a total of {used} tokens: {used} tokens from the input messages and 0 tokens for the completion.")),
        "vertex" => json!([{"error": {"code": 400, "message": format!("Unable to submit request because the input token count is {used} but model only supports up to {WINDOW}."), "status": "INVALID_ARGUMENT"}}]).to_string(),
        "openrouter-wrapped" => json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": error("openai", used).1, "provider_name": "Tide"}}}).to_string(),
        "sglang" => json!({"object": "error", "message": format!("The input ({used} tokens) is longer than the model's context length ({WINDOW} tokens)."), "type": "BadRequestError", "code": 400}).to_string(),
        "llama.cpp" => json!({"error": {"code": 400, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "exceed_context_size_error", "n_prompt_tokens": used, "n_ctx": WINDOW}}).to_string(),
        "ollama" => json!({"error": {"message": format!("prompt too long; exceeded max context length by {} tokens", used - WINDOW), "type": "api_error"}}).to_string(),
        "openrouter" => json!({"error": {"message": format!("This endpoint's maximum context length is {WINDOW} tokens. However, you requested about {used} tokens ({used} of text input). Please reduce the length of either one."), "code": 400}}).to_string(),
        "bedrock" => json!({"message": "Input is too long for requested model."}).to_string(),
        other => panic!("{other}"),
    };
    (400, body)
}

const PROVIDERS: [&str; 17] = [
    "openai",
    "openai-new",
    "azure",
    "anthropic",
    "gemini",
    "mistral",
    "deepseek",
    "vllm",
    "vllm-at-least",
    "sglang",
    "sglang-total",
    "vertex",
    "llama.cpp",
    "ollama",
    "openrouter",
    "openrouter-wrapped",
    "bedrock",
];

/// Masks nothing until it must.
const PATIENT: &str = "[store]\nurl = \"memory:\"\n[context.mask]\npace = { batch = 1000 }\n";

/// The same with a store that all processes share. A busy machine may take long to answer.
fn shared(redis: &RedisServer) -> String {
    PATIENT.replace("memory:\"", &format!("{}\"\ntimeout = \"10s\"", redis.url()))
}

/// An upstream with a window, which words its errors like this provider.
async fn upstream(provider: &'static str) -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.script(move |request| {
        let used = tokens(&request.body);
        if used > WINDOW {
            let (status, body) = error(provider, used);
            return Answer::json(status, body);
        }
        match request.json()["stream"].as_bool() {
            Some(true) => Answer::chat_stream(["It ", "fits."]),
            _ => Answer::chat("It fits."),
        }
    });
    upstream
}

/// An agent's run, whose results are the most of it.
fn run(turns: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "Why does the build fail?"})];
    for turn in 0..turns {
        let id = format!("call-{turn}");
        let call = json!({"id": id, "type": "function", "function": {"name": "shell", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": format!("Step {turn}."), "tool_calls": [call]}));
        let output = format!("line {turn} of the output of a long build\n").repeat(100);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
    }
    messages
}

fn body(model: &str, messages: &[Value], stream: bool) -> String {
    json!({"model": model, "messages": messages, "stream": stream}).to_string()
}

async fn ask(tidegate: &Tidegate, body: &str) -> Reply {
    ask_in("c", tidegate, body).await
}

async fn ask_in(conversation: &str, tidegate: &Tidegate, body: &str) -> Reply {
    let headers = [("x-conversation-id", conversation), ("authorization", "Bearer ada")];
    exchange(tidegate.address, post(CHAT, &headers, body)).await
}

#[tokio::test]
async fn the_overflow_of_every_provider_is_rescued() {
    let redis = RedisServer::start().await;
    let config = shared(&redis);
    for provider in PROVIDERS {
        for stream in [false, true] {
            let upstream = upstream(provider).await;
            let first = Setup::new(&config).before(&upstream).start().await;
            let second = Setup::new(&config).before(&upstream).start().await;
            let name = format!("{provider}-{stream}");
            let ask = async |tidegate, turns| {
                ask_in(&name, tidegate, &body("fresh-model", &run(turns), stream)).await
            };
            for (tidegate, turns) in [(&first, 12), (&second, 13)] {
                assert_eq!(ask(tidegate, turns).await.status, 200);
            }
            assert!(tokens(body("fresh-model", &run(30), stream).as_bytes()) > WINDOW);
            let reply = ask(&first, 30).await;
            assert_eq!(reply.status, 200, "{provider}: {}", reply.text());
            assert_eq!(reply.header("x-tidegate-rescued"), Some("context_length_exceeded"), "{provider}");
            assert!(reply.text().contains("fits."), "{provider}: {}", reply.text());
            assert!(edited(&reply, "masked") >= 10, "{provider}: {:?}", reply.headers);
            assert_eq!(upstream.requests().len(), 4, "{provider}: one rescue");
            // The other process knows the window at once, if the error names it.
            let names_limit = !["openai-new", "ollama", "bedrock"].contains(&provider);
            let reply = ask(&second, 31).await;
            assert_eq!(reply.status, 200, "{provider}: {}", reply.text());
            if names_limit {
                assert_eq!(
                    (reply.header("x-tidegate-rescued"), upstream.requests().len()),
                    (None, 5),
                    "{provider}"
                );
                assert!(figure(&reply, "x-tidegate-budget") < WINDOW, "{provider}");
            }
        }
    }
}

#[tokio::test]
async fn the_window_is_learnt_and_shared_over_redis() {
    let (redis, upstream) = (RedisServer::start().await, upstream("vllm").await);
    let config = shared(&redis);
    let first = Setup::new(&config).before(&upstream).start().await;
    let second = Setup::new(&config).before(&upstream).start().await;
    for tidegate in [&first, &second] {
        assert_eq!(ask(tidegate, &body("fresh-model", &run(12), false)).await.status, 200);
    }
    let reply = ask(&first, &body("fresh-model", &run(30), false)).await;
    assert_eq!(reply.header("x-tidegate-rescued"), Some("context_length_exceeded"));
    let requests = upstream.requests().len();
    // The other process knows the window at once, and plans within it.
    let reply = ask(&second, &body("fresh-model", &run(31), false)).await;
    assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (200, None));
    assert!(figure(&reply, "x-tidegate-budget") < WINDOW);
    assert_eq!(upstream.requests().len(), requests + 1);
    // A process that starts later knows it, too.
    let third = Setup::new(&config).before(&upstream).start().await;
    let reply = ask(&third, &body("fresh-model", &run(32), false)).await;
    assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (200, None));
}

#[tokio::test]
async fn a_rescue_that_cannot_succeed_passes_the_error_byte_for_byte() {
    for (config, messages) in [
        // Nothing can be masked.
        ("", vec![json!({"role": "user", "content": "x ".repeat(80_000)})]),
        ("[context.budget]\nrescue = false\n", run(30)),
        ("[context]\nobserve = true\n", run(30)),
        ("[context]\nstrategy = \"passthrough\"\n", run(30)),
    ] {
        let upstream = upstream("openai").await;
        let config = format!("{PATIENT}{config}");
        let tidegate = Setup::new(&config).before(&upstream).start().await;
        ask(&tidegate, &body("fresh-model", &run(12), false)).await;
        let sent = body("fresh-model", &messages, false);
        let reply = ask(&tidegate, &sent).await;
        assert_eq!(reply.status, 400, "{config}");
        assert_eq!(reply.text(), error("openai", tokens(sent.as_bytes())).1, "{config}");
        assert_eq!(reply.header("x-tidegate-rescued"), None);
        assert_eq!(upstream.requests().len(), 2, "{config}");
    }
}

#[tokio::test]
async fn a_second_refusal_passes() {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| {
        let (status, body) = error("openai", tokens(&request.body).max(WINDOW + 1));
        Answer::json(status, body)
    });
    let tidegate = Setup::new(PATIENT).before(&upstream).start().await;
    let sent = body("fresh-model", &run(30), false);
    let reply = ask(&tidegate, &sent).await;
    assert_eq!(upstream.requests().len(), 2, "never more than one rescue");
    // The first error speaks of what the client has sent.
    assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (400, None));
    assert_eq!(reply.text(), error("openai", tokens(sent.as_bytes())).1);
}

/// What the second attempt meets. `None` in place of an answer that passes.
#[tokio::test]
async fn a_second_attempt_that_fails_otherwise_tells_what_a_retry_can_expect() {
    let busy = r#"{"error":{"message":"Slow down.","type":"rate_limit_error","code":"rate_limited"}}"#;
    for (second, passes) in [
        (Answer::json(429, busy).header("retry-after", "7"), Some(429)),
        (Answer::json(503, busy), Some(503)),
        (Answer::new(200).cut_at(0, Ending::Reset), None),
    ] {
        // Over HTTP/2, the reset would follow the head of an answer.
        let upstream = match passes {
            Some(_) => MockUpstream::start().await,
            None => MockUpstream::start_http1().await,
        };
        upstream.script(move |request| match tokens(&request.body) {
            used @ 20_001.. => {
                let (status, body) = error("openai", used);
                Answer::json(status, body)
            }
            _ => second.clone(),
        });
        let tidegate = Setup::new(PATIENT).before(&upstream).start().await;
        let sent = body("fresh-model", &run(30), false);
        let reply = ask(&tidegate, &sent).await;
        assert_eq!(reply.header("x-tidegate-rescued"), None);
        match passes {
            Some(status) => assert_eq!((reply.status, reply.text()), (status, busy.to_owned())),
            None => {
                assert_eq!((reply.status, reply.text()), (400, error("openai", tokens(sent.as_bytes())).1));
            }
        }
        assert_eq!(reply.header("retry-after").is_some(), passes == Some(429));
    }
}

/// Some servers find out when they have begun to answer.
#[tokio::test]
async fn an_overflow_at_the_beginning_of_a_stream_is_rescued() {
    for provider in ["openai", "anthropic", "vllm", "openai-new"] {
        let upstream = MockUpstream::start().await;
        upstream.script(move |request| match tokens(&request.body) {
            used @ 20_001.. => Answer::sse([error(provider, used).1]),
            _ => Answer::chat_stream(["It ", "fits."]),
        });
        let tidegate = Setup::new(PATIENT).before(&upstream).start().await;
        let reply = ask(&tidegate, &body("fresh-model", &run(30), true)).await;
        assert_eq!(reply.status, 200, "{provider}: {}", reply.text());
        assert_eq!(reply.header("x-tidegate-rescued"), Some("context_length_exceeded"), "{provider}");
        assert!(
            reply.text().contains("fits.") && !reply.text().contains("error"),
            "{provider}: {}",
            reply.text()
        );
        // One that cannot be helped passes as it came.
        let hopeless = body("fresh-model", &[json!({"role": "user", "content": "x ".repeat(80_000)})], true);
        let reply = ask_in("d", &tidegate, &hopeless).await;
        let event = error(provider, tokens(hopeless.as_bytes())).1;
        assert_eq!(reply.status, 200, "{provider}");
        assert!(reply.text().contains(&event), "{provider}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_rescued_request_that_is_retried_is_the_same() {
    let upstream = upstream("openai").await;
    let tidegate = Setup::new(PATIENT).before(&upstream).start().await;
    for turns in [12, 13] {
        ask(&tidegate, &body("fresh-model", &run(turns), false)).await;
    }
    let sent = body("fresh-model", &run(30), false);
    for _ in 0..2 {
        assert_eq!(ask(&tidegate, &sent).await.status, 200);
    }
    let bodies: Vec<Vec<u8>> = upstream.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 5);
    assert_eq!(bodies[3], bodies[4], "the retry is forwarded as the rescue was");
    // One turn more, and two requests.
    until("all turns are counted", async || {
        let page: Value = admin(tidegate.admin, "/api/conversations").await.json();
        page["conversations"][0]["turns"] == 3 && page["conversations"][0]["requests"] == 4
    })
    .await;
}

#[tokio::test]
async fn the_turn_the_log_and_the_metrics_say_so() {
    let upstream = upstream("openai").await;
    let mut tidegate = Setup::new(PATIENT).before(&upstream).start().await;
    for turns in [12, 13, 30] {
        assert_eq!(ask(&tidegate, &body("fresh-model", &run(turns), false)).await.status, 200);
    }
    until("the rescue is recorded", async || {
        let page: Value = admin(tidegate.admin, "/api/conversations/c").await.json();
        page["turns"].as_array().is_some_and(|turns| turns.iter().any(|turn| turn["outcome"] == "rescued"))
    })
    .await;
    let metrics = admin(tidegate.admin, "/metrics").await.text();
    let counted = |name: &str, label: &str| {
        metrics.lines().any(|line| line.starts_with(name) && line.contains(label) && line.ends_with(" 1"))
    };
    assert!(counted("tidegate_requests_total", "outcome=\"rescued\""), "{metrics}");
    // Sent twice, it is one turn.
    let turns = metrics.lines().filter(|line| line.starts_with("agent_context_turn_count{"));
    let turns: f64 = turns.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    assert_eq!(turns, 3.0, "{metrics}");
    let window = metrics.lines().find(|line| line.starts_with("tidegate_learnt_window_tokens"));
    assert!(window.is_some_and(|line| line.contains("fresh-model") && line.ends_with(" 20000")), "{metrics}");
    let windows: Value = admin(tidegate.admin, "/api/windows").await.json();
    assert_eq!(windows["windows"][0]["window"], WINDOW, "{windows}");
    tidegate.logged("the rescue", |line| line["outcome"] == "rescued").await;
}

#[tokio::test]
async fn windows_are_learnt_from_a_list_of_models() {
    let upstream = MockUpstream::start().await;
    let list =
        json!({"object": "list", "data": [{"id": "fresh-model", "max_model_len": 30_000}, {"id": "other"}]})
            .to_string();
    let answered = list.clone();
    upstream.script(move |request| match request.target.as_str() {
        "/v1/models" => Answer::json(200, &answered),
        _ => Answer::chat("ok"),
    });
    let tidegate = Setup::new(PATIENT).before(&upstream).start().await;
    let before = ask(&tidegate, &body("fresh-model", &run(2), false)).await;
    assert_eq!(before.header("x-tidegate-budget"), Some("none"));
    assert_eq!(exchange(tidegate.address, get("/v1/models")).await.text(), list, "the list passes unchanged");
    until("the window is known", async || {
        let windows: Value = admin(tidegate.admin, "/api/windows").await.json();
        windows["windows"][0]["window"] == 30_000
    })
    .await;
    let after = ask(&tidegate, &body("fresh-model", &run(3), false)).await;
    assert_eq!(figure(&after, "x-tidegate-budget"), 30_000 - 2_048 - 1_500);
}

/// The tokens of a long run are estimated, far above what they are.
#[tokio::test]
async fn an_estimated_run_is_no_reason_to_refuse() {
    let upstream = MockUpstream::start().await;
    let config = format!("{PATIENT}[models.\"old\"]\nwindow = 8000\nencoding = \"p50k_base\"\n");
    let tidegate = Setup::new(&config).before(&upstream).start().await;
    let run = body("old", &[json!({"role": "user", "content": "=".repeat(60_000)})], false);
    assert_eq!(ask(&tidegate, &run).await.status, 200);
}

#[tokio::test]
async fn a_summary_is_made_inline_for_a_rescue() {
    let upstream = upstream("anthropic").await;
    let config =
        format!("{PATIENT}[context]\nstrategy = \"hybrid\"\n[context.fold]\nwhen = {{ turns = 1000 }}\n");
    let tidegate = Setup::new(&config).before(&upstream).start().await;
    let mut messages = Vec::new();
    for turn in 0..60 {
        messages.push(json!({"role": "user", "content": format!("Question {turn}: {}", "about the harbour ".repeat(60))}));
        messages.push(json!({"role": "assistant", "content": format!("Answer {turn}: {}", "the tide is high ".repeat(60))}));
    }
    messages.push(json!({"role": "user", "content": "And now?"}));
    let reply = ask(&tidegate, &body("fresh-model", &messages, false)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("x-tidegate-rescued"), Some("context_length_exceeded"));
    assert!(edited(&reply, "folded") > 20, "{:?}", reply.headers);
}
