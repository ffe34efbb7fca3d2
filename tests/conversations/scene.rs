//! Starts processes and sends conversations.

use crate::support::agent::{Message, body, conversation, send};
use crate::support::tidegate::{Setup, Tidegate};
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;

/// A process with an embedded store in this directory.
pub(crate) fn stored(config: &str, upstream: &MockUpstream, data: &TempDir) -> Setup {
    Setup::new(config).upstream(&upstream.url()).env("TIDEGATE_STORE", &url(data))
}

pub(crate) fn in_memory(config: &str, upstream: &MockUpstream) -> Setup {
    Setup::new(config).upstream(&upstream.url()).env("TIDEGATE_STORE", "memory:")
}

pub(crate) fn url(data: &TempDir) -> String {
    format!("embedded:{}", data.path().display())
}

/// Sends an agent's conversation of this name, one request per turn.
pub(crate) async fn agent_run(tidegate: &Tidegate, upstream: &MockUpstream, name: &str, turns: usize) {
    for turn in 1..=turns {
        let sent = body("gpt-4o", &conversation(turn), &[]);
        send(tidegate, upstream, &[("x-conversation-id", name)], &sent).await;
    }
}

/// Sends one question with a tenant's key. Returns the body that reached the upstream.
pub(crate) async fn question(
    tidegate: &Tidegate,
    upstream: &MockUpstream,
    tenant: &str,
    name: &str,
    text: &str,
) -> String {
    let key = format!("Bearer {tenant}");
    let headers = [("authorization", key.as_str()), ("x-conversation-id", name)];
    send(tidegate, upstream, &headers, &body("gpt-4o", &[Message::user(text)], &[])).await.1
}
