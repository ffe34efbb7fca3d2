//! Schema migrations.

use super::*;

/// The names and types of the columns, in order.
async fn columns(server: &PostgresServer, table: &str) -> String {
    server
        .psql(&format!(
            "select string_agg(column_name || ' ' || data_type, ', ' order by ordinal_position) \
             from information_schema.columns where table_schema = 'public' and table_name = '{table}'"
        ))
        .await
}

#[tokio::test]
async fn an_empty_database_gets_all_tables_and_columns() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    until("the archive connects", async || archive.stats().connected).await;
    assert_eq!(
        columns(&server, "agent_context_turns").await,
        "id uuid, parent_id uuid, conversation_id text, conversation_key text, tenant text, route text, \
         turn_number bigint, position bigint, role text, raw_message text, estimated_tokens bigint, \
         created_at timestamp with time zone"
    );
    assert_eq!(
        columns(&server, "session_summaries").await,
        "id uuid, session_id text, from_message_id uuid, to_message_id uuid, summary_text text, \
         created_at timestamp with time zone, \
         conversation_key text, tenant text, route text, key_facts jsonb, decisions jsonb, \
         open_questions jsonb, action_items jsonb, goals jsonb, artifacts jsonb, author text, model text, \
         estimated_tokens bigint, covered_messages bigint"
    );
    assert_eq!(
        columns(&server, "turn_context_audit").await,
        "id uuid, turn_id uuid, session_id text, model_alias text, model_context_limit bigint, \
         input_budget bigint, estimated_input_tokens_before bigint, \
         estimated_input_tokens_after_summary bigint, estimated_input_tokens_after_prune bigint, \
         summary_triggered boolean, prune_triggered boolean, overflow_rejected boolean, \
         created_at timestamp with time zone, \
         conversation_key text, tenant text, route text, strategy text, trigger text, \
         reported_prompt_tokens bigint, reported_completion_tokens bigint, reported_cached_tokens bigint, \
         cost_usd double precision, status integer, degraded text"
    );
    assert_eq!(server.psql("select version from tidegate_schema").await, "1");
    let name = "select count(*) from pg_stat_activity where application_name = 'tidegate'";
    assert_eq!(server.psql(name).await, "1");
}

#[tokio::test]
async fn concurrent_archives_migrate_once() {
    let server = PostgresServer::start().await;
    let archives: Vec<Archive> = (0..8).map(|_| open(&server.url())).collect();
    for (number, archive) in (0..).zip(&archives) {
        record(archive, number..number + 2);
    }
    for archive in &archives {
        drained(archive).await;
        let stats = archive.stats();
        assert_eq!((stats.written, stats.failed_batches, stats.error), (2, 0, None));
    }
    assert_eq!(server.psql("select version from tidegate_schema").await, "1");
    assert_eq!(turns(&server).await, (9, 9));
}

#[tokio::test]
async fn existing_tables_and_rows_are_kept() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    record(&archive, 0..3);
    assert_eq!(archive.close(Duration::from_secs(30)).await, 0);
    // As if an operator had created the tables by hand.
    server.psql("drop table tidegate_schema; alter table agent_context_turns add column note text").await;
    let archive = open(&server.url());
    record(&archive, 2..5);
    drained(&archive).await;
    assert_eq!(archive.stats().written, 3);
    assert_eq!(turns(&server).await, (5, 5));
    assert_eq!(server.psql("select version from tidegate_schema").await, "1");
}

#[tokio::test]
async fn a_newer_schema_disables_the_archive() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    record(&archive, 0..3);
    drained(&archive).await;
    server.psql("insert into tidegate_schema (version) values (99)").await;
    let older = open(&server.url());
    record(&older, 3..10);
    until("the archive is disabled", async || older.stats().error == Some("archive_newer")).await;
    drained(&older).await;
    record(&older, 10..15);
    let stats = older.stats();
    assert_eq!((stats.written, stats.dropped, stats.queued, stats.connected), (0, 12, 0, false));
    assert_eq!(older.close(Duration::from_secs(30)).await, 7);
    assert_eq!(turns(&server).await, (3, 3));
    assert_eq!(server.psql("select max(version) from tidegate_schema").await, "99");
}

#[tokio::test]
async fn a_database_with_a_narrow_encoding_disables_the_archive() {
    let server = PostgresServer::start().await;
    server.psql("create database latin encoding 'LATIN1' template template0").await;
    let url = server.url();
    let archive = open(&format!("{}/latin", url.strip_suffix("/postgres").unwrap()));
    record(&archive, 0..1);
    until("the archive is disabled", async || archive.stats().error == Some("archive_encoding")).await;
    drained(&archive).await;
    assert_eq!(archive.stats().dropped, 1);
}
