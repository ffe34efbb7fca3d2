//! Tidegate with the profile, an LLM summarizer with scripted output, and memory that a test can pin.

use crate::conformance::scene::{Sent, completion, message};
use crate::support::PATIENCE;
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{Conversations, Options, RedisStore};
use tidegate_testkit::{Answer, MockUpstream, RedisServer, until_ok};

pub(super) struct Assistant {
    pub(super) tidegate: Tidegate,
    upstream: MockUpstream,
    pub(super) summarizer: MockUpstream,
    redis: Option<RedisServer>,
    model: &'static str,
}

/// The name of the conversation in tests that need only one.
pub(super) const CONVERSATION: &str = "talk";

impl Assistant {
    /// Starts with a store in memory, where nothing can be pinned. `settings` begin inside `[context]`.
    pub(super) async fn start(settings: &str) -> Assistant {
        Assistant::open(settings, None).await
    }

    /// Starts with a store that the test can write to as well, to pin memory.
    pub(super) async fn with_memory(settings: &str) -> Assistant {
        Assistant::open(settings, Some(RedisServer::start().await)).await
    }

    async fn open(settings: &str, redis: Option<RedisServer>) -> Assistant {
        let (upstream, summarizer) = (MockUpstream::start().await, MockUpstream::start().await);
        upstream.answer(completion("ok"));
        let store = redis.as_ref().map_or_else(|| "memory:".to_owned(), RedisServer::url);
        let config = format!(
            "[store]\nurl = \"{store}\"\ntimeout = \"10s\"\n[upstreams.summarizer]\nurl = \"{}\"\n\
             [summarizers.scripted]\nkind = \"llm\"\nupstream = \"summarizer\"\nmodel = \"gpt-4o-mini\"\n\
             [context]\nprofile = \"assistant\"\n{settings}\n",
            summarizer.url()
        );
        let tidegate = Setup::new(&config).upstream(&upstream.url()).start().await;
        let assistant = Assistant { tidegate, upstream, summarizer, redis, model: "gpt-4o" };
        assistant.set_summary(&["The harbour has 3 piers."]);
        assistant
    }

    pub(super) fn model(self, model: &'static str) -> Assistant {
        Assistant { model, ..self }
    }

    /// Sets the facts of every later summary. The settings must include [`SCRIPTED`].
    pub(super) fn set_summary(&self, facts: &[impl AsRef<str>]) {
        let facts: Vec<Value> = facts.iter().map(|fact| json!({ "text": fact.as_ref() })).collect();
        self.summarizer.answer(Answer::chat(&json!({ "key_facts": facts }).to_string()));
    }

    pub(super) async fn ask(&self, name: &str, body: &str) -> Reply {
        let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
        exchange(self.tidegate.address, post(CHAT, &headers, body)).await
    }

