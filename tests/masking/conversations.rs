//! Which requests belong to the same conversation. With a batch of two, the third turn moves the frontier. At the fourth turn one
//! more result is outside the window: a conversation that remembers the third turn postpones it, a new one masks all three.

use crate::support::agent::{body, conversation, send};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

const BATCH: &str = "[context.mask]\nkeep = { turns = 1 }\npace = { batch = 2 }\n";
const REMEMBERED: Option<&str> = Some("masked=2,folded=0,dropped=0");
const NEW: Option<&str> = Some("masked=3,folded=0,dropped=0");

/// The edits of the fourth turn under `second`, after the third under `first`.
async fn edits(first: &[(&str, &str)], second: &[(&str, &str)]) -> Option<String> {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(BATCH, &upstream).await;
    let (reply, _) = send(&tidegate, &upstream, first, &body("gpt-4o", &conversation(3), &[])).await;
    assert_eq!(reply.header("x-tidegate-edits"), REMEMBERED);
    let (reply, _) = send(&tidegate, &upstream, second, &body("gpt-4o", &conversation(4), &[])).await;
    reply.header("x-tidegate-edits").map(str::to_owned)
}

#[tokio::test]
async fn the_header_names_the_conversation() {
    let (a, b) = (("x-conversation-id", "a"), ("x-conversation-id", "b"));
    assert_eq!(edits(&[a], &[a]).await.as_deref(), REMEMBERED);
    assert_eq!(edits(&[a], &[b]).await.as_deref(), NEW);
}

#[tokio::test]
async fn without_the_header_the_first_messages_identify_it() {
    assert_eq!(edits(&[], &[]).await.as_deref(), REMEMBERED);
    assert_eq!(edits(&[("x-conversation-id", "a")], &[]).await.as_deref(), NEW);
}

#[tokio::test]
async fn one_name_under_two_keys_is_two_conversations() {
    let name = ("x-conversation-id", "same");
    let (ada, bob) = (("authorization", "Bearer ada"), ("authorization", "Bearer bob"));
    assert_eq!(edits(&[name, ada], &[name, ada]).await.as_deref(), REMEMBERED);
    assert_eq!(edits(&[name, ada], &[name, bob]).await.as_deref(), NEW);
    assert_eq!(edits(&[name, ada], &[name]).await.as_deref(), NEW);
    assert_eq!(edits(&[ada], &[bob]).await.as_deref(), NEW);
}

#[tokio::test]
async fn a_changed_system_prompt_keeps_the_conversation() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(BATCH, &upstream).await;
    send(&tidegate, &upstream, &[], &body("gpt-4o", &conversation(3), &[])).await;
    let mut later = conversation(4);
    later[0].content = "\"It is five past nine.\"".to_owned();
    let (reply, _) = send(&tidegate, &upstream, &[], &body("gpt-4o", &later, &[])).await;
    assert_eq!(reply.header("x-tidegate-edits"), REMEMBERED);
}

#[tokio::test]
async fn an_edited_history_does_not_reuse_decisions() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(BATCH, &upstream).await;
    let named = [("x-conversation-id", "a")];
    send(&tidegate, &upstream, &named, &body("gpt-4o", &conversation(3), &[])).await;
    let mut edited = conversation(4);
    edited[1].content = "\"Fix another bug.\"".to_owned();
    let (reply, _) = send(&tidegate, &upstream, &named, &body("gpt-4o", &edited, &[])).await;
    assert_eq!(reply.header("x-tidegate-edits"), NEW);
    let (reply, _) = send(&tidegate, &upstream, &named, &body("gpt-4o", &conversation(4), &[])).await;
    assert_eq!(reply.header("x-tidegate-edits"), REMEMBERED, "the first branch is not remembered");
}
