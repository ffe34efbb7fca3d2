//! The request header `x-mock`, with which a client outside this process (an SDK, curl) scripts its own answer.
//!
//! Its value is a JSON object. Every key is optional:
//!
//! | key | meaning |
//! | --- | --- |
//! | `status`, `headers`, `body` | answer with these (`body`: a string as is, any other JSON serialized) |
//! | `times`, `key` | apply only to the first `times` requests with this `key`; answer later ones normally |
//! | `echo` | answer with a description of the request |
//! | `body_bytes` | answer with this many bytes of filler |
//! | `stall` | `"before_first_byte"` |
//! | `stall_after_events` | stall forever after this many chunks of the normal answer |
//! | `break_after_bytes` | close the connection after this many bytes of the normal answer's body |
//! | `reset` | `true`: with `break_after_bytes`, reset the connection instead |
//! | `pause_ms` | wait this long before the first byte |

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::openai;
use crate::recorded::{Recorded, Version};
use crate::step::{Ending, Step};

pub(crate) fn answer(header: &str, request: &Recorded, used: &mut HashMap<String, u64>) -> Answer {
    let Ok(script) = serde_json::from_str::<Value>(header) else {
        return Answer::error(400, "invalid_x_mock", "the x-mock header is not JSON");
    };
    if let Some(times) = script["times"].as_u64() {
        let key = script["key"].as_str().unwrap_or(header).to_owned();
        let count = used.entry(key).or_default();
        *count += 1;
        if *count > times {
            return openai::answer(request);
        }
    }
    let mut answer = base(&script, request);
    if let Some(headers) = script["headers"].as_object() {
        for (name, value) in headers {
            answer.headers.retain(|(present, _)| !present.eq_ignore_ascii_case(name));
            answer = answer.header(name, value.as_str().unwrap_or_default());
        }
    }
    if let Some(pause) = script["pause_ms"].as_u64() {
        answer.steps.insert(0, Step::Pause(Duration::from_millis(pause)));
    }
    if script["stall"] == "before_first_byte" {
        answer.steps.clear();
        return answer.stall();
    }
    if let Some(count) = script["stall_after_events"].as_u64() {
        answer = answer.stall_after_chunks(count as usize);
    }
    if let Some(limit) = script["break_after_bytes"].as_u64() {
        let ending = if script["reset"] == true { Ending::Reset } else { Ending::Close };
        answer = answer.break_after_body_bytes(limit, ending);
    }
    answer
}

fn base(script: &Value, request: &Recorded) -> Answer {
    if script["echo"] == true {
        return Answer::json(200, describe(request));
    }
    if let Some(bytes) = script["body_bytes"].as_u64() {
        return Answer::new(status(script)).header("content-type", "application/octet-stream").fill(bytes);
    }
    match &script["body"] {
        Value::Null if script["status"].is_null() => openai::answer(request),
        Value::Null => Answer::error(status(script), "mock", "requested by the x-mock header"),
        Value::String(text) => Answer::json(status(script), text),
        other => Answer::json(status(script), other),
    }
}

fn status(script: &Value) -> u16 {
    script["status"].as_u64().and_then(|status| status.try_into().ok()).unwrap_or(200)
}

fn describe(request: &Recorded) -> Value {
    let version = match request.version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
        Version::Http2 => "HTTP/2",
    };
    let mut description = json!({
        "method": request.method,
        "target": request.target,
        "version": version,
        "headers": request.headers,
        "body_bytes": request.body.len(),
    });
    match std::str::from_utf8(&request.body) {
        Ok(text) => description["body"] = text.into(),
        Err(_) => description["body_base64"] = STANDARD.encode(&request.body).into(),
    }
    description
}
