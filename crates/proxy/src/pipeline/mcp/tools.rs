//! The tools of the MCP server, answered from what was recorded of a conversation.

use super::protocol::RpcError;
use crate::host::heavy::Lane;
use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use crate::pipeline::state::{Recorded, recorded, refusal};
use crate::reply::refusal::Refusal;
use crate::transport::overload::Charge;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::Arc;
use tidegate_context::{Original, RecallRequest, search_originals, unknown_reference};
use tidegate_engine::{Digest, Reference};
use tidegate_store::{Degraded, RawMessage, Room};
use tidegate_wire::{Content, Dialect, MessageView, Part};

/// Who calls a tool.
pub(super) struct Caller<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    pub(super) lane: Lane,
    pub(super) charge: &'a Arc<Charge>,
    pub(super) most_queued: NonZeroU32,
    /// The conversation that the headers name.
    pub(super) identity: Option<Identity>,
    /// The header that would name it.
    pub(super) header: &'a str,
}

const DEFAULT_PASSAGES: u64 = 8;
const MAX_PASSAGES: u64 = 20;

/// The tools that there are.
pub(super) fn definitions() -> Value {
    // The schema is a constant, and a test parses it.
    let recall: Value = serde_json::from_str(RecallRequest::SCHEMA).unwrap_or_default();
    let search = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "Words that the passages have in common with what you look for." },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_PASSAGES, "description": "The most passages. Default: 8." }
        },
        "required": ["query"]
    });
    json!([
        {
            "name": "recall",
            "title": "Recall a shortened message",
            "description": "Returns the original of a message of this conversation that was shortened, by the reference in its marker: whole, \
                            by lines, or the passages that match a query.",
            "inputSchema": recall,
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        {
            "name": "search_history",
            "title": "Search this conversation",
            "description": "Finds passages of this conversation, whether they are still in context or not, each with the reference of its \
                            message.",
            "inputSchema": search,
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
    ])
}

/// Calls a tool. What the model can do something about is a result, so that it reads it.
pub(super) async fn call(caller: &Caller<'_>, params: &Value) -> Result<Result<Value, RpcError>, Refusal> {
    let name = params["name"].as_str().unwrap_or_default();
    let arguments = &params["arguments"];
    let question = match name {
        "recall" => RecallRequest::read(&arguments.to_string())
            .map(Question::Recall)
            .map_err(|error| error.to_string()),
        "search_history" => search(arguments),
        _ => return Ok(Err(RpcError::NoTool(name.to_owned()))),
    };
    let text = match question {
        Ok(question) => answer(caller, question).await?,
        Err(fault) => Err(fault),
    };
    let is_error = text.is_err();
    let (Ok(text) | Err(text)) = text;
    Ok(Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })))
}

enum Question {
    Recall(RecallRequest),
    Search { query: String, limit: usize },
}

fn search(arguments: &Value) -> Result<Question, String> {
    let query = arguments["query"].as_str().map(str::trim).filter(|query| !query.is_empty());
    let query = query.ok_or("`query` must be a text with the words to look for.")?.to_owned();
    let limit = arguments["limit"].as_u64().unwrap_or(DEFAULT_PASSAGES).clamp(1, MAX_PASSAGES);
    // It is at most twenty.
    Ok(Question::Search { query, limit: limit as usize })
}

async fn answer(caller: &Caller<'_>, question: Question) -> Result<Result<String, String>, Refusal> {
    let Caller { gateway, lane, charge, .. } = caller;
    let Some(identity) = &caller.identity else {
        let header = caller.header;
        return Ok(Err(format!(
            "The MCP client does not say which conversation it belongs to. It must send the header `{header}` with the value that the \
             agent's requests have."
        )));
    };
    if !gateway.conversations.records_messages() {
        return Ok(Err(
            "Nothing is recorded here (`store.raw = false`), so nothing can be returned.".to_owned()
        ));
    }
    let recorded = match recorded(gateway, identity, charge).await {
        Ok(recorded) => recorded,
        Err(degraded) => return unavailable(degraded),
    };
    gateway.heavy.admit(caller.most_queued, true).map_err(Refusal::Overloaded)?;
    let charge = (*charge).clone();
    // A long conversation takes milliseconds to read.
    let found = lane.run(recorded.bytes(), move || {
        let room: Room<'_> = &|bytes| charge.take(bytes);
        match question {
            Question::Recall(request) => recall(&request, &recorded, room),
            Question::Search { query, limit } => {
                let history = recorded.history(room)?;
                let originals: Vec<Original> = history.messages.iter().filter_map(original).collect();
                Ok(Ok(search_originals(&originals, &query, limit)))
            }
        }
    });
    match found.await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(degraded)) => unavailable(degraded),
        Err(_) => Ok(Err("The record cannot be read.".to_owned())),
    }
}

/// Tells the model why there is no answer. That there is no memory is for its client, which asks again.
fn unavailable(degraded: Degraded) -> Result<Result<String, String>, Refusal> {
    match degraded {
        Degraded::NoRoom => Err(refusal(degraded)),
        degraded => Ok(Err(format!(
            "What was recorded cannot be read at the moment ({}). Try again later.",
            degraded.reason()
        ))),
    }
}

/// Looks among all messages, because an agent's helpers may share its conversation without sharing its history.
fn recall(
    request: &RecallRequest,
    recorded: &Recorded,
    room: Room<'_>,
) -> Result<Result<String, String>, Degraded> {
    let is_meant = |message: &&RawMessage| request.reference.is_of(Digest(message.id.0));
    let mut found = recorded.log.messages().find(is_meant).and_then(original);
    if found.is_none() {
        // The others stay compressed.
        let meant = recorded.records.those(|id| request.reference.is_of(Digest(id.0)), room)?;
        found = meant.first().and_then(original);
    }
    Ok(found.map(|found| request.answer(&found.text)).ok_or_else(|| unknown_reference(request.reference)))
}

fn original(message: &RawMessage) -> Option<Original> {
    let dialect = Dialect::of_recorded(&message.json);
    let view = read(dialect, &message.json)?;
    Some(Original {
        reference: Reference::of(Digest(message.id.0)),
        speaker: view.role.as_deref().unwrap_or("agent").to_owned(),
        text: view.text().into_owned(),
    })
}

/// Chat completions and Anthropic's messages look the same but for the kinds of their parts, so only a part that the one does not know
/// tells that it is the other.
fn read(dialect: Dialect, json: &[u8]) -> Option<MessageView<'_>> {
    let view = dialect.read_message(dialect.sent(json)).ok()?;
    let is_other = |part: &Part<'_>| matches!(part, Part::Other(_));
    let has_other = match &view.content {
        Content::Parts(parts) => dialect == Dialect::Chat && parts.iter().any(is_other),
        Content::Absent | Content::Null | Content::Text(_) | Content::Unexpected(_) => false,
    };
    let other = has_other.then(|| Dialect::Messages.read_message(json).ok()).flatten();
    Some(other.unwrap_or(view))
}
