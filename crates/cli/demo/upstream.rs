//! A provider that exists in this process only: it counts as one, remembers prompts as one, and answers what was recorded.

use super::http::{Message, write};
use serde_json::{Value, json};
use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidegate_config::Settings;
use tidegate_replay::Provider;
use tidegate_tokens::{Model, count};

struct Upstream {
    answers: Vec<Value>,
    began: Instant,
    model: Arc<Model>,
    state: Mutex<State>,
}

struct State {
    provider: Provider,
    /// How many answers were given.
    given: usize,
}

/// Answers on its own threads until the process ends.
pub(super) fn start(
    listener: TcpListener,
    recording: &str,
    model: Arc<Model>,
    settings: &Settings,
) -> anyhow::Result<()> {
    let recording: Value = serde_json::from_str(recording)?;
    let messages = recording["messages"].as_array().into_iter().flatten();
    let answers = messages.filter(|message| message["role"] == "assistant").cloned().collect();
    let state = Mutex::new(State { provider: Provider::new(model.clone(), settings), given: 0 });
    let upstream = Arc::new(Upstream { answers, began: Instant::now(), model, state });
    std::thread::Builder::new().name("demo upstream".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let upstream = upstream.clone();
            // A connection that cannot have a thread is closed, which the proxy reports.
            let _ = std::thread::Builder::new().spawn(move || upstream.serve(stream));
        }
    })?;
    Ok(())
}

impl Upstream {
    /// Answers the requests of a connection, until the other side or a mistake ends it.
    fn serve(&self, mut stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else { return };
        let mut reading = BufReader::new(reading);
        while let Ok(Some(request)) = Message::read(&mut reading) {
            let (status, body) = match self.answer(&request.body) {
                Some(answer) => ("200 OK", answer),
                None => ("400 Bad Request", json!({ "error": { "message": "this is no chat completion" } })),
            };
            if write(&mut stream, &format!("HTTP/1.1 {status}"), "", body.to_string().as_bytes()).is_err() {
                return;
            }
        }
    }

    /// The next answer of the recording, with the usage that a provider would report.
    fn answer(&self, body: &[u8]) -> Option<Value> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let billed = state.provider.bill(body, now)?;
        let over = json!({ "role": "assistant", "content": "The recording is over." });
        let message = self.answers.get(state.given).unwrap_or(&over);
        state.given += 1;
        let calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        let completion = count(self.model.encoding, &message.to_string()).0;
        Some(json!({
            "id": format!("chatcmpl-demo-{}", state.given),
            "object": "chat.completion",
            "model": self.model.name,
            "choices": [{
                "index": 0,
                "message": message,
                "finish_reason": if calls { "tool_calls" } else { "stop" },
            }],
            "usage": {
                "prompt_tokens": billed.tokens(),
                "completion_tokens": completion,
                "total_tokens": billed.tokens() + completion,
                "prompt_tokens_details": { "cached_tokens": billed.read },
            },
        }))
    }
}
