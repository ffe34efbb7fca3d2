//! A simulated provider: counts and caches like a real one, and returns the recorded responses.

use super::http::{Message, write};
use super::translate::{Usage, response};
use serde_json::{Value, json};
use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidegate_config::Settings;
use tidegate_replay::Provider;
use tidegate_tokens::{Model, count};
use tidegate_wire::Dialect;

struct Upstream {
    dialect: Dialect,
    responses: Vec<Value>,
    started: Instant,
    model: Arc<Model>,
    state: Mutex<UpstreamState>,
}

struct UpstreamState {
    provider: Provider,
    /// The number of responses sent so far.
    sent: usize,
}

/// Serves on its own threads until the process ends.
pub(super) fn start(
    listener: TcpListener,
    dialect: Dialect,
    recording: &str,
    model: Arc<Model>,
    settings: &Settings,
) -> anyhow::Result<()> {
    let recording: Value = serde_json::from_str(recording)?;
    let messages = recording["messages"].as_array().into_iter().flatten();
    let responses = messages.filter(|message| message["role"] == "assistant").cloned().collect();
    let state = Mutex::new(UpstreamState { provider: Provider::new(model.clone(), settings), sent: 0 });
    let upstream = Arc::new(Upstream { dialect, responses, started: Instant::now(), model, state });
    std::thread::Builder::new().name("demo upstream".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let upstream = upstream.clone();
            // If no thread can be started, the connection is closed, which the proxy reports.
            let _ = std::thread::Builder::new().spawn(move || upstream.serve(stream));
        }
    })?;
    Ok(())
}

impl Upstream {
    /// Serves the requests of a connection until it is closed or fails.
    fn serve(&self, mut stream: TcpStream) {
        let Ok(reader) = stream.try_clone() else { return };
        let mut reader = BufReader::new(reader);
        while let Ok(Some(request)) = Message::read(&mut reader) {
            let (status, body) = match self.respond(&request.body) {
                Some(response) => ("200 OK", response),
                None => ("400 Bad Request", json!({ "error": { "message": "not a chat completion" } })),
            };
            if write(&mut stream, &format!("HTTP/1.1 {status}"), "", body.to_string().as_bytes()).is_err() {
                return;
            }
        }
    }

    /// The next recorded response, with the usage that a provider would report.
    fn respond(&self, body: &[u8]) -> Option<Value> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let billed = state.provider.bill(body, now)?;
        let end = json!({ "role": "assistant", "content": "The recording is over." });
        let message = self.responses.get(state.sent).unwrap_or(&end);
        state.sent += 1;
        let completion = count(self.model.encoding, &message.to_string()).0;
        let usage = Usage { prompt: billed.tokens(), cached: billed.read, completion };
        Some(response(self.dialect, state.sent, &self.model.name, message, &usage))
    }
}
