//! The archived records. Times are in milliseconds since the Unix epoch. Token counts are our own estimates unless noted.

use crate::RowId;

/// One row of one of the tables.
#[derive(Clone, Debug, PartialEq)]
pub enum ArchiveRecord {
    Turn(ArchivedTurn),
    Summary(ArchivedSummary),
    Audit(ArchivedAudit),
}

/// A message: a row of `agent_context_turns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedTurn {
    /// See [`RowId::of_message`].
    pub id: RowId,
    /// The preceding message; `None` for the first message and for instructions. If a conversation branches, several messages
    /// share a parent.
    pub parent_id: Option<RowId>,
    /// The client's name for the conversation.
    pub conversation_id: String,
    /// The store's key of the conversation, archived as hexadecimal digits.
    pub conversation: [u8; 16],
    /// An identifier of the tenant that reveals nothing about its credentials.
    pub tenant: String,
    pub route: String,
    /// The turn of the conversation that the message belongs to, if known.
    pub turn_number: Option<u32>,
    /// Its index in the request that introduced it.
    pub position: u32,
    pub role: String,
    /// The message as JSON, stored byte for byte.
    pub message: String,
    pub estimated_tokens: Option<u64>,
    /// When it was first seen.
    pub at: u64,
}

/// A summary that replaces messages: a row of `session_summaries`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedSummary {
    /// See [`RowId::of_summary`].
    pub id: RowId,
    /// The client's name for the conversation.
    pub session_id: String,
    pub conversation: [u8; 16],
    pub tenant: String,
    pub route: String,
    /// The first message that it covers.
    pub from_message_id: RowId,
    /// The last message that it covers.
    pub to_message_id: RowId,
    pub covered_messages: u32,
    pub summary_text: String,
    pub key_facts: Vec<String>,
    pub decisions: Vec<String>,
    pub open_questions: Vec<String>,
    pub action_items: Vec<String>,
    pub goals: Vec<String>,
    pub artifacts: Vec<String>,
    /// The summarizer that made it.
    pub author: String,
    /// The model that the summarizer used, if any.
    pub model: Option<String>,
    pub estimated_tokens: Option<u64>,
    pub at: u64,
}

/// The decisions about one request and its outcome: a row of `turn_context_audit`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedAudit {
    /// Unique to this request.
    pub id: RowId,
    /// The last message of the request.
    pub turn_id: RowId,
    /// The client's name for the conversation.
    pub session_id: String,
    pub conversation: [u8; 16],
    pub tenant: String,
    pub route: String,
    /// The model as the client named it.
    pub model_alias: String,
    pub model_context_limit: u64,
    pub input_budget: u64,
    pub estimated_input_tokens_before: u64,
    pub estimated_input_tokens_after_summary: u64,
    pub estimated_input_tokens_after_prune: u64,
    pub summary_triggered: bool,
    pub prune_triggered: bool,
    pub overflow_rejected: bool,
    pub strategy: String,
    pub trigger: Option<String>,
    /// Token usage as reported by the upstream, if it did.
    pub reported_prompt_tokens: Option<u64>,
    pub reported_completion_tokens: Option<u64>,
    pub reported_cached_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// The HTTP status that the client saw.
    pub status: u16,
    pub degraded: Option<String>,
    pub at: u64,
}

impl ArchiveRecord {
    #[must_use]
    pub fn id(&self) -> RowId {
        match self {
            ArchiveRecord::Turn(turn) => turn.id,
            ArchiveRecord::Summary(summary) => summary.id,
            ArchiveRecord::Audit(audit) => audit.id,
        }
    }

    /// The table that the record belongs to.
    #[must_use]
    pub fn table(&self) -> &'static str {
        match self {
            ArchiveRecord::Turn(_) => "agent_context_turns",
            ArchiveRecord::Summary(_) => "session_summaries",
            ArchiveRecord::Audit(_) => "turn_context_audit",
        }
    }

    /// Approximately how much memory the record takes.
    pub(crate) fn size(&self) -> usize {
        let all = |texts: &[&str]| texts.iter().map(|text| text.len()).sum::<usize>();
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let texts = match self {
            ArchiveRecord::Turn(turn) => {
                let ArchivedTurn { conversation_id, tenant, route, role, message, .. } = turn;
                all(&[conversation_id, tenant, route, role, message])
            }
            ArchiveRecord::Summary(summary) => {
                let ArchivedSummary { session_id, tenant, route, summary_text, author, model, .. } = summary;
                let lines = summary.lists().into_iter().flatten();
                all(&[session_id, tenant, route, summary_text, author])
                    + optional(model)
                    + lines.map(|line| line.len() + size_of::<String>()).sum::<usize>()
            }
            ArchiveRecord::Audit(audit) => {
                let ArchivedAudit { session_id, tenant, route, model_alias, strategy, .. } = audit;
                all(&[session_id, tenant, route, model_alias, strategy])
                    + optional(&audit.trigger)
                    + optional(&audit.degraded)
            }
        };
        texts + size_of::<ArchiveRecord>()
    }
}

impl ArchivedSummary {
    fn lists(&self) -> [&[String]; 6] {
        [
            &self.key_facts,
            &self.decisions,
            &self.open_questions,
            &self.action_items,
            &self.goals,
            &self.artifacts,
        ]
    }
}
