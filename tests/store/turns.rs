//! Turns of a conversation whose memory can be seen from outside. A batch of two moves the frontier at the third turn, and
//! at the fourth one more result has left the window: who remembers the third turn waits; who does not masks all three.

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

/// The longest that these tests let a request wait for the store.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_millis(250);

/// What the machine may add to any wait while other tests have its cores.
pub(crate) const SLACK: Duration = Duration::from_millis(400);

/// The settings of a process on this store.
pub(crate) fn config(store: &str) -> String {
    format!(
        "[store]\nurl = \"{store}\"\ntimeout = \"{}ms\"\n[context.mask]\nkeep = {{ turns = 1 }}\npace = {{ batch = 2 }}\n",
        STORE_TIMEOUT.as_millis()
    )
}

pub(crate) async fn start(store: &str, upstream: &MockUpstream) -> Tidegate {
    Setup::new(&config(store)).upstream(&upstream.url()).start().await
}

/// A process that waits for its store however busy the machine is.
pub(crate) async fn start_patient(store: &str, upstream: &MockUpstream) -> Tidegate {
    let patient = config(store).replace(&format!("{}ms", STORE_TIMEOUT.as_millis()), "30s");
    Setup::new(&patient).upstream(&upstream.url()).start().await
}

/// An upstream that always says the same.
pub(crate) async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    let said = r#"{"id":"c","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop",
        "message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,
        "prompt_tokens_details":{"cached_tokens":64}}}"#;
    upstream.answer(Answer::json(200, said));
    upstream
}

/// A turn of the conversation `name`.
pub(crate) async fn turn(process: SocketAddr, name: &str, number: usize) -> Reply {
    let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
    exchange(process, post(CHAT, &headers, body("gpt-4o", &conversation(number), &[]))).await
}

/// A turn, and how long it took.
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
