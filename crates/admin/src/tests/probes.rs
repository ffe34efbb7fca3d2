use super::{admin, call, error_code, memory_store, options, test_router};
use crate::{Readiness, Token};
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{
    Append, Appended, ConversationKey, Conversations, Delivery, ExchangeStore, FactStore, FoldWritten,
    Generation, Head, Journal, Lease, Listing, LogRead, MessageId, Recollection, Store, StoreError,
    StoreFuture, Turn, Written,
};

#[tokio::test]
async fn a_draining_process_is_alive_but_not_ready() {
    let ready = test_router(admin(Conversations::new(memory_store(), options())));
    assert_eq!(call(&ready, Method::GET, "/readyz").await, (200, "ready\n".to_owned()));
    let mut draining = admin(Conversations::new(memory_store(), options()));
    draining.readiness = Box::new(|| Readiness::Draining);
    let router = test_router(draining);
    assert_eq!(call(&router, Method::GET, "/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(call(&router, Method::HEAD, "/readyz").await, (503, "draining\n".to_owned()));
    assert_eq!(call(&router, Method::GET, "/metrics").await, (200, "counted 1\n".to_owned()));
    let (status, body) = call(&router, Method::GET, "/nothing").await;
    assert!(status == 404 && body.contains("/api/conversations"), "{body}");
    for path in ["/healthz", "/readyz", "/metrics", "/api/conversations"] {
        let (status, body) = call(&router, Method::POST, path).await;
        assert_eq!((status, error_code(&body).as_str()), (405, "method_not_allowed"), "{path}");
    }
}

#[tokio::test]
async fn only_probes_need_no_token() {
    let mut closed = admin(Conversations::new(memory_store(), options()));
    closed.token = Some(Token::new("s3cret"));
    let router = test_router(closed);
    assert_eq!(call(&router, Method::GET, "/healthz").await.0, 200);
    assert_eq!(call(&router, Method::GET, "/readyz").await.0, 200);
    for path in [
        "/metrics",
        "/api/conversations",
        "/api/overview",
        "/api/overview/live",
        "/api/config",
        "/api/explain",
        "/api/openapi.json",
        "/assets/nothing.js",
        "/nothing",
    ] {
        let (status, body) = call(&router, Method::GET, path).await;
        assert_eq!((status, error_code(&body).as_str()), (401, "unauthorized"), "{path}");
    }
}

/// A store that is always unreachable.
#[derive(Debug)]
struct DownStore;

impl FactStore for DownStore {
    fn publish(&self, _: String, _: String, _: bytes::Bytes) -> StoreFuture<'_, ()> {
        unreachable_store()
    }
    fn published(&self, _: String) -> StoreFuture<'_, Vec<(String, bytes::Bytes)>> {
        unreachable_store()
    }
    fn forget(&self, _: String) -> StoreFuture<'_, ()> {
        unreachable_store()
    }
}

impl ExchangeStore for DownStore {
    fn save_exchange(
        &self,
        _: ConversationKey,
        _: Generation,
        _: MessageId,
        _: bytes::Bytes,
    ) -> StoreFuture<'_, Written> {
        unreachable_store()
    }
    fn exchanges(&self, _: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, bytes::Bytes)>> {
        unreachable_store()
    }
}

impl Store for DownStore {
    fn recall(&self, _: ConversationKey) -> StoreFuture<'_, Recollection> {
        unreachable_store()
    }
    fn fold(
        &self,
        _: ConversationKey,
        _: Generation,
        _: MessageId,
        _: bytes::Bytes,
    ) -> StoreFuture<'_, FoldWritten> {
        unreachable_store()
    }
    fn log(&self, _: ConversationKey, _: usize) -> StoreFuture<'_, LogRead> {
        unreachable_store()
    }
    fn append(&self, _: ConversationKey, _: Generation, _: Append) -> StoreFuture<'_, Appended> {
        unreachable_store()
    }
    fn note_delivery(
        &self,
        _: ConversationKey,
        _: Generation,
        _: MessageId,
        _: Delivery,
    ) -> StoreFuture<'_, Written> {
        unreachable_store()
    }
    fn pin(&self, _: ConversationKey, _: Option<bytes::Bytes>) -> StoreFuture<'_, ()> {
        unreachable_store()
    }
    fn claim(&self, _: ConversationKey, _: Lease, _: [u8; 16], _: Duration) -> StoreFuture<'_, bool> {
        unreachable_store()
    }
    fn renew(&self, _: ConversationKey, _: Lease, _: [u8; 16], _: Duration) -> StoreFuture<'_, bool> {
        unreachable_store()
    }
    fn release(&self, _: ConversationKey, _: Lease, _: [u8; 16]) -> StoreFuture<'_, ()> {
        unreachable_store()
    }
    fn journal(&self, _: ConversationKey, _: Generation, _: Journal) -> StoreFuture<'_, Written> {
        unreachable_store()
    }
    fn count(&self, _: ConversationKey, _: Generation, _: Turn) -> StoreFuture<'_, Written> {
        unreachable_store()
    }
    fn head(&self, _: ConversationKey) -> StoreFuture<'_, Option<Head>> {
        unreachable_store()
    }
    fn list(&self, _: usize, _: usize) -> StoreFuture<'_, Listing> {
        unreachable_store()
    }
    fn turns(&self, _: ConversationKey) -> StoreFuture<'_, Vec<bytes::Bytes>> {
        unreachable_store()
    }
    fn messages(&self, _: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, bytes::Bytes)>> {
        unreachable_store()
    }
    fn delete(&self, _: ConversationKey, _: Generation) -> StoreFuture<'_, bool> {
        unreachable_store()
    }
    fn probe(&self) -> StoreFuture<'_, ()> {
        unreachable_store()
    }
    fn is_shared(&self) -> bool {
        true
    }
}

fn unreachable_store<T: Send + 'static>() -> StoreFuture<'static, T> {
    Box::pin(std::future::ready(Err(StoreError::Unreachable("10.0.0.7:6379 as admin".to_owned()))))
}

#[tokio::test]
async fn a_failing_store_is_reported_by_label_only_and_stays_ready() {
    let conversations = Conversations::new(Arc::new(DownStore), options());
    conversations.recall(ConversationKey([1; 16])).await;
    let router = test_router(admin(conversations));
    let ready = call(&router, Method::GET, "/readyz").await;
    assert_eq!(ready, (200, "ready, store degraded: store_unreachable\n".to_owned()));
    for target in
        ["/api/conversations", "/api/conversations/x", &format!("/api/conversations/{}", "0".repeat(32))]
    {
        let (status, body) = call(&router, Method::GET, target).await;
        assert_eq!((status, error_code(&body).as_str()), (503, "store_unavailable"), "{target}");
        assert!(body.contains("store_unreachable") && !body.contains("10.0.0.7"), "{body}");
    }
}
