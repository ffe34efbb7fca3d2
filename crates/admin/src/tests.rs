//! Questions and answers over the code that both the address and the command use.

mod configuration;
mod explaining;
mod finding;
mod memory;
mod overview;
mod probes;
mod reading;
mod sessions;
mod summaries;
mod turn;
mod turns;

use crate::desk::Desk;
use crate::{Admin, AdminError, Readiness, Reloads};
use http::{Method, Request};
use http_body_util::{BodyExt, Either, Full};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Flags, Source, load};
use tidegate_context::{TurnRecord, encode_turn};
use tidegate_store::{ConversationKey, Conversations, MemoryStore, Options, Turn};
use tidegate_telemetry::Tallied;

fn options() -> Options {
    Options { timeout: Duration::from_millis(250), raw: true, keyring: None }
}

fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Duration::from_secs(3600)))
}

fn admin(conversations: Arc<Conversations>) -> Admin {
    admin_with(conversations, "", Vec::new)
}

/// With a configuration, and what was counted.
fn admin_with(
    conversations: Arc<Conversations>,
    file: &str,
    tallies: impl Fn() -> Vec<Tallied> + Send + Sync + 'static,
) -> Admin {
    let settings = load(Source::new("proxy.toml", file), &Flags::default(), &|_| None);
    let settings = Arc::new(settings.unwrap());
    Admin {
        readiness: Box::new(|| Readiness::Ready),
        conversations,
        token: None,
        metrics: Box::new(|| "counted 1\n".to_owned()),
        tallies: Box::new(tallies),
        settings: Box::new(move || settings.clone()),
        reloads: Arc::new(Reloads::new(Some("proxy.toml".to_owned()), 5)),
    }
}

fn desk(admin: Admin) -> Arc<Desk> {
    Arc::new(Desk::new(admin))
}

/// A conversation with one turn: the key begins with `key`, the rest of it are zeros.
async fn turn(
    conversations: &Arc<Conversations>,
    key: u32,
    tenant: &str,
    name: &str,
    at: u64,
) -> ConversationKey {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&key.to_be_bytes());
    let key = ConversationKey(bytes);
    let record = TurnRecord { at, request_id: format!("r{at}"), ..TurnRecord::default() };
    let turn = Turn {
        id: u128::from(at).to_be_bytes(),
        end: None,
        at,
        record: encode_turn(&record),
        counts: vec![("tokens_before", 10), ("tokens_after", 7)],
        labels: vec![("name", name.to_owned()), ("tenant", tenant.to_owned())],
    };
    conversations.count(key, turn).await.unwrap();
    key
}

async fn ask(desk: &Arc<Desk>, method: Method, target: &str) -> (u16, String) {
    send(desk, method, target, &[], "").await
}

async fn send(
    desk: &Arc<Desk>,
    method: Method,
    target: &str,
    headers: &[(&str, &str)],
    body: impl Into<bytes::Bytes>,
) -> (u16, String) {
    let mut request = Request::builder().method(method).uri(target).header("host", "localhost:9090");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = desk.answer(request.body(Full::new(body.into())).unwrap()).await;
    assert_eq!(answer.headers()["cache-control"], "no-store", "{target}");
    assert_eq!(answer.headers()["x-frame-options"], "DENY", "{target}");
    let status = answer.status().as_u16();
    let Either::Left(body) = answer.into_body() else { panic!("{target} has no end") };
    let Ok(body) = body.collect().await;
    (status, String::from_utf8(body.to_bytes().to_vec()).unwrap())
}

fn code(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body["error"]["code"].as_str().unwrap().to_owned()
}

fn refusal(error: AdminError) -> (u16, String) {
    match error {
        AdminError::Refused { status, code, .. } => (status, code),
        other => panic!("{other:?}"),
    }
}
