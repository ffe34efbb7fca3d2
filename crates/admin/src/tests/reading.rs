use super::{admin, ask, desk, memory, options, refusal, turn};
use crate::{AdminError, Filter, Source, Token, serve};
use http::Method;
use tidegate_store::{Conversations, Entries, Journal, Keyring, MessageId, Options, RawMessage, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn messages_are_the_clients_bytes_and_what_cannot_be_read_is_counted() {
    let store = memory();
    let keyring: Keyring = "01".repeat(32).parse().unwrap();
    let sealed = Conversations::new(store.clone(), Options { keyring: Some(keyring), ..options() });
    let plain = Conversations::new(store.clone(), options());
    let key = turn(&plain, 7, "t", "n", 10).await;
    let message = |id: u8, position, json: &str| RawMessage {
        id: MessageId([id; 32]),
        parent: MessageId([id - 1; 32]),
        position,
        at: 5,
        json: json.to_owned().into(),
    };
    let odd = "{\"role\" : \"user\", \"n\":1.50e3,\"s\":\"\\ud800\"}";
    let entries = |messages| Entries { messages, ..Entries::default() };
    plain.journal(key, entries(vec![message(1, 0, odd), message(2, 1, "no \"json\"")])).await.unwrap();
    sealed.journal(key, entries(vec![message(3, 2, "{}")])).await.unwrap();
    let newer = Journal { messages: vec![(MessageId([4; 32]), vec![9].into())], waypoint: None };
    store.journal(key, newer).await.unwrap();
    let broken = Journal { messages: vec![(MessageId([5; 32]), vec![200].into())], waypoint: None };
    store.journal(key, broken).await.unwrap();

    let (status, text) = ask(&desk(admin(plain.clone())), Method::GET, "/api/conversations/n/messages").await;
    assert_eq!(status, 200);
    assert!(text.contains(&format!("\"position\":0,\"at\":5,\"message\":{odd}}}")), "{text}");
    assert!(text.contains("\"position\":1,\"at\":5,\"text\":\"no \\\"json\\\"\"}"), "{text}");
    assert!(text.contains("\"unreadable\":{\"count\":3,\"no_key\":1,\"damaged\":1,\"newer\":1}"), "{text}");
    let page = Source::Opened(plain.clone()).messages("n", None, 1).await.unwrap();
    assert_eq!((page.messages.len(), page.total, page.messages[0].position), (1, 2, 1));
    let with_key = Source::Opened(sealed).messages("n", None, 0).await.unwrap();
    assert_eq!((with_key.total, with_key.unreadable.no_key), (3, 0));
}

#[tokio::test]
async fn a_running_process_is_asked_over_its_address() {
    let conversations = Conversations::new(memory(), options());
    turn(&conversations, 7, "t", "n", 10).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut admin = admin(conversations);
    admin.token = Some(Token::new("s3cret"));
    let server = tokio::spawn(serve(listener, admin));
    let with = |token: &str| Source::Running { address, token: Some(token.to_owned()) };
    assert_eq!(with("s3cret").list(&Filter::default(), 0, 9).await.unwrap().total, Some(1));
    assert_eq!(with("s3cret").conversation("n", None, 0).await.unwrap().conversation.requests, 1);
    assert_eq!(refusal(with("other").list(&Filter::default(), 0, 9).await.unwrap_err()).0, 401);
    assert!(!format!("{:?}", with("s3cret")).contains("s3cret"));

    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "HEAD /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("content-length: 6\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    server.abort();
}

#[tokio::test]
async fn nobody_and_somebody_else_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let reached = Source::reach(address, None).await.unwrap();
    assert!(reached.is_some());
    let page = tokio::spawn(async move {
        // The first connection was only to see whether somebody listens: it ends without a request.
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            if stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi";
                stream.write_all(page.as_bytes()).await.unwrap();
            }
        }
    });
    let foreign = reached.unwrap().list(&Filter::default(), 0, 9).await;
    assert_eq!(foreign, Err(AdminError::Foreign { address }));
    page.await.unwrap();
    assert!(Source::reach(address, None).await.unwrap().is_none());
}
