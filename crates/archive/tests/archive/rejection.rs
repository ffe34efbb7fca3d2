//! Records that the database rejects.

use super::*;
use crate::log::Log;

#[tokio::test]
async fn only_the_rejected_record_is_skipped() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    until("the archive connects", async || archive.stats().connected).await;
    server.psql("alter table turn_context_audit add constraint known_model check (model_alias <> 'x')").await;
    let log = Log::capture();
    for number in 0..1500 {
        // PostgreSQL text cannot hold NUL. Valid JSON never contains it unescaped.
        let message = if number == 700 { "the-canary\0".to_owned() } else { turn(number).message };
        archive.record(ArchiveRecord::Turn(ArchivedTurn { message, ..turn(number) }));
        if number % 100 == 0 {
            let model_alias = if number == 300 { "x" } else { "gpt-5" }.to_owned();
            archive.record(ArchiveRecord::Audit(ArchivedAudit { model_alias, ..audit(number) }));
        }
    }
    drained(&archive).await;
    let stats = archive.stats();
    assert_eq!((stats.written, stats.rejected, stats.dropped), (1499 + 14, 2, 0));
    assert_eq!((stats.connected, stats.error), (true, None));
    assert_eq!(turns(&server).await, (1499, 1499));
    assert_eq!(server.psql("select count(*) from agent_context_turns where position = 700").await, "0");
    assert_eq!(server.psql("select count(*) from turn_context_audit").await, "14");

    let text = log.text();
    for expected in ["agent_context_turns", "SQLSTATE 22021", "SQLSTATE 23514, constraint `known_model`"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(text.contains(&message_id(700).to_string()), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test]
async fn all_rejected_records_are_counted_and_few_are_logged() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    until("the archive connects", async || archive.stats().connected).await;
    server
        .psql(
            "create function refuse() returns trigger language plpgsql as \
             $$ begin raise exception 'no: %', new.raw_message; end $$; \
             create trigger refuse before insert on agent_context_turns for each row execute function refuse()",
        )
        .await;
    let log = Log::capture();
    record(&archive, 0..100);
    drained(&archive).await;
    assert_eq!((archive.stats().rejected, archive.stats().written), (100, 0));
    let text = log.text();
    let lines = text.lines().filter(|line| line.contains("archive rejected a record")).count();
    // The 1st, 2nd, 4th and so on.
    assert_eq!(lines, 7, "{text}");
    assert!(!text.contains("content"), "{text}");
}

#[tokio::test]
async fn nul_characters_in_summaries_and_names_are_replaced() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    let summary_with_nul =
        ArchivedSummary { summary_text: "a\0b".to_owned(), key_facts: vec!["\0".to_owned()], ..summary(1) };
    archive.record(ArchiveRecord::Summary(summary_with_nul));
    archive.record(ArchiveRecord::Audit(ArchivedAudit { model_alias: "m\0".to_owned(), ..audit(1) }));
    drained(&archive).await;
    assert_eq!((archive.stats().written, archive.stats().rejected), (2, 0));
    assert_eq!(
        server.psql("select summary_text, key_facts from session_summaries").await,
        "a\u{fffd}b|[\"\u{fffd}\"]"
    );
    assert_eq!(server.psql("select model_alias from turn_context_audit").await, "m\u{fffd}");
}
