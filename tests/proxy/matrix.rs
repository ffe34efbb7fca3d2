//! Every kind of upstream with every compression, with and without a length, streamed and not: the answer is passed on whole, its usage is
//! read, the connection is used again, and nothing is left of any request.

use crate::support::client::{CHAT, Client, admin, exchange, post};
use crate::support::metrics::value;
use crate::support::reply::End;
use crate::support::tidegate::{Setup, Tidegate};
use crate::support::{PATIENCE, until};
use serde_json::Value;
use tidegate_testkit::{Answer, Coding, Listen, MockUpstream, Recording};

const KINDS: [Listen; 4] = [Listen::Http1, Listen::H2c, Listen::Tls, Listen::TlsHttp1];

const HEADERS: [(&str, &str); 3] = [
    ("x-conversation-id", "c"),
    ("authorization", "Bearer ada"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
];

const QUESTION: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

const DOCUMENT: &str = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#;

fn events() -> Answer {
    Answer::sse([
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"ok"}}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#,
        "[DONE]",
    ])
}

/// One worker, so that one connection is enough.
async fn before(upstream: &MockUpstream) -> Tidegate {
    let ca = if upstream.url().starts_with("https") { "ca = \"ca.pem\"\n" } else { "" };
    let config = format!("[server]\nworkers = 1\n[store]\nurl = \"memory:\"\n[upstreams.default]\n{ca}");
    let setup = Setup::new(&config);
    let setup = if ca.is_empty() { setup } else { setup.file("ca.pem", upstream.ca_pem()) };
    setup.before(upstream).start().await
}

/// No request has a place, and no file is open that was not open before.
async fn assert_nothing_leaks(tidegate: &Tidegate, files: usize, what: &str) {
    let in_flight = async || {
        let page = admin(tidegate.admin, "/metrics").await.text();
        value(&page, "tidegate_requests_in_flight", &[])
    };
    until(&format!("{what}: requests in flight"), PATIENCE, in_flight, |count| *count == Some(0.0)).await;
    let open = async || tidegate.open_files();
    until(&format!("{what}: {files} open files"), PATIENCE, open, |open| *open <= files).await;
}

async fn turns(tidegate: &Tidegate, count: usize) -> Vec<Value> {
    let counted = async || {
        let page: Value = admin(tidegate.admin, "/api/conversations/c?turns_limit=100").await.json();
        page["turns"].as_array().cloned().unwrap_or_default()
    };
    until("all turns are counted", PATIENCE, counted, |turns| turns.len() == count).await
}

#[tokio::test]
async fn every_answer_is_passed_on_and_read_over_every_upstream() {
    for kind in KINDS {
        let upstream = MockUpstream::bind(([127, 0, 0, 1], 0).into(), kind, Recording::On).await;
        let tidegate = before(&upstream).await;
        let mut requests = 0;
        let mut files = 0;
        for coding in [None].into_iter().chain(Coding::ALL.map(Some)) {
            for (is_chunked, is_stream) in [(false, false), (true, false), (false, true)] {
                let what = format!("{kind:?}, {coding:?}, chunked: {is_chunked}, streamed: {is_stream}");
                upstream.encode(coding, is_chunked);
                upstream.answer(if is_stream { events() } else { Answer::json(200, DOCUMENT) });
                let reply = exchange(tidegate.address, post(CHAT, &HEADERS, QUESTION)).await;
                assert_eq!((reply.status, reply.end), (200, End::Complete), "{what}: {}", reply.text());
                assert_eq!(reply.header("content-encoding"), coding.map(Coding::name), "{what}");
                if coding.is_none() && !is_stream {
                    assert_eq!(reply.text(), DOCUMENT, "{what}");
                }
                requests += 1;
                if requests == 1 {
                    // Whatever is kept open is open by now.
                    turns(&tidegate, 1).await;
                    files = tidegate.open_files();
                }
            }
        }
        for turn in turns(&tidegate, requests).await {
            let read = (&turn["prompt_tokens"], &turn["cost_estimated"], &turn["outcome"]);
            assert_eq!(read, (&7.into(), &false.into(), &"answered".into()), "{kind:?}: {turn}");
        }
        assert_eq!(upstream.connections(), 1, "{kind:?}: the connection is used again");
        assert_nothing_leaks(&tidegate, files, &format!("{kind:?}")).await;
    }
}

#[tokio::test]
async fn clients_that_leave_take_everything_with_them() {
    for kind in KINDS {
        let upstream = MockUpstream::bind(([127, 0, 0, 1], 0).into(), kind, Recording::On).await;
        let tidegate = before(&upstream).await;
        upstream.answer(Answer::json(200, DOCUMENT));
        exchange(tidegate.address, post(CHAT, &HEADERS, QUESTION)).await;
        upstream.next_request().await;
        turns(&tidegate, 1).await;
        let files = tidegate.open_files();
        for coding in [None, Some(Coding::Zstd)] {
            upstream.encode(coding, false);
            // Neither ends before its client leaves: a connection with a whole answer is used again.
            for answer in [Answer::new(200).stall(), events().stall()] {
                upstream.answer(answer);
                let mut client = Client::connect(tidegate.address).await;
                client.send(post(CHAT, &HEADERS, QUESTION)).await;
                upstream.next_request().await;
                drop(client);
            }
        }
        assert_nothing_leaks(&tidegate, files, &format!("{kind:?}")).await;
        upstream.encode(None, false);
        upstream.answer(Answer::json(200, DOCUMENT));
        let reply = exchange(tidegate.address, post(CHAT, &HEADERS, QUESTION)).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, DOCUMENT), "{kind:?}");
    }
}
