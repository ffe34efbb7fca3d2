//! The built-in behaviour of the mock: enough of OpenAI's API for the official SDKs, and deterministic.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::recorded::Recorded;
use crate::{chat, multipart};

/// The size of `GET /v1/files/{id}/content`, unless the id ends in a number of bytes, as in `file-5000`.
const FILE_BYTES: u64 = 1000;

pub(crate) fn answer(request: &Recorded) -> Answer {
    let path = request.path();
    let request_id = match request.header("x-client-request-id") {
        Some(id) => id.to_owned(),
        None => format!("req_{:016x}", fingerprint(&request.body)),
    };
    let answer = match (request.method.as_str(), path) {
        ("POST", path) if path.ends_with("/chat/completions") => chat::answer(request),
        ("GET", path) if path.ends_with("/models") => Answer::json(200, models()),
        ("GET", path) if path.contains("/models/") => Answer::json(200, model(last_segment(path))),
        ("POST", path) if path.ends_with("/embeddings") => embeddings(request),
        ("POST", path) if path.ends_with("/files") => uploaded_file(request),
        ("GET", path) if path.contains("/files/") && path.ends_with("/content") => file_content(path),
        ("POST", path) if path.ends_with("/audio/transcriptions") => transcription(request),
        (method, path) => {
            let message = format!("Invalid URL ({method} {path})");
            Answer::json(
                404,
                json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}}),
            )
        }
    };
    answer.header("x-request-id", &request_id)
}

fn models() -> Value {
    json!({"object": "list", "data": [model("gpt-4o-mini"), model("gpt-5"), model("mock")]})
}

fn model(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "mock"})
}

fn embeddings(request: &Recorded) -> Answer {
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return not_json() };
    let inputs = match &body["input"] {
        Value::Array(inputs) => inputs.clone(),
        single => vec![single.clone()],
    };
    // The SDKs ask for base64 by default, because it is smaller.
    let packed = body["encoding_format"] == "base64";
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            let vector = vector(&input.to_string());
            let embedding = if packed { pack(&vector).into() } else { json!(vector) };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let tokens: usize = inputs.iter().map(|input| input.to_string().len().div_ceil(4)).sum();
    let model = body["model"].clone();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Answer::json(200, json!({"object": "list", "data": data, "model": model, "usage": usage}))
}

/// Multiples of 1/128, which are exact in `f32` and in decimal, so that both encodings give the same list.
fn vector(text: &str) -> Vec<f32> {
    let seed = fingerprint(text.as_bytes());
    (0..8).map(|place| f32::from((seed >> (place * 8)) as u8 as i8) / 128.0).collect()
}

fn pack(vector: &[f32]) -> String {
    use base64::Engine;
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn uploaded_file(request: &Recorded) -> Answer {
    let Some(file) = multipart::part(request, "file") else { return missing("file") };
    let purpose = multipart::part(request, "purpose").map(|part| part.text()).unwrap_or_default();
    Answer::json(
        200,
        json!({
            "id": format!("file-{}", file.body.len()), "object": "file", "bytes": file.body.len(),
            "created_at": 1_700_000_000, "filename": file.filename, "purpose": purpose, "status": "processed",
        }),
    )
}

fn file_content(path: &str) -> Answer {
    let id = path.trim_end_matches("/content");
    let length = last_segment(id).rsplit('-').next().and_then(|number| number.parse().ok());
    Answer::new(200).header("content-type", "application/octet-stream").fill(length.unwrap_or(FILE_BYTES))
}

fn transcription(request: &Recorded) -> Answer {
    let Some(file) = multipart::part(request, "file") else { return missing("file") };
    let usage = json!({"type": "duration", "seconds": 1});
    Answer::json(200, json!({"text": format!("{} bytes of speech", file.body.len()), "usage": usage}))
}

fn missing(part: &str) -> Answer {
    Answer::error(400, "missing_required_parameter", &format!("the form has no part `{part}`"))
}

pub(crate) fn not_json() -> Answer {
    let message = "We could not parse the JSON body of your request.";
    Answer::error(400, "invalid_json", message)
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// FNV-1a, which gives the same answers on every machine and in every run.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
