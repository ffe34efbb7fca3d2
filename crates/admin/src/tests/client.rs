use super::{admin, call, memory_store, options, record_turn, refused, test_router};
use crate::{AdminError, Filter, Source, Token, serve};
use http::Method;
use tidegate_store::{
    Conversations, Entries, Generation, Journal, Keyring, MessageId, Options, RawMessage, Standing, Store,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn messages_keep_the_clients_bytes_and_unreadable_ones_are_counted() {
    let store = memory_store();
    let keyring: Keyring = "01".repeat(32).parse().unwrap();
    let sealed = Conversations::new(store.clone(), Options { keyring: Some(keyring), ..options() });
    let plain = Conversations::new(store.clone(), options());
    let key = record_turn(&plain, 7, "t", "n", 10).await;
    let message = |id: u8, position, json: &str| RawMessage {
        id: MessageId([id; 32]),
        parent: MessageId([id - 1; 32]),
        position,
        at: 5,
        json: json.to_owned().into(),
        standing: Standing::Kept,
    };
    let odd = "{\"role\" : \"user\", \"n\":1.50e3,\"s\":\"\\ud800\"}";
    let entries = |messages| Entries { messages, ..Entries::default() };
    plain.journal(key, entries(vec![message(1, 0, odd), message(2, 1, "no \"json\"")])).await.unwrap();
    sealed.journal(key, entries(vec![message(3, 2, "{}")])).await.unwrap();
    let newer = Journal { messages: vec![(MessageId([4; 32]), vec![9].into())], waypoint: None };
    store.journal(key, Generation(0), newer).await.unwrap();
    let broken = Journal { messages: vec![(MessageId([5; 32]), vec![200].into())], waypoint: None };
    store.journal(key, Generation(0), broken).await.unwrap();

    let (status, text) =
        call(&test_router(admin(plain.clone())), Method::GET, "/api/conversations/n/messages").await;
    assert_eq!(status, 200);
    assert!(text.contains(&format!("\"position\":0,\"at\":5,\"message\":{odd}}}")), "{text}");
    assert!(text.contains("\"position\":1,\"at\":5,\"text\":\"no \\\"json\\\"\"}"), "{text}");
    assert!(
        text.contains("\"unreadable\":{\"count\":3,\"no_key\":1,\"damaged\":1,\"newer\":1,\"too_long\":0}"),
        "{text}"
    );
    let page = Source::Opened(plain.clone()).messages("n", None, 1).await.unwrap();
    assert_eq!((page.messages.len(), page.total, page.messages[0].position), (1, 2, 1));
    let with_key = Source::Opened(sealed).messages("n", None, 0).await.unwrap();
    assert_eq!((with_key.total, with_key.unreadable.no_key), (3, 0));
}

#[tokio::test]
async fn a_running_process_is_read_over_http() {
    let conversations = Conversations::new(memory_store(), options());
    record_turn(&conversations, 7, "t", "n", 10).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut admin = admin(conversations);
    admin.token = Some(Token::new("s3cret"));
    let server = tokio::spawn(serve(listener, admin, std::future::pending()));
    let with = |token: &str| Source::Running { address, token: Some(token.to_owned()) };
    assert_eq!(with("s3cret").list(&Filter::default(), 0, 9).await.unwrap().total, Some(1));
    assert_eq!(with("s3cret").conversation("n", None, 0).await.unwrap().conversation.requests, 1);
    assert_eq!(refused(with("other").list(&Filter::default(), 0, 9).await.unwrap_err()).0, 401);
    assert!(!format!("{:?}", with("s3cret")).contains("s3cret"));

    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "HEAD /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains("content-length: 6\r\n"),
        "{response}"
    );
    assert!(response.ends_with("\r\n\r\n"), "{response}");
    server.abort();
}

#[tokio::test]
async fn a_refused_connection_and_a_foreign_server_are_distinguished() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connected = Source::connect(address, None).await.unwrap();
    assert!(connected.is_some());
    let page = tokio::spawn(async move {
        // `connect` opens the first connection and closes it without a request.
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            if stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi";
                stream.write_all(page.as_bytes()).await.unwrap();
            }
        }
    });
    let foreign = connected.unwrap().list(&Filter::default(), 0, 9).await;
    assert_eq!(foreign, Err(AdminError::NotTidegate { address }));
    page.await.unwrap();
    assert!(Source::connect(address, None).await.unwrap().is_none());
}
