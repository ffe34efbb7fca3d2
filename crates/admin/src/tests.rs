//! Tests of the API through the router and through [`Source`](crate::Source).

mod client;
mod configuration;
mod explain;
mod find;
mod memory;
mod overview;
mod probes;
mod session;
mod summaries;
mod turn;
mod turns;

use crate::router::Router;
use crate::{Admin, AdminError, Readiness, Reloads};
use http::{Method, Request};
use http_body_util::{BodyExt, Either, Full};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Flags, Source, load};
use tidegate_context::{TurnRecord, encode_turn};
use tidegate_store::{ConversationKey, Conversations, Generation, MemoryStore, Options, Turn};
use tidegate_telemetry::ModelTally;

fn options() -> Options {
    Options { timeout: Duration::from_millis(250), ttl: Duration::from_secs(3600), raw: true, keyring: None }
}

fn memory_store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Duration::from_secs(3600)))
}

fn admin(conversations: Arc<Conversations>) -> Admin {
    admin_with(conversations, "", Vec::new)
}

/// An admin service with a configuration and request totals.
fn admin_with(
    conversations: Arc<Conversations>,
    file: &str,
    tallies: impl Fn() -> Vec<ModelTally> + Send + Sync + 'static,
) -> Admin {
    let settings = load(Source::new("proxy.toml", file), &Flags::default(), &|_| None);
    let settings = Arc::new(settings.unwrap());
    Admin {
        readiness: Box::new(|| Readiness::Ready),
        in_flight: Box::new(|| 0),
        conversations,
        token: None,
        metrics: Box::new(|| "counted 1\n".to_owned()),
        tallies: Box::new(tallies),
        settings: Box::new(move || settings.clone()),
        windows: Box::new(Vec::new),
        reloads: Arc::new(Reloads::new(Some("proxy.toml".to_owned()), 5)),
    }
}

fn test_router(admin: Admin) -> Arc<Router> {
    Arc::new(Router::new(admin))
}

/// Records a conversation with one turn. Its key is `key` followed by zeros.
async fn record_turn(
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
    conversations.count(key, Generation(0), turn).await.unwrap();
    key
}

async fn call(router: &Arc<Router>, method: Method, target: &str) -> (u16, String) {
    send(router, method, target, &[], "").await
}

async fn send(
    router: &Arc<Router>,
    method: Method,
    target: &str,
    headers: &[(&str, &str)],
    body: impl Into<bytes::Bytes>,
) -> (u16, String) {
    let mut request = Request::builder().method(method).uri(target).header("host", "localhost:9090");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.handle(request.body(Full::new(body.into())).unwrap()).await;
    assert_eq!(response.headers()["cache-control"], "no-store", "{target}");
    assert_eq!(response.headers()["x-frame-options"], "DENY", "{target}");
    let status = response.status().as_u16();
    let Either::Left(body) = response.into_body() else { panic!("{target} is a stream") };
    let Ok(body) = body.collect().await;
    (status, String::from_utf8(body.to_bytes().to_vec()).unwrap())
}

fn error_code(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body["error"]["code"].as_str().unwrap().to_owned()
}

fn refused(error: AdminError) -> (u16, String) {
    match error {
        AdminError::Refused { status, code, .. } => (status, code),
        other => panic!("{other:?}"),
    }
}
