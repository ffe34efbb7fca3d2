//! The endpoints of our own: a client reads and deletes what is remembered of its conversation. Nothing below `/tidegate/` is ever
//! forwarded.

use crate::host::identity::Identity;
use crate::host::saved_fold;
use crate::host::shared::Gateway;
use crate::host::worker::Worker;
use crate::pipeline::identify::{Access, identify, is_known};
use crate::reply::refusal::Refusal;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};
use tidegate_config::Settings;
use tidegate_store::{Degraded, History, RawMessage, Recalled, StoredFold};

/// Whether a path is ours. `path` is canonical.
pub(crate) fn is_own(path: &str) -> bool {
    path.strip_prefix("/tidegate").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request to a path of ours.
pub(crate) async fn answer(
    worker: &Worker,
    settings: &Settings,
    (method, path): (&Method, &str),
    headers: &HeaderMap,
) -> Result<Response<Bytes>, Refusal> {
    if path != "/tidegate/v1/conversation" || ![Method::GET, Method::HEAD, Method::DELETE].contains(method) {
        return Err(Refusal::NotFound);
    }
    let (gateway, conversation, access) = (&worker.gateway, &settings.conversation, Access::of(worker));
    if !is_known(headers, conversation, access) {
        return Err(Refusal::NoCredentials);
    }
    let identity = identify(headers, conversation, &gateway.secret, access, &[], None)?;
    let Some(identity) = identity else {
        return Err(Refusal::NoConversation { header: settings.conversation.header.clone() });
    };
    if method == Method::DELETE { delete(gateway, &identity).await } else { state(gateway, &identity).await }
}

/// Deletes the conversation that the headers name, for the tenant that they name.
async fn delete(gateway: &Gateway, identity: &Identity) -> Result<Response<Bytes>, Refusal> {
    match gateway.conversations.delete(identity.key).await {
        Ok(true) => {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok(response)
        }
        Ok(false) => Err(Refusal::NotFound),
        Err(error) => Err(Refusal::History(Degraded::from(&error))),
    }
}

/// The state of the conversation that the headers name, for the tenant that they name: its summary, the messages that no summary covers, and
/// what is pinned to it.
async fn state(gateway: &Gateway, identity: &Identity) -> Result<Response<Bytes>, Refusal> {
    let recalled = gateway.conversations.recall(identity.key).await;
    if let Some(degraded) = recalled.degraded {
        return Err(Refusal::Store(degraded));
    }
    let history = history(gateway, identity, &recalled).await.map_err(Refusal::Store)?;
    let place = |fold: &StoredFold| history.messages.iter().position(|one| one.id.0 == fold.covers.0);
    let furthest =
        recalled.folds.iter().filter_map(|fold| Some((place(fold)?, fold))).max_by_key(|(at, _)| *at);
    let summary = furthest.and_then(|(_, fold)| saved_fold::decode(fold)).map(|fold| fold.state.summary);
    let recent = &history.messages[furthest.map_or(0, |(at, _)| at + 1)..];
    let state = json!({
        "conversation": identity.name,
        "memory": recalled.pinned.as_deref(),
        "summary": summary,
        "messages": history.messages.len(),
        "covered_messages": furthest.map_or(0, |(at, _)| at + 1),
        "instructions": values(&history.instructions),
        "recent_messages": values(recent),
    });
    let mut response = Response::new(state.to_string().into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The history that is kept here, or else what was recorded of the client's.
async fn history(gateway: &Gateway, identity: &Identity, recalled: &Recalled) -> Result<History, Degraded> {
    let log = gateway.conversations.log(identity.key).await?;
    if log.turns.is_empty() {
        return gateway.conversations.history(identity.key, recalled).await;
    }
    Ok(History {
        messages: log.messages().cloned().collect(),
        instructions: log.instructions().into_iter().cloned().collect(),
    })
}

/// What was recorded of a conversation.
pub(crate) struct Recorded {
    /// The messages from its beginning to its newest one.
    pub(crate) path: Vec<RawMessage>,
    /// Those of all its branches.
    pub(crate) all: Vec<RawMessage>,
}

/// Reads everything that was said in a conversation.
pub(crate) async fn recorded(gateway: &Gateway, identity: &Identity) -> Result<Recorded, Degraded> {
    let recalled = gateway.conversations.recall(identity.key).await;
    let all = gateway.conversations.recorded(identity.key).await?;
    let log = gateway.conversations.log(identity.key).await?;
    let path = if log.turns.is_empty() {
        History::after(all.clone(), &recalled).messages
    } else {
        log.messages().cloned().collect()
    };
    Ok(Recorded { path, all })
}

/// Messages as they were recorded.
fn values(messages: &[RawMessage]) -> Vec<Value> {
    messages.iter().filter_map(|one| serde_json::from_slice(&one.json).ok()).collect()
}