    /// Sends a request body. Returns the response and the body that reached the upstream.
    pub(super) async fn send_body(&self, name: &str, body: &str) -> (Reply, String) {
        let reply = self.ask(name, body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        (reply, String::from_utf8(self.upstream.next_request().await.body).unwrap())
    }

    pub(super) async fn send(&self, messages: &[Value]) -> (Reply, Sent) {
        let (reply, body) = self.send_body(CONVERSATION, &self.body(messages)).await;
        (reply, Sent(serde_json::from_str(&body).unwrap()))
    }

    pub(super) fn body(&self, messages: &[Value]) -> String {
        json!({ "model": self.model, "messages": messages }).to_string()
    }

    /// Replaces the memory of the conversation, or clears it with `None`. Starts the conversation if necessary.
    pub(super) async fn pin(&self, text: Option<&str>) {
        if self.conversation_id().await.is_none() {
            self.send(&[message("user", "Hello.")]).await;
        }
        let id = self.until("the conversation is listed", async || self.conversation_id().await).await;
        let redis = self.redis.as_ref().expect("the harness was started with memory");
        let patience = Duration::from_secs(10);
        let store = RedisStore::open(&redis.url(), Duration::from_secs(3_600), patience).unwrap();
        let options = Options { timeout: patience, ttl: patience, raw: true, keyring: None };
        let conversations = Conversations::new(Arc::new(store), options);
        conversations.pin(id.parse().unwrap(), text).await.unwrap();
    }

    async fn conversation_id(&self) -> Option<String> {
        let page = self.admin("/api/conversations").await;
        page["conversations"].as_array()?.iter().find_map(|one| Some(one["id"].as_str()?.to_owned()))
    }

    /// The conversation page, once this many turns are recorded.
    pub(super) async fn conversation(&self, turns: usize) -> Value {
        let page = async || {
            let page = self.admin(&format!("/api/conversations/{}", self.conversation_id().await?)).await;
            (page["turns_total"].as_u64()? >= turns as u64).then_some(page)
        };
        self.until("the turns are recorded", page).await
    }

    /// The block sizes of the turn with this number.
    pub(super) async fn blocks(&self, turns: usize) -> Value {
        self.conversation(turns).await["turns"][turns - 1]["blocks"].clone()
    }

    pub(super) async fn admin(&self, path: &str) -> Value {
        admin(self.tidegate.admin, path).await.json()
    }

    /// Asks until there is a result, because turns are recorded after their responses.
    async fn until<T>(&self, what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
        until_ok(what, PATIENCE, async || ask().await.ok_or("no answer")).await
    }
}

/// The setting for summaries by [`Assistant::set_summary`].
pub(super) const SCRIPTED: &str = "[context.fold]\nsummarizer = \"scripted\"\n";

/// A text of `count` words that starts with `name`.
pub(super) fn words(name: &str, count: usize) -> String {
    assert!(count > 0);
    let mut text = name.to_owned();
    text.extend(std::iter::repeat_n(" word", count - 1));
    text
}

/// A history of messages with these numbers of words, ending with the assistant, and a question that belongs to no block. The
/// messages start with `m0`, `m1` and so on.
pub(super) fn history(sizes: &[usize]) -> Vec<Value> {
    let role = |index: usize| if (sizes.len() - index).is_multiple_of(2) { "user" } else { "assistant" };
    let one = |(index, size): (usize, &usize)| message(role(index), &words(&format!("m{index}"), *size));
    let mut messages: Vec<Value> = sizes.iter().enumerate().map(one).collect();
    messages.push(message("user", "And what now, please tell?"));
    messages
}

/// The same after instructions of this many words.
pub(super) fn instructed(instructions: usize, sizes: &[usize]) -> Vec<Value> {
    let mut messages = vec![message("system", &words("Rules", instructions))];
    messages.extend(history(sizes));
    messages
}

/// The numbers of the [`history`] messages in a request.
pub(super) fn numbers(sent: &Sent) -> Vec<usize> {
    let number = |text: &str| text.split_whitespace().next()?.strip_prefix('m')?.parse().ok();
    sent.contents().into_iter().filter_map(number).collect()
}

/// The memory in a request.
pub(super) fn memory(sent: &Sent) -> Option<&str> {
    sent.contents().into_iter().find_map(|text| text.strip_prefix("## Your Memory\n"))
}

pub(super) fn summary(sent: &Sent) -> Option<&str> {
    sent.summary().map(|message| message["content"].as_str().unwrap())
}

/// The bullets of the summary.
pub(super) fn facts(sent: &Sent) -> Vec<&str> {
    summary(sent).unwrap_or_default().lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

pub(super) fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Facts for a summary of `summary` words, of which `frame` are its frame. Each fact costs one more word for its bullet.
pub(super) fn facts_for(summary: usize, frame: usize) -> Vec<String> {
    let mut left = summary - frame;
    let mut facts = Vec::new();
    while left > 0 {
        // Large enough that the last fact has words left, and small enough that no entry is cut.
        let size = if left > 60 {
            30
        } else if left > 32 {
            left / 2
        } else {
            left
        };
        facts.push(words(&format!("Pier-{}", facts.len()), size - 1));
        left -= size;
    }
    facts
}

/// The number of words in a summary besides its facts.
pub(super) async fn frame() -> usize {
    let assistant = Assistant::start(SCRIPTED).await;
    let (_, sent) = assistant.send(&history(&[2_000, 2_000, 2_000])).await;
    count(summary(&sent).unwrap()) - count("- The harbour has 3 piers.")
}
