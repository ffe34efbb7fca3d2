//! Sections 7, 10 and 12: summaries and audits in a database.

use super::chat::{MODELS, ask, chat, longer};
use crate::conformance::operator::conversation;
use crate::conformance::scene::Scene;
use crate::conformance::summarizer::Summarizer;
use crate::support::reply::figure;
use crate::support::within;
use serde_json::json;
use tidegate_testkit::PostgresServer;

/// The rows of a query, once there are `count` of them. Rows are written after the responses.
async fn rows(database: &PostgresServer, count: usize, table: &str, columns: &str) -> Vec<Vec<String>> {
    let poll = async {
        loop {
            let exists = database.psql(&format!("SELECT to_regclass('{table}') IS NOT NULL")).await;
            if exists == "t" {
                let text =
                    database.psql(&format!("SELECT {columns} FROM {table} ORDER BY created_at, id")).await;
                let rows: Vec<&str> = text.lines().collect();
                if rows.len() >= count {
                    return rows.into_iter().map(|row| row.split('|').map(str::to_owned).collect()).collect();
                }
            }
        }
    };
    let found: Vec<Vec<String>> = within(&format!("{count} rows of {table}"), poll).await;
    assert_eq!(found.len(), count, "{found:?}");
    found
}

/// A summary at the eighth turn, and a refusal at the ninth.
#[tokio::test]
async fn a_summary_and_a_refusal_are_archived() {
    let database = PostgresServer::start().await;
    let summary = json!({ "summary_text": "Three piers were ordered.", "key_facts": ["Pier 1 needs 100 planks."],
        "decisions": ["Oak is used."], "open_questions": ["Who delivers?"], "action_items": ["Order the planks."] });
    let summarizer = Summarizer::start(&summary).await;
    let settings = format!("{}{MODELS}[archive]\nurl = \"{}\"\n", summarizer.settings(""), database.url());
    let scene = Scene::start("budgeted-chat", &settings).await;
    let (folded, _) = scene.send("c", &chat(8)).await;
    // Wait, so that the audits are in order: each is written after its response.
    conversation(&scene.tidegate, "c", 1).await;
    let refused = ask(&scene, "even", "c", &longer(&chat(1), 1, 1_000)).await;
    assert_eq!((folded.status, refused.status), (200, 422));

    let columns =
        "session_id, summary_text, key_facts, open_questions, decisions, action_items, covered_messages";
    let expected = [
        "c",
        "Three piers were ordered.",
        "[\"Pier 1 needs 100 planks.\"]",
        "[\"Who delivers?\"]",
        "[\"Oak is used.\"]",
        "[\"Order the planks.\"]",
        "6",
    ];
    assert_eq!(rows(&database, 1, "session_summaries", columns).await, [expected]);
    // The first and the last covered message are rows.
    rows(&database, 17, "agent_context_turns", "id").await;
    let ends = database.psql(
        "SELECT first.raw_message::json->>'content', last.raw_message::json->>'content', s.id IS NOT NULL, s.created_at > now() - interval '1 hour'
         FROM session_summaries s JOIN agent_context_turns first ON first.id = s.from_message_id
         JOIN agent_context_turns last ON last.id = s.to_message_id");
    let (first, last) = (super::chat::question(1), super::chat::answer(3));
    assert_eq!(ends.await, format!("{first}|{last}|t|t"));

    let columns = "session_id, model_alias, model_context_limit, input_budget, estimated_input_tokens_before, \
                   estimated_input_tokens_after_summary, estimated_input_tokens_after_prune, summary_triggered, \
                   prune_triggered, overflow_rejected, status";
    let audits = rows(&database, 2, "turn_context_audit", columns).await;
    let number = |reply, name| figure(reply, name).to_string();
    let (before, after) =
        (number(&folded, "x-tidegate-tokens-before"), number(&folded, "x-tidegate-tokens-after"));
    let budget = number(&folded, "x-tidegate-budget");
    assert_eq!(audits[0], ["c", "gpt-4o", "128000", &budget, &before, &after, &after, "t", "f", "f", "200"]);
    let needed = number(&refused, "x-tidegate-tokens-before");
    assert_eq!(audits[1], ["c", "even", "2530", "1000", &needed, &needed, &needed, "f", "f", "t", "422"]);
    // A turn is identified by its last message; a refused turn has none.
    let turns = "SELECT count(DISTINCT a.turn_id), count(t.id) FROM turn_context_audit a LEFT JOIN agent_context_turns t ON t.id = a.turn_id";
    assert_eq!(database.psql(turns).await, "2|1");
}

/// Two different refusals are two turns, and a retry is not a third.
#[tokio::test]
async fn different_refusals_are_different_turns() {
    let database = PostgresServer::start().await;
    let settings = format!("{MODELS}[archive]\nurl = \"{}\"\n", database.url());
    let scene = Scene::start("budgeted-chat", &settings).await;
    for words in [1_000, 1_001, 1_001] {
        assert_eq!(ask(&scene, "even", "c", &longer(&chat(1), 1, words)).await.status, 422);
    }
    rows(&database, 3, "turn_context_audit", "id").await;
    assert_eq!(database.psql("SELECT count(DISTINCT turn_id) FROM turn_context_audit").await, "2");
}
