//! What is archived. Times are milliseconds since 1970, token counts are our own estimates unless they say otherwise.

use crate::RowId;

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub enum ArchiveRecord {
    Turn(ArchivedTurn),
    Summary(ArchivedSummary),
    Audit(ArchivedAudit),
}

/// A message, whole: a row of `agent_context_turns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedTurn {
    /// See [`RowId::of_message`].
    pub id: RowId,
    /// The message before it; none for the first one and for instructions. A conversation that was continued twice from
    /// one place has two messages with this one as their parent.
    pub parent_id: Option<RowId>,
    /// What the client calls the conversation.
    pub conversation_id: String,
    /// The key under which the proxy stores it; a column of hexadecimal digits.
    pub conversation: [u8; 16],
    /// Stands for the tenant; says nothing about its credentials.
    pub tenant: String,
    pub route: String,
    /// Which turn of the conversation the message belongs to, where that is known.
    pub turn_number: Option<u32>,
    /// Its index in the request that brought it.
    pub position: u32,
    pub role: String,
    /// The message as JSON, stored byte for byte.
    pub message: String,
    pub estimated_tokens: Option<u64>,
    /// When it was first seen.
    pub at: u64,
}

/// A summary that stands for messages: a row of `session_summaries`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedSummary {
    /// See [`RowId::of_summary`].
    pub id: RowId,
    /// What the client calls the conversation.
    pub session_id: String,
    pub conversation: [u8; 16],
    pub tenant: String,
    pub route: String,
    /// The first and the last message that it covers.
    pub from_message_id: RowId,
    pub to_message_id: RowId,
    pub covered_messages: u32,
    pub summary_text: String,
    pub key_facts: Vec<String>,
    pub decisions: Vec<String>,
    pub open_questions: Vec<String>,
    pub action_items: Vec<String>,
    pub goals: Vec<String>,
    pub artifacts: Vec<String>,
    /// The summarizer that made it, and the model that it asked, if it asked one.
    pub author: String,
    pub model: Option<String>,
    pub estimated_tokens: Option<u64>,
    pub at: u64,
}

/// What was decided about one request and what became of it: a row of `turn_context_audit`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedAudit {
    /// Of this request alone.
    pub id: RowId,
    /// The last message of the request.
    pub turn_id: RowId,
    /// What the client calls the conversation.
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
    /// What the upstream reported, where it did.
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

    /// The table that it goes to.
    #[must_use]
    pub fn table(&self) -> &'static str {
        match self {
            ArchiveRecord::Turn(_) => "agent_context_turns",
            ArchiveRecord::Summary(_) => "session_summaries",
            ArchiveRecord::Audit(_) => "turn_context_audit",
        }
    }

    /// How much memory it takes while it waits, within a few bytes for each list.
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
                let lists = summary
                    .lists()
                    .map(|(_, list)| list.iter().map(|line| line.len() + size_of::<String>()).sum::<usize>());
                all(&[session_id, tenant, route, summary_text, author])
                    + optional(model)
                    + lists.iter().sum::<usize>()
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
    /// With the names of their columns.
    pub(crate) fn lists(&self) -> [(&'static str, &[String]); 6] {
        [
            ("key_facts", &self.key_facts),
            ("decisions", &self.decisions),
            ("open_questions", &self.open_questions),
            ("action_items", &self.action_items),
            ("goals", &self.goals),
            ("artifacts", &self.artifacts),
        ]
    }
}
