//! Who may use the MCP endpoint, and whose conversation is whose.

use super::{ADA, MCP, NAMED, call, reference, rpc, scene};
use crate::support::client::{Client, exchange, post, request};
use crate::support::tidegate::Setup;
use serde_json::json;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn another_tenants_reference_is_not_found() {
    let (_upstream, tidegate) = scene("").await;
    let mine = reference(tidegate.address, &[ADA, NAMED], "result 1").await;
    for headers in [[("authorization", "Bearer bob"), NAMED], [ADA, ("x-conversation-id", "other")]] {
        let (text, is_error) = call(tidegate.address, &headers, "recall", json!({ "ref": mine })).await;
        assert!(is_error && text.contains("No message of this conversation"), "{text}");
        let (text, _) =
            call(tidegate.address, &headers, "search_history", json!({ "query": "result 1" })).await;
        assert!(text.starts_with("Nothing"), "{text}");
    }
}

#[tokio::test]
async fn strangers_are_refused() {
    let upstream = MockUpstream::start().await;
    let remote = Setup::listening("", "0.0.0.0:0").upstream(&upstream.url()).start().await;
    let reply = rpc(remote.address, &[NAMED], "tools/list", json!({})).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (401, "credentials_required"));
    let invalid = rpc(remote.address, &[ADA, ("x-conversation-id", "a b")], "tools/list", json!({})).await;
    assert_eq!((invalid.status, invalid.error_code().as_str()), (400, "invalid_conversation_id"));
    let local = Setup::new("").upstream(&upstream.url()).start().await;
    let head = format!("POST {MCP} HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 0\r\n\r\n");
    let reply = exchange(local.address, head).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (403, "host_not_allowed"));
    assert_eq!(upstream.requests().len(), 0);
}

#[tokio::test]
async fn only_a_small_post_of_json_is_read() {
    let (_upstream, tidegate) = scene("").await;
    for method in ["GET", "DELETE"] {
        let reply = exchange(tidegate.address, request(method, MCP, &[ADA], b"")).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method}");
    }
    let mut client = Client::connect(tidegate.address).await;
    client.send(post(MCP, &[ADA], vec![b' '; 80 * 1024])).await;
    let large = client.head().await;
    assert_eq!(large.status, 413);
    let broken = exchange(tidegate.address, post(MCP, &[ADA], "{")).await;
    assert_eq!((broken.status, &broken.json()["error"]["code"]), (400, &json!(-32700)));
}

#[tokio::test]
async fn without_raw_messages_there_is_nothing_to_recall() {
    let (_upstream, tidegate) = scene("raw = false\n").await;
    let (text, is_error) =
        call(tidegate.address, &[ADA, NAMED], "recall", json!({ "ref": "00000000" })).await;
    assert!(is_error && text.contains("store.raw"), "{text}");
}
