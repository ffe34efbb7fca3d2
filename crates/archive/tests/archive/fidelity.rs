//! Rows hold exactly what was recorded.

use super::*;

#[tokio::test]
async fn messages_are_stored_byte_for_byte() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    let large = format!(r#"{{"role":"tool","content":"{}"}}"#, "0123456789ü🦀\\n".repeat(64 * 1024));
    assert!(large.len() > 1024 * 1024);
    let messages = [
        r#"{"role":"user","content":"grüße, 世界, 🦀, \u00e9, e\u0301, \u202e"}"#,
        // jsonb would reject, normalize, sort or drop parts of these.
        r#"{"role":"user","content":"\u0000 \ud800 \udfff\ud800"}"#,
        r#"{ "z" : 1.0e+2 ,"a":123456789012345678901234567890,"a":2e9,	"b":"\/" }"#,
        "{\"role\":\"user\",\r\n\"content\":\"' ; -- $1 $$ \\\\x\"}\n",
        "",
        &large,
    ];
    for (number, message) in (0..).zip(messages) {
        archive.record(ArchiveRecord::Turn(ArchivedTurn { message: message.to_owned(), ..turn(number) }));
    }
    drained(&archive).await;
    let sql =
        "select encode(convert_to(raw_message, 'UTF8'), 'hex') from agent_context_turns order by position";
    let stored = server.psql(sql).await;
    assert_eq!(stored.split('\n').count(), messages.len());
    for (line, message) in stored.split('\n').zip(messages) {
        let hex: String = message.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(line == hex, "{}", &message[..message.len().min(60)]);
    }
    // It can still be queried as JSON.
    let sql = "select raw_message::json ->> 'a' from agent_context_turns where position = 2";
    assert_eq!(server.psql(sql).await, "2e9");
}

#[tokio::test]
async fn every_field_is_stored_in_its_column() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    archive.record(ArchiveRecord::Turn(turn(1)));
    archive.record(ArchiveRecord::Turn(ArchivedTurn {
        parent_id: None,
        turn_number: None,
        estimated_tokens: None,
        ..turn(0)
    }));
    archive.record(ArchiveRecord::Summary(summary(8)));
    archive.record(ArchiveRecord::Audit(audit(1)));
    drained(&archive).await;
    let zone = "set time zone 'UTC'; set extra_float_digits = 1; ";
    let key = "07".repeat(16);
    let at = "2026-01-02 03:04:05.678+00";
    let (first, second) = (message_id(0), message_id(1));
    let place = "0123456789abcdef|default";
    assert_eq!(
        server.psql(&format!("{zone} select * from agent_context_turns order by position")).await,
        format!(
            "{first}||team/a:1|{key}|{place}||0|user|{}||{at}\n\
             {second}|{first}|team/a:1|{key}|{place}|3|1|user|{}|12|{at}",
            turn(0).message,
            turn(1).message
        )
    );
    let (id, last) = (summary(8).id, message_id(8));
    assert_eq!(
        server.psql(&format!("{zone} select * from session_summaries")).await,
        format!(
            "{id}|team/a:1|{first}|{last}|They met.|{at}|{key}|{place}|[\"one \\\"fact\\\"\", \"zwölf\"]|[]|\
             [\"why?\"]|[\"go\"]|[\"arrive\"]|[\"a.rs\"]|small|gpt-5-mini|40|9"
        )
    );
    let id = audit(1).id;
    assert_eq!(
        server.psql(&format!("{zone} select * from turn_context_audit")).await,
        format!(
            "{id}|{second}|team/a:1|gpt-5|8192|5529|6000|5600|5000|t|t|f|{at}|{key}|{place}|hybrid|\
             budget_ratio|4990||1024|0.0125|200|"
        )
    );
}

#[tokio::test]
async fn numbers_beyond_a_columns_range_are_capped() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    archive.record(ArchiveRecord::Turn(ArchivedTurn {
        position: u32::MAX,
        estimated_tokens: Some(u64::MAX),
        at: u64::MAX,
        ..turn(0)
    }));
    drained(&archive).await;
    assert_eq!(archive.stats().rejected, 0);
    let sql = "set time zone 'UTC'; select position, estimated_tokens, created_at from agent_context_turns";
    assert_eq!(server.psql(sql).await, "4294967295|9223372036854775807|9999-12-31 23:59:59.999+00");
}
