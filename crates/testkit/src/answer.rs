//! A response of the mock upstream: a head, then steps.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::step::{Ending, Framing, Gate, Step, Timing};

/// A scripted response of the mock upstream.
///
/// The head goes out with the first step that has bytes (or at [`Step::Head`]), so a `Pause`, `Wait` or `Break`
/// placed first happens before the first byte.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Sent in this order and casing. The framing header is added after them.
    pub headers: Vec<(String, String)>,
    pub framing: Framing,
    pub steps: Vec<Step>,
    /// Sent after a chunked body.
    pub trailers: Vec<(String, String)>,
    /// Cut the connection after this many bytes on the wire, head and framing included.
    pub cut: Option<(u64, Ending)>,
    /// Whether to answer before or after reading the request body.
    pub timing: Timing,
}

impl Answer {
    /// A response without a body.
    pub fn new(status: u16) -> Self {
        Answer {
            status,
            headers: Vec::new(),
            framing: Framing::Length,
            steps: Vec::new(),
            trailers: Vec::new(),
            cut: None,
            timing: Timing::AfterBody,
        }
    }

    pub fn json(status: u16, body: impl ToString) -> Self {
        Answer::new(status).header("content-type", "application/json").chunk(body.to_string())
    }

    /// An error in OpenAI's format.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}});
        Answer::json(status, body)
    }

    /// Raw bytes instead of a response, head included. The connection closes after them.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Answer::new(0).step(Step::Raw(bytes.into()))
    }

    /// One `data:` event per payload, each in its own chunk and write.
    pub fn sse<T: AsRef<str>>(payloads: impl IntoIterator<Item = T>) -> Self {
        let mut answer =
            Answer::new(200).header("content-type", "text/event-stream").framing(Framing::Chunked);
        for payload in payloads {
            answer = answer.event(payload.as_ref());
        }
        answer
    }

    /// A `chat.completion` with usage.
    pub fn chat(text: &str) -> Self {
        let words = text.split_whitespace().count();
        Answer::json(
            200,
            json!({
                "id": "chatcmpl-mock", "object": "chat.completion", "created": 1_700_000_000, "model": "mock",
                "choices": [{
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": null},
                    "logprobs": null,
                    "finish_reason": "stop",
                }],
                "usage": usage(10, words, 0),
            }),
        )
    }

    /// One `chat.completion.chunk` event per word, the usage chunk if the request asks for it, and `[DONE]`.
    pub fn chat_stream<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Self {
        let chunk = |delta: serde_json::Value, finish: Option<&str>| {
            json!({
                "id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "mock",
                "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
            })
            .to_string()
        };
        let mut answer = Answer::sse([chunk(json!({"role": "assistant", "content": ""}), None)]);
        let mut count = 0;
        for word in words {
            answer = answer.event(&chunk(json!({"content": word.as_ref()}), None));
            count += 1;
        }
        let closing = json!({
            "id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "mock",
            "choices": [], "usage": usage(10, count, 0),
        });
        answer
            .event(&chunk(json!({}), Some("stop")))
            .step(Step::UsageChunk(event_bytes(&closing.to_string())))
            .event("[DONE]")
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn trailer(mut self, name: &str, value: &str) -> Self {
        self.trailers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    pub fn chunked(self) -> Self {
        self.framing(Framing::Chunked)
    }

    pub fn close_delimited(self) -> Self {
        self.framing(Framing::Close)
    }

    pub fn declared_length(self, bytes: u64) -> Self {
        self.framing(Framing::Declared(bytes))
    }

    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Sends the head at this point.
    pub fn head(self) -> Self {
        self.step(Step::Head)
    }

    pub fn chunk(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Chunk(bytes.into()))
    }

    pub fn event(self, payload: &str) -> Self {
        self.step(Step::Chunk(event_bytes(payload)))
    }

    pub fn fill(self, bytes: u64) -> Self {
        self.step(Step::Fill(bytes))
    }

    pub fn pause(self, time: Duration) -> Self {
        self.step(Step::Pause(time))
    }

    /// Stalls until the test opens the gate.
    pub fn wait(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// Stalls forever.
    pub fn stall(self) -> Self {
        self.step(Step::Wait(Gate::new()))
    }

    pub fn break_off(self, ending: Ending) -> Self {
        self.step(Step::Break(ending))
    }

    /// Ends the connection after this many bytes of the response on the wire, head and framing included.
    pub fn cut_at(mut self, wire_bytes: u64, ending: Ending) -> Self {
        self.cut = Some((wire_bytes, ending));
        self
    }

    /// Answers before the request's body is read.
    pub fn before_body(mut self) -> Self {
        self.timing = Timing::BeforeBody;
        self
    }

    /// The same response, broken off after this many bytes of its body. The declared length does not change.
    pub fn break_after_body_bytes(mut self, limit: u64, ending: Ending) -> Self {
        if self.framing == Framing::Length {
            self.framing = Framing::Declared(self.body_length(true));
        }
        let mut left = limit;
        let mut steps = vec![Step::Head];
        for step in std::mem::take(&mut self.steps) {
            let length = step.length(true);
            if length < left || length == 0 {
                left -= length;
                steps.push(step);
                continue;
            }
            match step {
                // The cast cannot truncate: `left` is at most the length of these bytes.
                Step::Chunk(bytes) | Step::UsageChunk(bytes) => {
                    steps.push(Step::Chunk(bytes.slice(..left as usize)));
                }
                Step::Fill(_) => steps.push(Step::Fill(left)),
                Step::Head | Step::Pause(_) | Step::Wait(_) | Step::Break(_) | Step::Raw(_) => {}
            }
            break;
        }
        steps.push(Step::Break(ending));
        self.steps = steps;
        self
    }

    /// The same response, stalled forever after this many chunks of its body.
    pub fn stall_after_chunks(mut self, count: usize) -> Self {
        let mut chunks = 0;
        let cut = self.steps.iter().position(|step| {
            chunks += usize::from(step.length(true) > 0);
            chunks > count
        });
        self.steps.truncate(cut.unwrap_or(self.steps.len()));
        self.head().stall()
    }

    pub(crate) fn body_length(&self, usage_asked: bool) -> u64 {
        self.steps.iter().map(|step| step.length(usage_asked)).sum()
    }
}

pub(crate) fn usage(prompt: usize, completion: usize, cached: usize) -> serde_json::Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    })
}

pub(crate) fn event_bytes(payload: &str) -> Bytes {
    Bytes::from(format!("data: {payload}\n\n"))
}
