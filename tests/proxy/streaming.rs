//! Data is forwarded in both directions as soon as it arrives.

use crate::support::client::{CHAT, Client, chat, get, post, request};
use crate::support::http2::{Http2Client, next_text};
use crate::support::reply::End;
use crate::support::tidegate::Tidegate;
use crate::support::within;
use http_body_util::BodyExt;
use tidegate_testkit::{Answer, Gate, MockUpstream};

/// Events that each wait for a gate, except the first.
fn gated_events() -> (Answer, Vec<Gate>) {
    let gates: Vec<Gate> = (0..3).map(|_| Gate::new()).collect();
    let mut answer = Answer::sse([r#"{"n":0}"#]);
    for (number, gate) in gates.iter().enumerate() {
        answer = answer.wait(gate).event(&format!(r#"{{"n":{}}}"#, number + 1));
    }
    (answer.event("[DONE]"), gates)
}

#[tokio::test]
async fn each_chunk_arrives_before_the_next_is_sent() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for request in [chat(), get("/v1/threads/runs")] {
        let (answer, gates) = gated_events();
        upstream.then(answer);
        let mut client = Client::connect(tidegate.address).await;
        client.send(request).await;
        let mut reply = client.head().await;
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert_eq!(client.piece(&mut reply).await.unwrap(), b"data: {\"n\":0}\n\n");
        for (number, gate) in gates.iter().enumerate() {
            gate.open();
            let expected = format!("data: {{\"n\":{}}}\n\n", number + 1);
            let mut arrived = client.piece(&mut reply).await.unwrap();
            if number + 1 == gates.len() {
                // Nothing separates the last event from the end, so they may arrive together.
                client.rest(&mut reply).await;
                arrived.append(&mut reply.body);
                assert_eq!(String::from_utf8(arrived).unwrap(), expected + "data: [DONE]\n\n");
            } else {
                assert_eq!(String::from_utf8(arrived).unwrap(), expected);
            }
        }
        assert_eq!(reply.end, End::Complete);
    }
}

#[tokio::test]
async fn an_http2_client_gets_each_chunk_at_once() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let (answer, gates) = gated_events();
    upstream.then(answer);
    let client = Http2Client::connect(tidegate.address).await;
    let mut body = client.send("POST", CHAT, "{}").await.unwrap().into_body();
    assert_eq!(next_text(&mut body).await.unwrap(), "data: {\"n\":0}\n\n");
    gates[0].open();
    assert_eq!(next_text(&mut body).await.unwrap(), "data: {\"n\":1}\n\n");
    gates[1].open();
    assert_eq!(next_text(&mut body).await.unwrap(), "data: {\"n\":2}\n\n");
}

#[tokio::test]
async fn the_head_does_not_wait_for_the_body() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let gate = Gate::new();
    upstream.then(Answer::new(200).header("x-early", "yes").chunked().head().wait(&gate).chunk("late"));
    let mut client = Client::connect(tidegate.address).await;
    client.send(chat()).await;
    let mut reply = client.head().await;
    assert_eq!(reply.header("x-early"), Some("yes"));
    gate.open();
    client.rest(&mut reply).await;
    assert_eq!(reply.body, b"late");
}

#[tokio::test]
async fn uploads_reach_the_upstream_while_the_client_is_sending() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    let part =
        b"--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n\x00\xff\xfe";
    for path in
        ["/v1/audio/transcriptions", "/v1/files", "/openai/deployments/w/audio/translations?api-version=1"]
    {
        let mut client = Client::connect(tidegate.address).await;
        let headers = [("content-type", "multipart/form-data; boundary=b"), ("transfer-encoding", "chunked")];
        let before = upstream.received_bytes();
        client.send(request("POST", path, &headers, b"")).await;
        client.send([format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()).await;
        // Nothing more is sent until the first part has arrived: a buffering proxy would wait forever.
        upstream.until_received_bytes(before + part.len() as u64 + 100).await;
        client.send(b"7\r\n\r\n--b--\r\n0\r\n\r\n").await;
        assert_eq!(client.reply().await.status, 200);
        let arrived = upstream.next_request().await;
        assert_eq!(arrived.body, [part.as_slice(), b"\r\n--b--"].concat());
        assert_eq!(arrived.header("content-type"), Some("multipart/form-data; boundary=b"));
        assert_eq!(arrived.target, path);
    }
}

#[tokio::test]
async fn an_upload_keeps_its_content_length() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(post("/v1/embeddings", &[("content-length", "10")], "01234")).await;
    upstream.until_received_bytes(60).await;
    client.send("56789").await;
    client.reply().await;
    let arrived = upstream.next_request().await;
    assert_eq!(
        (arrived.body.as_slice(), arrived.header("content-length")),
        (b"0123456789".as_slice(), Some("10"))
    );
    assert_eq!(arrived.header("transfer-encoding"), None);
}

#[tokio::test]
async fn a_response_can_arrive_before_the_upload_ends() {
    let upstream = MockUpstream::start().await;
    upstream.then(Answer::error(415, "unsupported", "not this one").before_body());
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(post("/v1/files", &[("content-length", "100000")], "only the beginning")).await;
    assert_eq!(client.reply().await.status, 415);
}

#[tokio::test]
async fn trailers_reach_an_http2_client() {
    let upstream = MockUpstream::start().await;
    upstream.then(Answer::new(200).chunked().chunk("body").trailer("x-checksum", "abc"));
    let tidegate = Tidegate::start("", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let response = client.send("GET", "/v1/models", "").await.unwrap();
    let body = within("the answer ends", response.into_body().collect()).await.unwrap();
    assert_eq!(body.trailers().and_then(|trailers| trailers.get("x-checksum")).unwrap(), "abc");
}

#[tokio::test]
async fn trailers_reach_an_http1_client_that_accepts_them() {
    let upstream = MockUpstream::start().await;
    upstream.then(
        Answer::new(200).header("trailer", "x-checksum").chunked().chunk("body").trailer("x-checksum", "abc"),
    );
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(request("GET", "/v1/models", &[("te", "trailers"), ("connection", "te")], b"")).await;
    let reply = client.reply().await;
    assert_eq!((reply.body.as_slice(), reply.end), (b"body".as_slice(), End::Complete));
    assert_eq!(reply.trailers, [("x-checksum".to_owned(), "abc".to_owned())]);
}
