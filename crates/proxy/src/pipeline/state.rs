//! The endpoints of our own: a client reads and deletes what is remembered of its conversation. Nothing below `/tidegate/` is ever
//! forwarded.

use crate::host::identity::Identity;
use crate::host::saved_fold;
use crate::host::shared::Gateway;
use crate::host::worker::Worker;
use crate::pipeline::identify::{Access, credentials, identify, is_known};
use crate::reply::refusal::Refusal;
use crate::transport::overload::{Charge, Limit};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use http::{HeaderValue, Method, Response, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use tidegate_config::Settings;
use tidegate_store::{Degraded, History, Log, RawMessage, Recalled, Records, Room, StoredFold};
use tidegate_summary::Summary;

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
    charge: &Arc<Charge>,
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
    if method == Method::DELETE {
        return delete(gateway, &identity).await;
    }
    let recorded = recorded(gateway, &identity, charge).await.map_err(refusal)?;
    gateway.heavy.admit(settings.server.max_queued_work, true).map_err(Refusal::Overloaded)?;
    let lane = gateway.heavy.lane(credentials(headers, conversation).unwrap_or_default(), charge.clone());
    let (bytes, charge) = (recorded.bytes(), charge.clone());
    // A long conversation takes milliseconds to read.
    let state = lane.run(bytes, move || state(&identity.name, &recorded, &charge)).await;
    let mut response = Response::new(state.unwrap_or(Err(Degraded::Failed)).map_err(refusal)?);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Why what was recorded cannot be returned.
pub(crate) fn refusal(degraded: Degraded) -> Refusal {
    match degraded {
        Degraded::NoRoom => Refusal::Overloaded(Limit::Memory),
        degraded => Refusal::Store(degraded),
    }
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

/// The state of a conversation.
#[derive(Serialize)]
struct State<'a> {
    conversation: &'a str,
    /// What is pinned to it.
    memory: Option<&'a str>,
    summary: Option<Summary>,
    messages: usize,
    covered_messages: usize,
    instructions: Vec<&'a RawValue>,
    /// The messages that no summary covers.
    recent_messages: Vec<&'a RawValue>,
}

/// Describes the state of a conversation in JSON. CPU-bound: must not run on a worker.
fn state(name: &str, recorded: &Recorded, charge: &Arc<Charge>) -> Result<Bytes, Degraded> {
    let Recorded { recalled, .. } = recorded;
    if let Some(degraded) = recalled.degraded {
        return Err(degraded);
    }
    let history = recorded.history(&|bytes| charge.take(bytes))?;
    let place = |fold: &StoredFold| history.messages.iter().position(|one| one.id.0 == fold.covers.0);
    let furthest =
        recalled.folds.iter().filter_map(|fold| Some((place(fold)?, fold))).max_by_key(|(at, _)| *at);
    let covered = furthest.map_or(0, |(at, _)| at + 1);
    let recent = &history.messages[covered..];
    let length: usize = recent.iter().chain(&history.instructions).map(|one| one.json.len()).sum();
    if !charge.take(length as u64) {
        return Err(Degraded::NoRoom);
    }
    let state = State {
        conversation: name,
        memory: recalled.pinned.as_deref(),
        summary: furthest.and_then(|(_, fold)| saved_fold::decode(fold)).map(|fold| fold.state.summary),
        messages: history.messages.len(),
        covered_messages: covered,
        instructions: values(&history.instructions),
        recent_messages: values(recent),
    };
    let mut json = Vec::with_capacity(length + 1024);
    // Writing into memory does not fail.
    serde_json::to_writer(&mut json, &state).map_err(|_| Degraded::Failed)?;
    Ok(charge.kept(json))
}

/// Everything that was said in a conversation.
pub(crate) struct Recorded {
    recalled: Recalled,
    /// The history that is kept here, if it is.
    pub(crate) log: Arc<Log>,
    /// The messages of all branches.
    pub(crate) records: Records,
}

/// Reads what was recorded of a conversation.
pub(crate) async fn recorded(
    gateway: &Gateway,
    identity: &Identity,
    charge: &Arc<Charge>,
) -> Result<Recorded, Degraded> {
    let recalled = gateway.conversations.recall(identity.key).await;
    let records = gateway.conversations.recorded(identity.key).await?;
    if !charge.take(records.bytes()) {
        return Err(Degraded::NoRoom);
    }
    let paying = charge.clone();
    let log = gateway.conversations.log(identity.key, Arc::new(move |bytes| paying.take(bytes))).await?;
    Ok(Recorded { recalled, log, records })
}

impl Recorded {
    /// The messages from the beginning of the conversation to its newest one.
    pub(crate) fn history(&self, room: Room<'_>) -> Result<History, Degraded> {
        if self.log.turns.is_empty() {
            return Ok(History::after(self.records.messages(room)?, &self.recalled));
        }
        let (messages, instructions) = (self.log.messages().cloned(), self.log.instructions());
        Ok(History {
            messages: messages.collect(),
            instructions: instructions.into_iter().cloned().collect(),
        })
    }

    /// About how much there is to read.
    pub(crate) fn bytes(&self) -> usize {
        let log = self.log.messages().map(|message| message.json.len()).sum::<usize>();
        log + usize::try_from(self.records.bytes()).unwrap_or(usize::MAX)
    }
}

/// Messages as they were recorded, but for those that are no JSON.
fn values(messages: &[RawMessage]) -> Vec<&RawValue> {
    messages.iter().filter_map(|one| serde_json::from_slice(&one.json).ok()).collect()
}
