//! Turns that show whether a process remembers the conversation. With a batch of two, the third turn moves the frontier. At the
//! fourth turn one more result is outside the window: a process that remembers the third turn postpones it, another masks all three.

use crate::support::agent::{body, conversation};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream};
use tokio::time::Instant;

pub(crate) const REMEMBERED: Option<&str> = Some("masked=2,folded=0,dropped=0");
pub(crate) const NEW: Option<&str> = Some("masked=3,folded=0,dropped=0");

/// The store timeout in these tests.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_millis(250);

/// Tolerance for delays of a busy machine.
pub(crate) const SLACK: Duration = Duration::from_millis(400);

/// The configuration of a process on this store.
pub(crate) fn config(store: &str) -> String {
    format!(
        "[store]\nurl = \"{store}\"\ntimeout = \"{}ms\"\n[context.mask]\nkeep = {{ turns = 1 }}\npace = {{ batch = 2 }}\n",
        STORE_TIMEOUT.as_millis()
    )
}

pub(crate) async fn start(store: &str, upstream: &MockUpstream) -> Tidegate {
    Setup::new(&config(store)).upstream(&upstream.url()).start().await
}

/// Starts a process whose store timeout is too long to expire on a busy machine.
pub(crate) async fn start_patient(store: &str, upstream: &MockUpstream) -> Tidegate {
    let patient = config(store).replace(&format!("{}ms", STORE_TIMEOUT.as_millis()), "30s");
    Setup::new(&patient).upstream(&upstream.url()).start().await
}

/// An upstream with a fixed answer.
pub(crate) async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    let answer = r#"{"id":"c","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop",
        "message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,
        "prompt_tokens_details":{"cached_tokens":64}}}"#;
    upstream.answer(Answer::json(200, answer));
    upstream
}

/// A turn of the conversation `name`.
pub(crate) async fn turn(process: SocketAddr, name: &str, number: usize) -> Reply {
    let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
    exchange(process, post(CHAT, &headers, body("gpt-4o", &conversation(number), &[]))).await
}

/// A turn, and the time that it took.
pub(crate) async fn timed_turn(process: SocketAddr, name: &str, number: usize) -> (Reply, Duration) {
    let begun = Instant::now();
    let reply = turn(process, name, number).await;
    (reply, begun.elapsed())
}

pub(crate) fn degraded(reply: &Reply) -> Option<&str> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.header("x-tidegate-degraded")
}

pub(crate) fn edits(reply: &Reply) -> Option<&str> {
    reply.header("x-tidegate-edits")
}
