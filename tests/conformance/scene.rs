//! Tidegate with a profile, and an upstream that records requests.

use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream};

pub(crate) struct Scene {
    pub(crate) upstream: MockUpstream,
    pub(crate) tidegate: Tidegate,
    model: String,
}

/// A request that reached the upstream.
pub(crate) struct Sent(pub(crate) Value);

impl Scene {
    /// Starts Tidegate with this profile and these additional lines of configuration.
    pub(crate) async fn start(profile: &str, settings: &str) -> Scene {
        Scene::start_with(profile, settings, |setup| setup).await
    }

    /// The same, with further setup of the process.
    pub(crate) async fn start_with(
        profile: &str,
        settings: &str,
        with: impl FnOnce(Setup) -> Setup,
    ) -> Scene {
        let upstream = MockUpstream::start().await;
        upstream.answer(completion("ok"));
        let config = format!("[store]\nurl = \"memory:\"\n[context]\nprofile = \"{profile}\"\n{settings}");
        let tidegate = with(Setup::new(&config).upstream(&upstream.url())).start().await;
        Scene { upstream, tidegate, model: "gpt-4o".to_owned() }
    }

    /// Uses another model than `gpt-4o`.
    pub(crate) fn model(self, model: &str) -> Scene {
        Scene { model: model.to_owned(), ..self }
    }

    /// Sends a request of the conversation `name`.
    pub(crate) async fn ask(&self, name: &str, messages: &[Value]) -> Reply {
        let body = json!({ "model": self.model, "messages": messages }).to_string();
        let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
        exchange(self.tidegate.address, post(CHAT, &headers, body)).await
    }

    /// Sends a request that must succeed. Returns the response and the forwarded request.
    pub(crate) async fn send(&self, name: &str, messages: &[Value]) -> (Reply, Sent) {
        let reply = self.ask(name, messages).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        (reply, Sent(self.upstream.next_request().await.json()))
    }
}

/// A completion with this text, without usage figures that would calibrate token counts.
pub(crate) fn completion(text: &str) -> Answer {
    let message = json!({ "role": "assistant", "content": text });
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": message });
    Answer::json(
        200,
        json!({ "id": "c", "object": "chat.completion", "model": "gpt-4o", "choices": [choice] }),
    )
}

impl Sent {
    pub(crate) fn messages(&self) -> &[Value] {
        self.0["messages"].as_array().unwrap()
    }

    /// The texts of the messages, in order.
    pub(crate) fn contents(&self) -> Vec<&str> {
        self.messages().iter().map(|message| message["content"].as_str().unwrap_or_default()).collect()
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.contents().iter().any(|content| content.contains(text))
    }

    /// The message with the summary.
    pub(crate) fn summary(&self) -> Option<&Value> {
        let holds = |message: &&Value| {
            message["content"].as_str().is_some_and(|content| content.starts_with("<conversation_record>"))
        };
        self.messages().iter().find(holds)
    }
}

pub(crate) fn message(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}
