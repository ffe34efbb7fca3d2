//! Starts the processes of a test: Tidegate, an upstream, a summarizer.

use super::forwarded::Forwarded;
use crate::support::chat::body;
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::{Reply, figure};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::json;
use std::net::SocketAddr;
use tidegate_testkit::{Answer, MockUpstream};

/// Folds all but the last two questions at every fourth question since the last fold.
pub(crate) const FOLD: &str = "when = { user_turns = 4 }\nkeep = { user_turns = 2 }\n";

/// The edits of the first fold, which covers two questions of [`chat`](crate::support::chat::chat).
pub(crate) const FIRST_FOLD: &str = "masked=0,folded=9,dropped=0";

/// A configuration with `strategy = "summarization"` and these lines in `[context.fold]`.
pub(crate) fn summarization(fold: &str) -> String {
    format!(
        "[store]\nurl = \"memory:\"\n[context]\nstrategy = \"summarization\"\n[context.recall]\nauto = false\n[context.fold]\n{FOLD}{fold}"
    )
}

/// Adds an input limit. The reserves keep their defaults.
pub(crate) fn with_budget(settings: &str, tokens: usize) -> String {
    format!("{settings}\n[context.budget]\nmax_input = {tokens}\n")
}

/// Adds a summarizer `small` with its own upstream.
pub(crate) fn with_summarizer(settings: &str, summarizer: &MockUpstream, timeout: &str) -> String {
    let url = summarizer.url();
    let settings = settings.replace("[context.fold]\n", "[context.fold]\nsummarizer = \"small\"\n");
    format!(
        "{settings}\n[upstreams.summarizer]\nurl = \"{url}\"\n[summarizers.small]\nkind = \"llm\"\nupstream = \"summarizer\"\n\
         model = \"gpt-4o-mini\"\ntimeout = \"{timeout}\"\n"
    )
}

pub(crate) fn with_store(settings: &str, url: &str) -> String {
    settings.replace("url = \"memory:\"", &format!("url = \"{url}\""))
}

pub(crate) async fn start(settings: &str, upstream: &MockUpstream) -> Tidegate {
    Setup::new(settings).upstream(&upstream.url()).start().await
}

/// An upstream with a fixed answer, without usage figures that would calibrate token counts.
pub(crate) async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    let answer = r#"{"id":"c","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop",
        "message":{"role":"assistant","content":"ok"}}]}"#;
    upstream.answer(Answer::json(200, answer));
    upstream
}

/// A fact in every summary by [`summarizer`].
pub(crate) const FACT: &str = "The pier is nine metres long.";

/// An LLM summarizer that always returns a valid summary.
pub(crate) async fn summarizer() -> MockUpstream {
    let summarizer = MockUpstream::start().await;
    summarizer.answer(good_summary());
    summarizer
}

pub(crate) fn good_summary() -> Answer {
    Answer::chat(
        &json!({ "summary_text": "Piers were mended.", "key_facts": [{ "text": FACT }] }).to_string(),
    )
}

/// Sends a request of the conversation `name`. Returns the response and the request that reached the upstream.
pub(crate) async fn send(
    process: &Tidegate,
    upstream: &MockUpstream,
    name: &str,
    messages: &[String],
) -> (Reply, Forwarded) {
    let reply = ask(process.address, name, messages).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let arrived = upstream.next_request().await;
    (reply, Forwarded::new(String::from_utf8(arrived.body).unwrap()))
}

pub(crate) async fn ask(process: SocketAddr, name: &str, messages: &[String]) -> Reply {
    let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
    exchange(process, post(CHAT, &headers, body(messages))).await
}

pub(crate) fn edits(reply: &Reply) -> &str {
    reply.header("x-tidegate-edits").unwrap_or_else(|| panic!("no edits in {:?}", reply.headers))
}

pub(crate) fn trigger(reply: &Reply) -> Option<&str> {
    reply.header("x-tidegate-trigger")
}

pub(crate) fn degraded(reply: &Reply) -> Option<&str> {
    reply.header("x-tidegate-degraded")
}

pub(crate) fn assert_fits(reply: &Reply) {
    let (after, budget) = (figure(reply, "x-tidegate-tokens-after"), figure(reply, "x-tidegate-budget"));
    assert!(after <= budget, "{after} tokens for a budget of {budget}");
}
