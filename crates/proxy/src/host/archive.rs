//! Writes the messages, summaries and audits of requests to the archive.

use crate::host::identity::Identity;
use crate::observe::request_id::unique;
use tidegate_archive::{Archive, ArchiveRecord, ArchivedAudit, ArchivedSummary, ArchivedTurn, RowId};
use tidegate_context::{Figures, FoldState, TurnRecord};
use tidegate_engine::{Digest, Tokens};
use tidegate_store::{Entries, MessageId, RawMessage, StoredFold};
use tidegate_summary::Entry;
use tidegate_wire::Dialect;

/// Archives every new message, instructions too.
pub(crate) fn messages(archive: &Archive, identity: &Identity, route: &str, entries: &Entries) {
    let Entries { instructions, messages, .. } = entries;
    for message in instructions.iter().chain(messages) {
        archive.record(ArchiveRecord::Turn(turn(identity, route, message)));
    }
}

/// Archives one message that the next request may not bring.
pub(crate) fn message(archive: &Archive, identity: &Identity, route: &str, message: &RawMessage) {
    archive.record(ArchiveRecord::Turn(turn(identity, route, message)));
}

fn turn(identity: &Identity, route: &str, message: &RawMessage) -> ArchivedTurn {
    let row = |id: MessageId| RowId::of_message(identity.key.0, id.0);
    let parent = Some(message.parent).filter(|parent| parent.0 != Digest::default().0);
    ArchivedTurn {
        id: row(message.id),
        parent_id: parent.map(row),
        conversation_id: identity.name.clone(),
        conversation: identity.key.0,
        tenant: identity.tenant.clone(),
        route: route.to_owned(),
        turn_number: None,
        position: message.position,
        role: role(&message.json),
        // What was read as a message is valid UTF-8.
        message: String::from_utf8_lossy(&message.json).into_owned(),
        estimated_tokens: None,
        at: message.at,
    }
}

fn role(json: &[u8]) -> String {
    let dialect = Dialect::of_recorded(json);
    let view = dialect.read_message(dialect.sent(json)).ok();
    view.and_then(|view| view.role.map(|role| role.into_owned())).unwrap_or_default()
}

/// Archives a summary with the range that it covers.
pub(crate) fn summary(
    archive: &Archive,
    identity: &Identity,
    route: &str,
    (fold, state): (&StoredFold, &FoldState),
    first: Digest,
    cost: Tokens,
) {
    let (summary, author) = (&state.summary, state.author.model.as_str());
    let row = |digest: Digest| RowId::of_message(identity.key.0, digest.0);
    let texts = |entries: &[Entry]| entries.iter().map(|entry| entry.text.clone()).collect();
    archive.record(ArchiveRecord::Summary(ArchivedSummary {
        id: RowId::of_summary(identity.key.0, fold.covers.0),
        session_id: identity.name.clone(),
        conversation: identity.key.0,
        tenant: identity.tenant.clone(),
        route: route.to_owned(),
        from_message_id: row(first),
        to_message_id: row(fold.covers),
        covered_messages: fold.covered,
        summary_text: summary.summary_text.clone(),
        key_facts: texts(&summary.key_facts),
        decisions: texts(&summary.decisions),
        open_questions: texts(&summary.open_questions),
        action_items: texts(&summary.action_items),
        goals: texts(&summary.goals),
        artifacts: texts(&summary.artifacts),
        author: author.to_owned(),
        model: Some(author.to_owned()).filter(|author| author != "extractive"),
        estimated_tokens: Some(cost.0),
        at: fold.at.0,
    }));
}

/// What was decided about a request, and how it ended.
pub(crate) fn audit(
    archive: &Archive,
    identity: &Identity,
    end: Option<Digest>,
    figures: &Figures,
    turn: &TurnRecord,
) {
    let end = end.unwrap_or_default();
    archive.record(ArchiveRecord::Audit(ArchivedAudit {
        id: RowId(unique().to_be_bytes()),
        turn_id: RowId::of_message(identity.key.0, end.0),
        session_id: identity.name.clone(),
        conversation: identity.key.0,
        tenant: identity.tenant.clone(),
        route: turn.route.clone(),
        model_alias: turn.model.clone(),
        model_context_limit: figures.budget.window.tokens().unwrap_or_default().0,
        input_budget: figures.budget.input.unwrap_or_default().0,
        estimated_input_tokens_before: figures.before.0,
        estimated_input_tokens_after_summary: figures.after_summary().0,
        estimated_input_tokens_after_prune: figures.after.0,
        summary_triggered: figures.made.is_some(),
        prune_triggered: figures.has_pruned(),
        overflow_rejected: turn.overflow_rejected,
        strategy: turn.strategy.clone(),
        trigger: figures.trigger.map(|cause| cause.name().to_owned()),
        reported_prompt_tokens: turn.prompt_tokens,
        reported_completion_tokens: turn.completion_tokens,
        reported_cached_tokens: turn.cached_tokens,
        cost_usd: turn.cost_usd,
        status: turn.status,
        degraded: turn.degraded.clone(),
        at: turn.at,
    }));
}
