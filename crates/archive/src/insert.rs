//! Turns records into inserts: one statement per table, however many rows it has.

use crate::column::{Column, Rows};
use crate::record::{ArchiveRecord, ArchivedAudit, ArchivedSummary, ArchivedTurn};
use std::fmt::Write;
use tokio_postgres::types::{ToSql, Type};

/// A statement that inserts the rows that do not exist yet.
pub(crate) struct Insert<'a> {
    table: &'static str,
    columns: Vec<Column<'a>>,
}

/// Builds one insert for each table that has rows among `records`.
pub(crate) fn inserts<'a>(records: impl Iterator<Item = &'a ArchiveRecord>) -> Vec<Insert<'a>> {
    let (mut turns, mut summaries, mut audits) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match record {
            ArchiveRecord::Turn(turn) => turns.push(turn),
            ArchiveRecord::Summary(summary) => summaries.push(summary),
            ArchiveRecord::Audit(audit) => audits.push(audit),
        }
    }
    // An insert waits for a concurrent transaction that inserts the same row. A fixed order prevents deadlocks.
    turns.sort_by_key(|turn| turn.id);
    summaries.sort_by_key(|summary| summary.id);
    audits.sort_by_key(|audit| audit.id);
    let mut inserts = Vec::with_capacity(3);
    if !turns.is_empty() {
        inserts.push(Insert { table: "agent_context_turns", columns: turn_columns(&Rows(turns)) });
    }
    if !summaries.is_empty() {
        inserts.push(Insert { table: "session_summaries", columns: summary_columns(&Rows(summaries)) });
    }
    if !audits.is_empty() {
        inserts.push(Insert { table: "turn_context_audit", columns: audit_columns(&Rows(audits)) });
    }
    inserts
}

impl Insert<'_> {
    /// `ON CONFLICT` names no column: naming one requires the `SELECT` privilege, which the role may lack.
    pub(crate) fn sql(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        let mut sql = format!("INSERT INTO {} ({}) SELECT * FROM unnest(", self.table, names.join(", "));
        for number in 1..=self.columns.len() {
            let comma = if number == 1 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(sql, "{comma}${number}");
        }
        sql.push_str(") ON CONFLICT DO NOTHING");
        sql
    }

    pub(crate) fn parameters(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.columns
            .iter()
            .map(|column| (&*column.values as &(dyn ToSql + Sync), column.kind.clone()))
            .collect()
    }
}

fn turn_columns<'a>(rows: &Rows<'a, ArchivedTurn>) -> Vec<Column<'a>> {
    vec![
        rows.id("id", |turn| turn.id),
        rows.optional_id("parent_id", |turn| turn.parent_id),
        rows.text("conversation_id", |turn| &turn.conversation_id),
        rows.hex("conversation_key", |turn| turn.conversation),
        rows.text("tenant", |turn| &turn.tenant),
        rows.text("route", |turn| &turn.route),
        rows.optional_number("turn_number", |turn| turn.turn_number.map(u64::from)),
        rows.number("position", |turn| turn.position.into()),
        rows.text("role", |turn| &turn.role),
        rows.raw("raw_message", |turn| &turn.message),
        rows.optional_number("estimated_tokens", |turn| turn.estimated_tokens),
        rows.time("created_at", |turn| turn.at),
    ]
}

fn summary_columns<'a>(rows: &Rows<'a, ArchivedSummary>) -> Vec<Column<'a>> {
    vec![
        rows.id("id", |summary| summary.id),
        rows.text("session_id", |summary| &summary.session_id),
        rows.id("from_message_id", |summary| summary.from_message_id),
        rows.id("to_message_id", |summary| summary.to_message_id),
        rows.text("summary_text", |summary| &summary.summary_text),
        rows.time("created_at", |summary| summary.at),
        rows.hex("conversation_key", |summary| summary.conversation),
        rows.text("tenant", |summary| &summary.tenant),
        rows.text("route", |summary| &summary.route),
        rows.list("key_facts", |summary| &summary.key_facts),
        rows.list("decisions", |summary| &summary.decisions),
        rows.list("open_questions", |summary| &summary.open_questions),
        rows.list("action_items", |summary| &summary.action_items),
        rows.list("goals", |summary| &summary.goals),
        rows.list("artifacts", |summary| &summary.artifacts),
        rows.text("author", |summary| &summary.author),
        rows.optional_text("model", |summary| summary.model.as_ref()),
        rows.optional_number("estimated_tokens", |summary| summary.estimated_tokens),
        rows.number("covered_messages", |summary| summary.covered_messages.into()),
    ]
}

fn audit_columns<'a>(rows: &Rows<'a, ArchivedAudit>) -> Vec<Column<'a>> {
    vec![
        rows.id("id", |audit| audit.id),
        rows.id("turn_id", |audit| audit.turn_id),
        rows.text("session_id", |audit| &audit.session_id),
        rows.text("model_alias", |audit| &audit.model_alias),
        rows.number("model_context_limit", |audit| audit.model_context_limit),
        rows.number("input_budget", |audit| audit.input_budget),
        rows.number("estimated_input_tokens_before", |audit| audit.estimated_input_tokens_before),
        rows.number("estimated_input_tokens_after_summary", |audit| {
            audit.estimated_input_tokens_after_summary
        }),
        rows.number("estimated_input_tokens_after_prune", |audit| audit.estimated_input_tokens_after_prune),
        rows.flag("summary_triggered", |audit| audit.summary_triggered),
        rows.flag("prune_triggered", |audit| audit.prune_triggered),
        rows.flag("overflow_rejected", |audit| audit.overflow_rejected),
        rows.time("created_at", |audit| audit.at),
        rows.hex("conversation_key", |audit| audit.conversation),
        rows.text("tenant", |audit| &audit.tenant),
        rows.text("route", |audit| &audit.route),
        rows.text("strategy", |audit| &audit.strategy),
        rows.optional_text("trigger", |audit| audit.trigger.as_ref()),
        rows.optional_number("reported_prompt_tokens", |audit| audit.reported_prompt_tokens),
        rows.optional_number("reported_completion_tokens", |audit| audit.reported_completion_tokens),
        rows.optional_number("reported_cached_tokens", |audit| audit.reported_cached_tokens),
        rows.optional_fraction("cost_usd", |audit| audit.cost_usd),
        rows.small_number("status", |audit| audit.status),
        rows.optional_text("degraded", |audit| audit.degraded.as_ref()),
    ]
}
