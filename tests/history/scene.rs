//! Several processes that keep the history of conversations in one Redis.

use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tidegate_testkit::{Answer, MockUpstream, Recorded, RedisServer};

pub(crate) struct Scene {
    pub(crate) redis: RedisServer,
    pub(crate) upstream: MockUpstream,
    pub(crate) processes: Vec<Tidegate>,
}

impl Scene {
    /// Starts this many processes with additional lines of configuration. The upstream answers `u1` with `a1`, and so on.
    pub(crate) async fn start(processes: usize, settings: &str) -> Scene {
        let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
        upstream.script(answer);
        let mut scene = Scene { redis, upstream, processes: Vec::new() };
        for _ in 0..processes {
            let process = scene.setup(settings).start().await;
            scene.processes.push(process);
        }
        scene
    }

    /// A further process.
    pub(crate) fn setup(&self, settings: &str) -> Setup {
        self.setup_without_upstream(settings).upstream(&self.upstream.url())
    }

    pub(crate) fn setup_without_upstream(&self, settings: &str) -> Setup {
        let (settings, more) = settings.split_once("[store]\n").unwrap_or((settings, ""));
        self.setup_with(&format!("[store]\nurl = \"{}\"\n{more}", self.redis.url()), settings)
    }

    /// A process with another section `[store]`.
    pub(crate) fn setup_with(&self, store: &str, settings: &str) -> Setup {
        Setup::new(&format!(
            "{settings}\n{store}\n[context]\nhistory = \"proxy\"\nstrategy = \"passthrough\"\n"
        ))
    }

    pub(crate) fn address(&self, process: usize) -> SocketAddr {
        self.processes[process].address
    }

    /// Sends one message through a process.
    pub(crate) async fn say(&self, process: usize, text: &str) -> Reply {
        ask(self.address(process), &[], &[said(text)]).await
    }

    /// The same, and it must succeed. Returns the texts of what was forwarded.
    pub(crate) async fn said(&self, process: usize, text: &str) -> Vec<String> {
        let reply = self.say(process, text).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        self.forwarded().await
    }

    /// The texts of the next forwarded request.
    pub(crate) async fn forwarded(&self) -> Vec<String> {
        texts(&self.upstream.next_request().await.json())
    }
}

/// Answers the last message: `u1` with `a1`.
pub(crate) fn answer(request: &Recorded) -> Answer {
    let last = texts(&request.json()).pop().unwrap_or_default();
    completion(&json!({ "role": "assistant", "content": last.replacen('u', "a", 1) }))
}

pub(crate) fn completion(message: &Value) -> Answer {
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": message });
    Answer::json(200, json!({ "id": "c", "object": "chat.completion", "choices": [choice] }))
}

pub(crate) fn said(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(crate) const OWNER: [(&str, &str); 2] = [("x-conversation-id", "c"), ("authorization", "Bearer ada")];

/// Sends messages of the conversation `c` with further headers.
pub(crate) async fn ask(address: SocketAddr, headers: &[(&str, &str)], messages: &[Value]) -> Reply {
    let body = json!({ "model": "gpt-4o", "messages": messages }).to_string();
    exchange(address, post(CHAT, &[&OWNER[..], headers].concat(), body)).await
}

/// The texts of the messages of a request.
pub(crate) fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|one| one["content"].as_str().unwrap_or_default().to_owned()).collect()
}
