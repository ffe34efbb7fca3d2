//! The archive against a real PostgreSQL server: what it stores, and how it handles a server that freezes, dies or rejects records.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod closing;
mod exactly_once;
mod fidelity;
mod log;
mod opening;
mod outage;
mod overflow;
mod rejection;
mod roles;
mod schema;
mod tls;

use std::time::Duration;
use tidegate_archive::{
    Archive, ArchiveOptions, ArchiveRecord, ArchivedAudit, ArchivedSummary, ArchivedTurn, RowId,
};
use tidegate_testkit::{PostgresServer, until};

const KEY: [u8; 16] = [7; 16];

/// 2026-01-02 03:04:05.678 UTC.
const AT: u64 = 1_767_323_045_678;

fn open(url: &str) -> Archive {
    Archive::open(url, ArchiveOptions::default()).unwrap()
}

/// Opens an archive with a short timeout, for tests that wait for it to expire.
fn open_with_short_timeout(url: &str) -> Archive {
    let options = ArchiveOptions { timeout: Duration::from_secs(2), ..ArchiveOptions::default() };
    Archive::open(url, options).unwrap()
}

fn message_id(number: u64) -> RowId {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    RowId::of_message(KEY, digest)
}

fn turn(number: u64) -> ArchivedTurn {
    ArchivedTurn {
        id: message_id(number),
        parent_id: number.checked_sub(1).map(message_id),
        conversation_id: "team/a:1".to_owned(),
        conversation: KEY,
        tenant: "0123456789abcdef".to_owned(),
        route: "default".to_owned(),
        turn_number: Some(3),
        position: u32::try_from(number).unwrap(),
        role: "user".to_owned(),
        message: format!(r#"{{"role":"user","content":"{number}"}}"#),
        estimated_tokens: Some(12),
        at: AT,
    }
}

fn summary(number: u64) -> ArchivedSummary {
    ArchivedSummary {
        id: RowId::of_summary(KEY, [u8::try_from(number % 256).unwrap(); 32]),
        session_id: "team/a:1".to_owned(),
        conversation: KEY,
        tenant: "0123456789abcdef".to_owned(),
        route: "default".to_owned(),
        from_message_id: message_id(0),
        to_message_id: message_id(number),
        covered_messages: 9,
        summary_text: "They met.".to_owned(),
        key_facts: vec!["one \"fact\"".to_owned(), "zwölf".to_owned()],
        decisions: Vec::new(),
        open_questions: vec!["why?".to_owned()],
        action_items: vec!["go".to_owned()],
        goals: vec!["arrive".to_owned()],
        artifacts: vec!["a.rs".to_owned()],
        author: "small".to_owned(),
        model: Some("gpt-5-mini".to_owned()),
        estimated_tokens: Some(40),
        at: AT,
    }
}

fn audit(number: u64) -> ArchivedAudit {
    ArchivedAudit {
        id: RowId((0x1000_0000_0000_0000_u128 + u128::from(number)).to_be_bytes()),
        turn_id: message_id(number),
        session_id: "team/a:1".to_owned(),
        conversation: KEY,
        tenant: "0123456789abcdef".to_owned(),
        route: "default".to_owned(),
        model_alias: "gpt-5".to_owned(),
        model_context_limit: 8192,
        input_budget: 5529,
        estimated_input_tokens_before: 6000,
        estimated_input_tokens_after_summary: 5600,
        estimated_input_tokens_after_prune: 5000,
        summary_triggered: true,
        prune_triggered: true,
        overflow_rejected: false,
        strategy: "hybrid".to_owned(),
        trigger: Some("budget_ratio".to_owned()),
        reported_prompt_tokens: Some(4990),
        reported_completion_tokens: None,
        reported_cached_tokens: Some(1024),
        cost_usd: Some(0.0125),
        status: 200,
        degraded: None,
        at: AT,
    }
}

/// Records the turns with these numbers.
fn record(archive: &Archive, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| archive.record(ArchiveRecord::Turn(turn(number))));
}

/// Waits until the queue is empty.
async fn drained(archive: &Archive) {
    until("the queue is empty", async || archive.stats().queued == 0).await;
}

/// The number of rows, and the number of distinct messages among them.
async fn turns(server: &PostgresServer) -> (usize, usize) {
    let sql = "select count(*), count(distinct raw_message) from agent_context_turns";
    let output = server.psql(sql).await;
    let (rows, messages) = output.split_once('|').unwrap();
    (rows.parse().unwrap(), messages.parse().unwrap())
}
