//! `Expect: 100-continue`: the client asks for permission before it sends a body.

use crate::support::client::{CHAT, Client, QUESTION, post};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn tidegate_answers_100_continue_itself() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let length = QUESTION.len().to_string();
    for path in [CHAT, "/v1/embeddings"] {
        let mut client = Client::connect(tidegate.address).await;
        client.send(post(path, &[("expect", "100-continue"), ("content-length", &length)], "")).await;
        assert_eq!(client.head().await.status, 100);
        client.send(QUESTION).await;
        assert_eq!(client.reply().await.status, 200);
        let arrived = upstream.next_request().await;
        assert_eq!(
            (arrived.body.as_slice(), arrived.header("expect")),
            (QUESTION.as_bytes(), None),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_body_over_the_limit_gets_no_100_continue() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nmax_body = \"64KiB\"\n", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(post(CHAT, &[("expect", "100-continue"), ("content-length", "1000000")], "")).await;
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.error_code().as_str()), (413, "request_too_large"));
    assert_eq!(upstream.connections(), 0);
}
