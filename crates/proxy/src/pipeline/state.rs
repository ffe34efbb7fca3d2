//! Lets a client read back what is remembered of its conversation.

use crate::host::saved_fold;
use crate::host::shared::Gateway;
use crate::pipeline::identify::identify;
use crate::reply::refusal::Refusal;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use http::{HeaderValue, Method, Response};
use serde_json::{Value, json};
use tidegate_config::Settings;
use tidegate_store::{RawMessage, StoredFold};

/// Whether a request asks for the state of its conversation.
pub(crate) fn is_state(method: &Method, path: &str) -> bool {
    method == Method::GET && path == "/tidegate/v1/conversation"
}

/// The state of the conversation that the headers name, for the tenant that they name: its summary, the messages that no summary covers, and
/// what is pinned to it.
pub(crate) async fn state(
    gateway: &Gateway,
    settings: &Settings,
    headers: &HeaderMap,
) -> Result<Response<Bytes>, Refusal> {
    let identity = identify(headers, &settings.conversation, &gateway.secret, || None)?;
    let Some(identity) = identity else {
        return Err(Refusal::NoConversation { header: settings.conversation.header.clone() });
    };
    let recalled = gateway.conversations.recall(identity.key).await;
    let (history, missing) = gateway.conversations.history(identity.key).await;
    if let Some(degraded) = recalled.degraded.or(missing) {
        return Err(Refusal::Store(degraded));
    }
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

/// Messages as they were recorded.
fn values(messages: &[RawMessage]) -> Vec<Value> {
    messages.iter().filter_map(|one| serde_json::from_slice(&one.json).ok()).collect()
}
