//! An assistant's desk: Tidegate with the profile, a model that summarizes as it is told, and notes that can be pinned.

use crate::conformance::scene::{Sent, message, said};
use crate::support::PATIENCE;
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{Conversations, Options, RedisStore};
use tidegate_testkit::{Answer, MockUpstream, RedisServer, until_ok};

pub(super) struct Desk {
    pub(super) tidegate: Tidegate,
    upstream: MockUpstream,
    pub(super) summarizer: MockUpstream,
    redis: Option<RedisServer>,
    model: &'static str,
}

/// The conversation of every test that has only one.
pub(super) const TALK: &str = "talk";

impl Desk {
    /// Nothing can be pinned to its conversations. `settings` begin inside `[context]`.
    pub(super) async fn start(settings: &str) -> Desk {
        Desk::open(settings, None).await
    }

    /// With a store that others can write to while Tidegate runs.
    pub(super) async fn with_notes(settings: &str) -> Desk {
        Desk::open(settings, Some(RedisServer::start().await)).await
    }

    async fn open(settings: &str, redis: Option<RedisServer>) -> Desk {
        let (upstream, summarizer) = (MockUpstream::start().await, MockUpstream::start().await);
        upstream.answer(said("ok"));
        let store = redis.as_ref().map_or_else(|| "memory:".to_owned(), RedisServer::url);
        let config = format!(
            "[store]\nurl = \"{store}\"\ntimeout = \"10s\"\n[upstreams.summarizer]\nurl = \"{}\"\n\
             [summarizers.told]\nkind = \"llm\"\nupstream = \"summarizer\"\nmodel = \"gpt-4o-mini\"\n\
             [context]\nprofile = \"assistant\"\n{settings}\n",
            summarizer.url()
        );
        let tidegate = Setup::new(&config).upstream(&upstream.url()).start().await;
        let desk = Desk { tidegate, upstream, summarizer, redis, model: "gpt-4o" };
        desk.summarizes(&["The harbour has 3 piers."]);
        desk
    }

    pub(super) fn model(self, model: &'static str) -> Desk {
        Desk { model, ..self }
    }

    /// What every summary says from now on, if the settings name this summarizer: see [`TOLD`].
    pub(super) fn summarizes(&self, facts: &[impl AsRef<str>]) {
        let facts: Vec<Value> = facts.iter().map(|fact| json!({ "text": fact.as_ref() })).collect();
        self.summarizer.answer(Answer::chat(&json!({ "key_facts": facts }).to_string()));
    }

    pub(super) async fn ask(&self, name: &str, body: &str) -> Reply {
        let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
        exchange(self.tidegate.address, post(CHAT, &headers, body)).await
    }

