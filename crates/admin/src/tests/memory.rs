use super::{admin, call, error_code, memory_store, options, record_turn, refused, send, test_router};
use crate::router::Router;
use crate::{MAX_MEMORY_BYTES, MemoryPage, Source, serve};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_store::{Conversations, Keyring, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TARGET: &str = "/api/conversations/n/memory";
const TEXT: (&str, &str) = ("content-type", "text/plain");
const JSON: (&str, &str) = ("content-type", "application/json");

async fn pinned(router: &Arc<Router>, target: &str) -> Value {
    let (status, text) = call(router, Method::GET, target).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_memory_is_pinned_read_and_removed() {
    let conversations = Conversations::new(memory_store(), options());
    let key = record_turn(&conversations, 7, "t", "n", 10).await;
    let router = test_router(admin(conversations));
    assert_eq!(pinned(&router, TARGET).await, json!({"memory": null}));
    let hostile = "<script>alert(1)</script>\n\u{1b}[2J \"quoted\" \u{202e}é\u{1f30a}";
    let sent = json!({"memory": hostile}).to_string();
    assert_eq!(send(&router, Method::PUT, TARGET, &[JSON], sent).await, (204, String::new()));
    assert_eq!(pinned(&router, TARGET).await, json!({"memory": hostile}));
    let whole = format!("/api/conversations/{key}/memory?tenant=t");
    assert_eq!(send(&router, Method::PUT, &whole, &[TEXT], "The ship is Ada.\n").await.0, 204);
    assert_eq!(pinned(&router, &whole).await, json!({"memory": "The ship is Ada.\n"}), "byte for byte");
    assert_eq!(pinned(&router, "/api/conversations/n").await["memory"], "The ship is Ada.\n");
    for _ in 0..2 {
        assert_eq!(call(&router, Method::DELETE, TARGET).await, (204, String::new()));
        assert_eq!(pinned(&router, TARGET).await, json!({"memory": null}));
    }
    assert_eq!(pinned(&router, "/api/conversations/n").await["memory"], Value::Null);
}

#[tokio::test]
async fn invalid_memories_are_refused_and_change_nothing() {
    let conversations = Conversations::new(memory_store(), options());
    record_turn(&conversations, 7, "t", "n", 10).await;
    let router = test_router(admin(conversations));
    send(&router, Method::PUT, TARGET, &[TEXT], "stays").await;
    let long = "c".repeat(MAX_MEMORY_BYTES + 1);
    let escaped = |bytes| format!("{{\"memory\":\"{}\"}}", "\\u0063".repeat(bytes));
    let refused: [(_, Vec<u8>, _); 16] = [
        (TEXT, Vec::new(), (400, "invalid_memory")),
        (TEXT, b" \n\t".to_vec(), (400, "invalid_memory")),
        (TEXT, b"canary \xff".to_vec(), (400, "invalid_memory")),
        (TEXT, b"canary \0".to_vec(), (400, "invalid_memory")),
        (TEXT, long.clone().into(), (413, "memory_too_long")),
        (TEXT, vec![b'c'; 5 << 20], (413, "memory_too_long")),
        (JSON, Vec::new(), (400, "invalid_memory")),
        (JSON, b"canary".to_vec(), (400, "invalid_memory")),
        (JSON, b"{\"memory\":\"canary \\u0000\"}".to_vec(), (400, "invalid_memory")),
        (JSON, b"{\"memory\":\"canary \\ud800\"}".to_vec(), (400, "invalid_memory")),
        (JSON, b"{\"memory\":\"canary \xff\"}".to_vec(), (400, "invalid_memory")),
        (JSON, b"{\"memory\":null}".to_vec(), (400, "invalid_memory")),
        (JSON, b"{\"memory\":\"a\",\"canary\":1}".to_vec(), (400, "invalid_memory")),
        (JSON, escaped(MAX_MEMORY_BYTES + 1).into(), (413, "memory_too_long")),
        (JSON, vec![b' '; 7 * MAX_MEMORY_BYTES], (413, "memory_too_long")),
        (
            ("content-type", "application/x-www-form-urlencoded"),
            b"a".to_vec(),
            (415, "unsupported_media_type"),
        ),
    ];
    for (kind, body, expected) in refused {
        let (status, text) = send(&router, Method::PUT, TARGET, &[kind], body).await;
        assert_eq!((status, error_code(&text).as_str()), expected, "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
    let (status, text) = send(&router, Method::PUT, TARGET, &[], "typeless").await;
    assert_eq!((status, error_code(&text).as_str()), (415, "unsupported_media_type"));
    assert_eq!(pinned(&router, TARGET).await, json!({"memory": "stays"}));

    assert_eq!(send(&router, Method::PUT, TARGET, &[JSON], escaped(MAX_MEMORY_BYTES)).await.0, 204);
    assert_eq!(pinned(&router, TARGET).await["memory"], long[1..], "the longest allowed");
    let (status, text) = send(&router, Method::POST, TARGET, &[TEXT], "x").await;
    assert_eq!((status, error_code(&text).as_str()), (405, "method_not_allowed"));
}

#[tokio::test]
async fn cross_site_requests_cannot_pin_or_unpin() {
    let conversations = Conversations::new(memory_store(), options());
    record_turn(&conversations, 7, "t", "n", 10).await;
    let router = test_router(admin(conversations));
    send(&router, Method::PUT, TARGET, &[TEXT], "stays").await;
    for header in [("origin", "http://evil.test"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        for method in [Method::PUT, Method::DELETE] {
            let (status, text) = send(&router, method, TARGET, &[TEXT, header], "theirs").await;
            assert_eq!((status, error_code(&text).as_str()), (403, "foreign_site"), "{header:?}");
        }
    }
    assert_eq!(pinned(&router, TARGET).await, json!({"memory": "stays"}));
    let ours = [TEXT, ("origin", "http://localhost:9090"), ("sec-fetch-site", "same-origin")];
    assert_eq!(send(&router, Method::PUT, TARGET, &ours, "ours").await.0, 204);
}

#[tokio::test]
async fn the_memory_of_another_tenant_is_invisible() {
    let conversations = Conversations::new(memory_store(), options());
    let ada = record_turn(&conversations, 1, "ada", "same", 10).await.to_string();
    record_turn(&conversations, 2, "bob", "same", 11).await;
    let source = Source::Opened(conversations);
    source.pin("same", Some("ada"), Some("Ada's canary.")).await.unwrap();
    assert_eq!(source.pinned("same", Some("bob")).await.unwrap(), MemoryPage::default());
    for (id, tenant, expected) in [("same", None, 409), (&ada, Some("bob"), 404), ("nobody", None, 404)] {
        for error in [
            source.pinned(id, tenant).await.unwrap_err(),
            source.pin(id, tenant, Some("theirs")).await.unwrap_err(),
            source.pin(id, tenant, None).await.unwrap_err(),
        ] {
            assert!(!error.to_string().contains("canary"), "{error}");
            assert_eq!(refused(error).0, expected, "{id} of {tenant:?}");
        }
    }
    assert_eq!(source.pinned(&ada, None).await.unwrap().memory.as_deref(), Some("Ada's canary."));
}

#[tokio::test]
async fn a_memory_without_its_key_is_reported_as_unreadable() {
    let store = memory_store();
    let keyring: Keyring = "01".repeat(32).parse().unwrap();
    let sealed = Conversations::new(store.clone(), Options { keyring: Some(keyring), ..options() });
    let plain = Conversations::new(store, options());
    record_turn(&sealed, 7, "t", "n", 10).await;
    let (sealed, plain) = (Source::Opened(sealed), Source::Opened(plain));
    sealed.pin("n", None, Some("The canary.")).await.unwrap();
    let unreadable = MemoryPage { memory: None, memory_degraded: Some("store_no_key".to_owned()) };
    assert_eq!(plain.pinned("n", None).await.unwrap(), unreadable);
    assert_eq!(plain.conversation("n", None, 0).await.unwrap().memory, unreadable);
    assert_eq!(sealed.pinned("n", None).await.unwrap().memory.as_deref(), Some("The canary."));
}

/// A client that is cut off while sending would see a broken connection instead of the error.
#[tokio::test]
async fn an_oversized_memory_gets_an_error_response_over_http() {
    let conversations = Conversations::new(memory_store(), options());
    record_turn(&conversations, 7, "t", "n", 10).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, admin(conversations), std::future::pending()));
    let source = Source::Running { address, token: None };
    source.pin("n", None, Some("Ours.")).await.unwrap();
    assert_eq!(source.pinned("n", None).await.unwrap().memory.as_deref(), Some("Ours."));
    let long = source.pin("n", None, Some(&"c".repeat(3 << 20))).await.unwrap_err();
    assert_eq!(refused(long), (413, "memory_too_long".to_owned()));

    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "PUT {TARGET} HTTP/1.1\r\nhost: {address}\r\ncontent-type: text/plain\r\ncontent-length: 99999999999\r\n\
         expect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413 "), "an oversized body is not requested: {response}");
    source.pin("n", None, None).await.unwrap();
    assert_eq!(source.pinned("n", None).await.unwrap(), MemoryPage::default());
    server.abort();
}
