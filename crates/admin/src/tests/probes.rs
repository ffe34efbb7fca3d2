use super::{admin, ask, code, desk, memory, options};
use crate::{Readiness, Token};
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{
    Answer, ConversationKey, Conversations, Head, Journal, Listing, MessageId, Recollection, Store,
    StoreError, Turn,
};

#[tokio::test]
async fn alive_while_draining_but_not_ready() {
    let ready = desk(admin(Conversations::new(memory(), options())));
    assert_eq!(ask(&ready, Method::GET, "/readyz").await, (200, "ready\n".to_owned()));
    let mut draining = admin(Conversations::new(memory(), options()));
    draining.readiness = Box::new(|| Readiness::Draining);
    let desk = desk(draining);
    assert_eq!(ask(&desk, Method::GET, "/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(ask(&desk, Method::HEAD, "/readyz").await, (503, "draining\n".to_owned()));
    assert_eq!(ask(&desk, Method::GET, "/metrics").await, (200, "counted 1\n".to_owned()));
    let (status, body) = ask(&desk, Method::GET, "/nothing").await;
    assert!(status == 404 && body.contains("/api/conversations"), "{body}");
    for path in ["/healthz", "/readyz", "/metrics", "/api/conversations"] {
        let (status, body) = ask(&desk, Method::POST, path).await;
        assert_eq!((status, code(&body).as_str()), (405, "method_not_allowed"), "{path}");
    }
}

#[tokio::test]
async fn probes_need_no_token_and_everything_else_does() {
    let mut closed = admin(Conversations::new(memory(), options()));
    closed.token = Some(Token::new("s3cret"));
    let desk = desk(closed);
    assert_eq!(ask(&desk, Method::GET, "/healthz").await.0, 200);
    assert_eq!(ask(&desk, Method::GET, "/readyz").await.0, 200);
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
        let (status, body) = ask(&desk, Method::GET, path).await;
        assert_eq!((status, code(&body).as_str()), (401, "unauthorized"), "{path}");
    }
}

/// Cannot be asked anything.
#[derive(Debug)]
struct Down;

impl Store for Down {
    fn recall(&self, _: ConversationKey) -> Answer<'_, Recollection> {
        down()
    }
    fn fold(&self, _: ConversationKey, _: MessageId, _: bytes::Bytes) -> Answer<'_, bool> {
        down()
    }
    fn pin(&self, _: ConversationKey, _: Option<bytes::Bytes>) -> Answer<'_, ()> {
        down()
    }
    fn claim(&self, _: ConversationKey, _: [u8; 16], _: Duration) -> Answer<'_, bool> {
        down()
    }
    fn release(&self, _: ConversationKey, _: [u8; 16]) -> Answer<'_, ()> {
        down()
    }
    fn journal(&self, _: ConversationKey, _: Journal) -> Answer<'_, ()> {
        down()
    }
    fn count(&self, _: ConversationKey, _: Turn) -> Answer<'_, ()> {
        down()
    }
    fn head(&self, _: ConversationKey) -> Answer<'_, Option<Head>> {
        down()
    }
    fn list(&self, _: usize, _: usize) -> Answer<'_, Listing> {
        down()
    }
    fn turns(&self, _: ConversationKey) -> Answer<'_, Vec<bytes::Bytes>> {
        down()
    }
    fn messages(&self, _: ConversationKey) -> Answer<'_, Vec<(MessageId, bytes::Bytes)>> {
        down()
    }
    fn delete(&self, _: ConversationKey) -> Answer<'_, bool> {
        down()
    }
    fn probe(&self) -> Answer<'_, ()> {
        down()
    }
    fn is_shared(&self) -> bool {
        true
    }
}

fn down<T: Send + 'static>() -> Answer<'static, T> {
    Box::pin(std::future::ready(Err(StoreError::Unreachable("10.0.0.7:6379 as admin".to_owned()))))
}

#[tokio::test]
async fn a_store_that_fails_is_said_by_its_label_alone_and_is_no_reason_to_get_no_requests() {
    let conversations = Conversations::new(Arc::new(Down), options());
    conversations.recall(ConversationKey([1; 16])).await;
    let desk = desk(admin(conversations));
    let ready = ask(&desk, Method::GET, "/readyz").await;
    assert_eq!(ready, (200, "ready, store degraded: store_unreachable\n".to_owned()));
    for target in
        ["/api/conversations", "/api/conversations/x", &format!("/api/conversations/{}", "0".repeat(32))]
    {
        let (status, body) = ask(&desk, Method::GET, target).await;
        assert_eq!((status, code(&body).as_str()), (503, "store_unavailable"), "{target}");
        assert!(body.contains("store_unreachable") && !body.contains("10.0.0.7"), "{body}");
    }
}
