//! Section "Persistence": every raw turn is stored in PostgreSQL in full, even if the model no longer sees it.

use super::run::{NO_CACHE, PLACEHOLDER};
use crate::conformance::scene::Scene;
use crate::support::client::{CHAT, exchange, post};
use tidegate_testkit::{PostgresServer, until};

/// Messages with unusual spelling, so that a reserialized one would differ.
fn written(turns: usize) -> Vec<String> {
    let mut messages = vec![
        "{ \"role\" :\"system\", \"content\":\"You mend \\u0070rograms.\"}".to_owned(),
        "{\"content\":\"Why?\",\"role\":\"user\"}".to_owned(),
    ];
    for turn in 0..turns {
        messages.push(format!(
            "{{\"role\":\"assistant\",\"content\":null,\"weight\":1.{turn}0e+2,\"tool_calls\":[{{\"id\":\"c{turn}\",\"type\":\"function\",\
             \"function\":{{\"name\":\"look\",\"arguments\":\"{{\\\"n\\\":{turn}}}\"}}}}]}}"
        ));
        let output = "one line\\nanother \\ud83e\\udd80 \\/ '; -- \\u0000 ".repeat(10);
        messages.push(format!(
            "{{\"tool_call_id\":\"c{turn}\", \"role\":\"tool\",\t\"content\":\"{turn}: {output}\"}}"
        ));
    }
    messages
}

async fn send(scene: &Scene, turns: usize) -> String {
    let body = format!("{{\"model\":\"gpt-4o\",\"messages\":[{}]}}", written(turns).join(","));
    let headers = [("x-conversation-id", "run-7"), ("authorization", "Bearer ada")];
    let reply = exchange(scene.tidegate.address, post(CHAT, &headers, body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    String::from_utf8(scene.upstream.next_request().await.body).unwrap()
}

#[tokio::test]
async fn every_raw_turn_is_kept_byte_for_byte_and_once() {
    let server = PostgresServer::start().await;
    let settings = format!("[archive]\nurl = \"{}\"\n{NO_CACHE}", server.url());
    let scene = Scene::start("agent", &settings).await;
    let first = send(&scene, 12).await;
    assert_eq!(first.matches(PLACEHOLDER).count(), 2);
    // A retry and the next turn send the same messages again.
    assert_eq!(send(&scene, 12).await, first);
    assert_eq!(send(&scene, 13).await.matches(PLACEHOLDER).count(), 3);
    // The audit of a request is written after its messages.
    until("three requests are in the archive", async || {
        server.psql("select to_regclass('turn_context_audit') is not null").await == "t"
            && server.psql("select count(*) from turn_context_audit").await == "3"
    })
    .await;
    let rows = "select encode(convert_to(raw_message, 'UTF8'), 'hex') from agent_context_turns \
                where conversation_id = 'run-7' and raw_message not like '%\"ok\"%' order by position";
    let expected: Vec<String> = written(13)
        .iter()
        .map(|message| message.bytes().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    assert_eq!(server.psql(rows).await.split('\n').collect::<Vec<_>>(), expected);
    // Answers are stored as well: one for both tries of the first request, and one for the next request.
    let answers =
        "select count(*) from agent_context_turns where raw_message like '%\"ok\"%' and role = 'assistant'";
    assert_eq!(server.psql(answers).await, "2");
    let masked = format!(
        "select count(*) from agent_context_turns where raw_message like '%{}%'",
        "OMITTED_OBSERVATION"
    );
    assert_eq!(server.psql(&masked).await, "0");
}

/// The turns that a summary covers are still stored.
#[tokio::test]
async fn summarized_turns_are_kept() {
    let server = PostgresServer::start().await;
    let settings = format!("strategy = \"hybrid\"\n[archive]\nurl = \"{}\"\n", server.url());
    let scene = Scene::start("agent", &settings).await;
    let sent = send(&scene, 24).await;
    assert!(sent.contains("<conversation_record>"), "{sent}");
    until("the request is in the archive", async || {
        server.psql("select to_regclass('turn_context_audit') is not null").await == "t"
            && server.psql("select count(*) from turn_context_audit").await == "1"
    })
    .await;
    let tools = "select count(distinct raw_message) from agent_context_turns where role = 'tool'";
    assert_eq!(server.psql(tools).await, "24");
    assert_eq!(server.psql("select covered_messages > 0 from session_summaries").await, "t");
}