    /// Sends a request as it is written, and gives the answer with the bytes that reached the upstream.
    pub(super) async fn send(&self, name: &str, body: &str) -> (Reply, String) {
        let reply = self.ask(name, body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        (reply, String::from_utf8(self.upstream.next_request().await.body).unwrap())
    }

    pub(super) async fn say(&self, messages: &[Value]) -> (Reply, Sent) {
        let (reply, body) = self.send(TALK, &self.body(messages)).await;
        (reply, Sent(serde_json::from_str(&body).unwrap()))
    }

    pub(super) fn body(&self, messages: &[Value]) -> String {
        json!({ "model": self.model, "messages": messages }).to_string()
    }

    /// Pins a text to the conversation, in the place of the one that was; none takes it away. The conversation begins with it if
    /// it has not begun.
    pub(super) async fn pin(&self, text: Option<&str>) {
        if self.listed().await.is_none() {
            self.say(&[message("user", "Hello.")]).await;
        }
        let id = self.until("the conversation is listed", async || self.listed().await).await;
        let redis = self.redis.as_ref().expect("the desk has notes");
        let patience = Duration::from_secs(10);
        let store = RedisStore::open(&redis.url(), Duration::from_secs(3_600), patience).unwrap();
        let options = Options { timeout: patience, raw: true, keyring: None };
        let conversations = Conversations::new(Arc::new(store), options);
        conversations.pin(id.parse().unwrap(), text).await.unwrap();
    }

    async fn listed(&self) -> Option<String> {
        let page = self.admin("/api/conversations").await;
        page["conversations"].as_array()?.iter().find_map(|one| Some(one["id"].as_str()?.to_owned()))
    }

    /// What is told of the conversation once it has had so many turns.
    pub(super) async fn told(&self, turns: usize) -> Value {
        let page = async || {
            let page = self.admin(&format!("/api/conversations/{}", self.listed().await?)).await;
            (page["turns_total"].as_u64()? >= turns as u64).then_some(page)
        };
        self.until("the turns are recorded", page).await
    }

    /// The sizes of the blocks of its last turn, the `turns`-th.
    pub(super) async fn blocks(&self, turns: usize) -> Value {
        self.told(turns).await["turns"][turns - 1]["blocks"].clone()
    }

    pub(super) async fn admin(&self, path: &str) -> Value {
        admin(self.tidegate.admin, path).await.json()
    }

    /// Asks again until there is an answer: what is counted is counted after its answer has ended.
    async fn until<T>(&self, what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
        until_ok(what, PATIENCE, async || ask().await.ok_or("no answer")).await
    }
}

/// The setting that has summaries made by [`Desk::summarizes`].
pub(super) const TOLD: &str = "[context.fold]\nsummarizer = \"told\"\n";

/// So many words, the first of which is `name`.
pub(super) fn words(name: &str, count: usize) -> String {
    assert!(count > 0);
    let mut text = name.to_owned();
    text.extend(std::iter::repeat_n(" word", count - 1));
    text
}

/// A history of so many words a message, the last of them the assistant's, and a question behind it that belongs to no block. The
/// messages begin with `m0`, `m1` and so on.
pub(super) fn history(sizes: &[usize]) -> Vec<Value> {
    let role = |index: usize| if (sizes.len() - index).is_multiple_of(2) { "user" } else { "assistant" };
    let one = |(index, size): (usize, &usize)| message(role(index), &words(&format!("m{index}"), *size));
    let mut messages: Vec<Value> = sizes.iter().enumerate().map(one).collect();
    messages.push(message("user", "And what now, please tell?"));
    messages
}

/// The same behind instructions of so many words.
pub(super) fn instructed(instructions: usize, sizes: &[usize]) -> Vec<Value> {
    let mut messages = vec![message("system", &words("Rules", instructions))];
    messages.extend(history(sizes));
    messages
}

/// The messages of [`history`] that a request still has, by their numbers.
pub(super) fn numbers(sent: &Sent) -> Vec<usize> {
    let number = |text: &str| text.split_whitespace().next()?.strip_prefix('m')?.parse().ok();
    sent.contents().into_iter().filter_map(number).collect()
}

/// What is pinned, as it stands in a request.
pub(super) fn notes(sent: &Sent) -> Option<&str> {
    sent.contents().into_iter().find_map(|text| text.strip_prefix("## Your Memory\n"))
}

pub(super) fn summary(sent: &Sent) -> Option<&str> {
    sent.summary().map(|message| message["content"].as_str().unwrap())
}

/// The lines of the summary that say something.
pub(super) fn facts(sent: &Sent) -> Vec<&str> {
    summary(sent).unwrap_or_default().lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

pub(super) fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Facts that make a summary of so many words with its frame, which has `frame`: each is one word more in it, its bullet.
pub(super) fn facts_for(summary: usize, frame: usize) -> Vec<String> {
    let mut left = summary - frame;
    let mut facts = Vec::new();
    while left > 0 {
        // Not so few that the last one has no words left, and not so many that an entry is cut.
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

/// How many words a summary with nothing but facts has besides them.
pub(super) async fn frame() -> usize {
    let desk = Desk::start(TOLD).await;
    let (_, sent) = desk.say(&history(&[2_000, 2_000, 2_000])).await;
    count(summary(&sent).unwrap()) - count("- The harbour has 3 piers.")
}
