//! The forwarded request: the client's bytes except for the outputs of old results.

use super::{HEADERS, RESPONSES, conversation, edits, send, upstream};
use crate::support::agent::{EVERY_TURN, PLACEHOLDER};
use crate::support::client::{exchange, post};
use crate::support::tidegate::Tidegate;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

#[tokio::test]
async fn a_request_that_needs_no_edit_arrives_byte_for_byte() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for path in [RESPONSES, "/openai/v1/responses", "/responses", "/backend-api/codex/responses"] {
        for sent in [conversation(4, 0), r#"{"model":"gpt-5", "input" : "h\u0069"}"#.to_owned()] {
            let reply = exchange(tidegate.address, post(path, &HEADERS, &sent)).await;
            assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, Some("default")), "{path}");
            assert_eq!(reply.header("x-tidegate-edits"), Some(&*edits(0)));
            assert_eq!(
                (reply.header("x-tidegate-history"), reply.header("x-tidegate-degraded")),
                (None, None)
            );
            assert_eq!(String::from_utf8(upstream.next_request().await.body).unwrap(), sent);
        }
    }
}

#[tokio::test]
async fn only_the_outputs_of_old_results_are_masked() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for steps in 1..7usize {
        let old = steps.saturating_sub(2);
        let (reply, arrived) = send(&tidegate, &upstream, &conversation(steps, 0)).await;
        assert_eq!(arrived, conversation(steps, old), "{steps} steps");
        assert_eq!(reply.header("x-tidegate-edits"), Some(&*edits(2 * old)));
    }
}

/// One item of each kind of result, before three turns that keep it out of the window.
fn with_result(call: &str, result: &str) -> String {
    let later = (0..3).map(|step| {
        format!(
            r#"{{"type":"function_call","call_id":"z{step}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"z{step}","output":"ok"}}"#
        )
    });
    let later: Vec<String> = later.collect();
    format!(
        r#"{{"model":"gpt-5","input":[{{"role":"user","content":"go"}},{call},{result},{}]}}"#,
        later.join(",")
    )
}

#[tokio::test]
async fn every_kind_of_result_is_masked_in_its_own_shape() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let long = "a line of the output\\n".repeat(40);
    for (call, result) in [
        (
            r#"{"type":"local_shell_call","id":"lsh_1","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}"#,
            r#"{"type":"local_shell_call_output","id":"lsh_1","output":"LONG"}"#,
        ),
        (
            r#"{"type":"shell_call","call_id":"c","action":{"commands":["ls","cat"]}}"#,
            r#"{"type":"shell_call_output","call_id":"c","output":[{"stdout":"LONG","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stderr":"LONG","stdout":"x","outcome":{"type":"timeout"}}]}"#,
        ),
        (
            r#"{"type":"apply_patch_call","call_id":"c","status":"completed","operation":{"type":"delete_file","path":"x"}}"#,
            r#"{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"LONG"}"#,
        ),
        (
            r#"{"type":"mcp_call","id":"mcp_1","name":"f","server_label":"s","arguments":"{}","output":"LONG"}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},{"role":"user","content":"more"}"#,
        ),
    ] {
        let sent = with_result(call, result).replace("LONG", &long);
        let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
        assert_eq!(reply.header("x-tidegate-edits"), Some(&*edits(1)), "{result}");
        assert_eq!(arrived, with_result(call, result).replace("LONG", PLACEHOLDER));
    }
    for (call, result) in [
        (
            r#"{"type":"computer_call","id":"cu_1","call_id":"c","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"}"#,
            r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"https://x/LONG"}}"#,
        ),
        (
            r#"{"type":"new_call","call_id":"c"}"#,
            r#"{"type":"new_call_output","call_id":"c","output":"LONG"}"#,
        ),
        (
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"LONG"}]}"#,
            r#"{"role":"assistant","content":"LONG"}"#,
        ),
    ] {
        let sent = with_result(call, result).replace("LONG", &long);
        let (_, arrived) = send(&tidegate, &upstream, &sent).await;
        assert_eq!(arrived, sent, "{result}");
    }
}

/// A masked result keeps the marker that the provider caches up to.
#[tokio::test]
async fn a_masked_result_keeps_its_cache_breakpoint() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let call = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
    let result = |text: &str, space: &str| {
        format!(
            r#"{{"type":"function_call_output","call_id":"c","output":[{{"type":"input_text","text":"{text}","prompt_cache_breakpoint":{space}{{"mode":"explicit"}}}}]}}"#
        )
    };
    let sent = with_result(call, &result(&"a line\\n".repeat(90), " "));
    let (_, arrived) = send(&tidegate, &upstream, &sent).await;
    assert_eq!(arrived, with_result(call, &result(PLACEHOLDER, "")));
}

#[tokio::test]
async fn compressed_requests_are_managed() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let plain = conversation(5, 0);
    let gzip = {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    for (coding, body) in [("zstd", zstd::encode_all(plain.as_bytes(), 3).unwrap()), ("gzip", gzip)] {
        let reply = exchange(tidegate.address, post(RESPONSES, &[("content-encoding", coding)], &body)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-edits")), (200, Some(&*edits(6))), "{coding}");
        let arrived = upstream.next_request().await;
        assert_eq!(arrived.header("content-encoding"), None);
        assert_eq!(String::from_utf8(arrived.body).unwrap(), conversation(5, 3));
    }
}

#[tokio::test]
async fn other_endpoints_pass_untouched() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for path in ["/v1/responses/compact", "/v1/responses/input_tokens", "/v1/responses/resp_1/cancel"] {
        let sent = conversation(6, 0);
        let reply = exchange(tidegate.address, post(path, &HEADERS, &sent)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-edits")), (200, None), "{path}");
        assert_eq!(String::from_utf8(upstream.next_request().await.body).unwrap(), sent);
    }
}
