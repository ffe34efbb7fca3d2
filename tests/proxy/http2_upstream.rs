//! HTTP/2 upstreams under load, and upstreams that abuse it: the client gets a complete answer or a clear error, nothing leaks, and the
//! next request is served.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get, post};
use crate::support::raw_http2::{
    Act, INTERNAL_ERROR, REFUSED_STREAM, Script, data, frame, go_away, headers, raw_http2, reset,
};
use crate::support::reply::{End, Reply};
use crate::support::tidegate::{Setup, Tidegate};
use std::sync::Arc;
use tidegate_testkit::{Listen, MockUpstream, Recording};

const JSON: [(&str, &str); 2] = [(":status", "200"), ("content-type", "application/json")];
const EVENTS: [(&str, &str); 2] = [(":status", "200"), ("content-type", "text/event-stream")];

/// Clients at once, and requests of each.
const CLIENTS: usize = 64;
const REQUESTS: usize = 313;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_requests_share_one_connection() {
    let upstream = MockUpstream::bind(([127, 0, 0, 1], 0).into(), Listen::Tls, Recording::Off).await;
    let config = "[server]\nworkers = 1\n[store]\nurl = \"memory:\"\n[upstreams.default]\nca = \"ca.pem\"\n";
    let setup = Setup::new(config).file("ca.pem", upstream.ca_pem()).upstream(&upstream.url());
    let tidegate = setup.start().await;
    let address = tidegate.address;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for _ in 0..REQUESTS {
                    client.send(chat()).await;
                    let reply = client.reply().await;
                    assert_eq!((reply.status, reply.end), (200, End::Complete), "{}", reply.text());
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(upstream.connections(), 1, "the connection broke");
    let log = tidegate.stop().await;
    assert_eq!(log.matches("\"outcome\":\"answered\"").count(), CLIENTS * REQUESTS);
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// What an upstream does with a request on this stream.
type Play = fn(u32) -> Vec<Act>;

/// Tidegate in front of an upstream that plays `first` for the first request and answers all others.
async fn abused(first: impl Fn(u32) -> Vec<Act> + Send + Sync + 'static) -> Tidegate {
    let script: Script = Arc::new(move |number, stream| match number {
        0 => first(stream),
        _ => answer(stream),
    });
    before(script).await
}

async fn before(script: Script) -> Tidegate {
    let address = raw_http2(script).await;
    let config = "[server]\nworkers = 1\n[upstreams.default]\nprotocol = \"http2\"\nfirst_byte_timeout = \"2s\"\n\
                  idle_timeout = \"2s\"\n";
    Setup::new(config).upstream(&format!("http://{address}")).start().await
}

fn answer(stream: u32) -> Vec<Act> {
    vec![Act::Send(headers(stream, false, &JSON)), Act::Send(data(stream, true, "{}"))]
}

async fn assert_recovers(tidegate: &Tidegate, what: &str) {
    let reply = exchange(tidegate.address, chat()).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"), "{what}");
}

fn assert_failed(reply: &Reply, code: &str, what: &str) {
    assert_eq!(reply.error_code(), code, "{what}: {}", reply.text());
}

#[tokio::test]
async fn a_request_without_an_answer_is_a_clear_error() {
    let cases: [(&str, Play, u16, &str); 8] = [
        ("a reset", |stream| vec![Act::Send(reset(stream, INTERNAL_ERROR))], 502, "upstream_unreachable"),
        ("the end of the connection", |_| vec![Act::Close], 502, "upstream_unreachable"),
        (
            "GOAWAY that covers the stream, then the end",
            |stream| vec![Act::Send(go_away(stream, INTERNAL_ERROR)), Act::Close],
            502,
            "upstream_unreachable",
        ),
        ("garbage", |_| vec![Act::Send(vec![0xff; 64]), Act::Close], 502, "upstream_unreachable"),
        (
            "a frame of a stream that was never opened",
            |_| vec![Act::Send(data(99, true, "x"))],
            502,
            "upstream_unreachable",
        ),
        (
            "headers that cannot be decoded",
            |stream| vec![Act::Send(frame(1, 4, stream, &[0xff; 8]))],
            502,
            "upstream_unreachable",
        ),
        (
            "interim responses without end",
            |stream| {
                (0..200)
                    .map(|_| Act::Send(headers(stream, false, &[(":status", "103"), ("link", "x")])))
                    .collect()
            },
            502,
            "upstream_unreachable",
        ),
        ("silence", |_| Vec::new(), 504, "upstream_timeout"),
    ];
    for (what, script, status, code) in cases {
        let tidegate = abused(script).await;
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!(reply.status, status, "{what}: {}", reply.text());
        assert_failed(&reply, code, what);
        assert_recovers(&tidegate, what).await;
    }
}

#[tokio::test]
async fn a_request_that_was_not_processed_is_sent_again() {
    let cases: [(&str, Play); 2] = [
        ("a refused stream", |stream| vec![Act::Send(reset(stream, REFUSED_STREAM))]),
        ("GOAWAY below the stream", |_| vec![Act::Send(go_away(0, 0)), Act::Close]),
    ];
    for (what, script) in cases {
        let tidegate = abused(script).await;
        assert_recovers(&tidegate, what).await;
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_never_looks_complete() {
    let endings: [(&str, Play); 4] = [
        ("a reset", |stream| vec![Act::Send(reset(stream, INTERNAL_ERROR))]),
        ("the end of the connection", |_| vec![Act::Close]),
        ("GOAWAY and the end", |stream| vec![Act::Send(go_away(stream, 0)), Act::Close]),
        ("a stall", |_| Vec::new()),
    ];
    for (what, ending) in endings {
        let tidegate = abused(move |stream| {
            let mut acts = vec![
                Act::Send(headers(stream, false, &EVENTS)),
                Act::Send(data(stream, false, "data: {\"n\":1}\n\n")),
            ];
            acts.extend(ending(stream));
            acts
        })
        .await;
        let reply = exchange(tidegate.address, chat()).await;
        let (text, code) =
            (reply.text(), if what == "a stall" { "upstream_timeout" } else { "upstream_unreachable" });
        let (begin, last) = text.split_once("\n\n").unwrap();
        assert_eq!((reply.status, reply.end, begin), (200, End::Complete, "data: {\"n\":1}"), "{what}");
        assert!(last.starts_with("data: {\"error\":") && last.contains(code), "{what}: {text}");
        assert_recovers(&tidegate, what).await;

        let tidegate = abused(move |stream| {
            let announced = [JSON[0], JSON[1], ("content-length", "100")];
            let mut acts = vec![
                Act::Send(headers(stream, false, &announced)),
                Act::Send(data(stream, false, "{\"a\":")),
            ];
            acts.extend(ending(stream));
            acts
        })
        .await;
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!((reply.status, reply.end), (200, End::BrokenOff), "{what}");
        assert_recovers(&tidegate, what).await;
    }
}

#[tokio::test]
async fn a_go_away_lets_answers_under_way_finish() {
    let tidegate = abused(|stream| {
        vec![
            Act::Send(headers(stream, false, &JSON)),
            Act::Send(go_away(stream, 0)),
            Act::Send(data(stream, true, "{\"last\":1}")),
        ]
    })
    .await;
    let reply = exchange(tidegate.address, chat()).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "{\"last\":1}"));
    assert_recovers(&tidegate, "the next request needs another connection").await;
}

/// Requests whose bodies are passed on as they arrive cannot be sent twice, but nothing of them has been sent.
#[tokio::test]
async fn what_is_passed_on_after_a_go_away_gets_another_connection() {
    let requests = [get("/v1/files"), post("/v1/files", &[], "a file"), post("/v1/files", &[], "")];
    for request in requests {
        let tidegate = abused(|stream| {
            vec![
                Act::Send(headers(stream, false, &JSON)),
                Act::Send(go_away(stream, 0)),
                Act::Send(data(stream, true, "{\"last\":1}")),
            ]
        })
        .await;
        assert_eq!(exchange(tidegate.address, chat()).await.text(), "{\"last\":1}");
        let reply = exchange(tidegate.address, request).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    }
    // Nor has anything been taken from a body that is empty.
    let tidegate = abused(|_| vec![Act::Send(go_away(0, 0)), Act::Close]).await;
    let reply = exchange(tidegate.address, get("/v1/files")).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
}

#[tokio::test]
async fn trailers_and_empty_frames_end_an_answer() {
    let endings: [fn(u32) -> Vec<u8>; 2] =
        [|stream| headers(stream, true, &[("x-trailer", "1")]), |stream| data(stream, true, "")];
    for ending in endings {
        let tidegate = abused(move |stream| {
            vec![
                Act::Send(headers(stream, false, &JSON)),
                Act::Send(data(stream, false, "{\"a\":1}")),
                Act::Send(ending(stream)),
            ]
        })
        .await;
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!((reply.status, reply.end, reply.text().as_str()), (200, End::Complete, "{\"a\":1}"));
        assert_recovers(&tidegate, "after it").await;
    }
}

/// The upstream takes the first 64 KiB of a request and opens no window for the rest.
#[tokio::test]
async fn an_upstream_that_stops_reading_times_out() {
    let tidegate = before(Arc::new(|_, stream| answer(stream))).await;
    let long = QUESTION.replace("hi", &"x".repeat(200_000));
    let reply = exchange(tidegate.address, post(CHAT, &[], long)).await;
    assert_eq!(reply.status, 504, "{}", reply.text());
    assert_failed(&reply, "upstream_timeout", "no window");
    assert_recovers(&tidegate, "a small request").await;
}
