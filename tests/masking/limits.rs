//! Limits hold for every request of a route, whatever its strategy and however fast its client is.

use crate::support::agent::{body, conversation, send};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{Answer, MockUpstream};

/// 2.50 USD per answer.
const PRICE: &str = "[models.m]\nwindow = 2000000\nencoding = \"o200k_base\"\ninput = 2.5\noutput = 10.0\n";

const KEY: (&str, &str) = ("authorization", "Bearer ada");

async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(
        200,
        r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":1000000,"completion_tokens":0}}"#,
    ));
    upstream
}

async fn ask(tidegate: &Tidegate, headers: &[(&str, &str)], turns: usize) -> Reply {
    exchange(tidegate.address, post(CHAT, headers, body("m", &conversation(turns), &[]))).await
}

fn is_refused(reply: &Reply, code: &str) {
    assert_eq!((reply.status, reply.error_code().as_str()), (422, code), "{}", reply.text());
}

/// Whatever makes a request pass unedited: its headers, or the route.
const UNEDITED: [(&str, &[(&str, &str)]); 3] = [
    ("", &[("x-tidegate-bypass", "1")]),
    ("", &[("x-tidegate-strategy", "passthrough")]),
    ("strategy = \"passthrough\"\n", &[]),
];

#[tokio::test]
async fn what_passes_unedited_still_has_limits() {
    for (strategy, header) in UNEDITED {
        for id in [&[("x-conversation-id", "c")][..], &[]] {
            let upstream = upstream().await;
            let limits = "[context.limits]\nmax_cost_usd = 4.0\nmax_turns = 5\n";
            let config = format!("[store]\nurl = \"memory:\"\n[context]\n{strategy}{limits}{PRICE}");
            let tidegate = Tidegate::start(&config, &upstream).await;
            let headers = [&[KEY], header, id].concat();
            for turns in 0..2 {
                let sent = body("m", &conversation(turns), &[]);
                let (reply, arrived) = send(&tidegate, &upstream, &headers, &sent).await;
                assert_eq!(arrived, sent, "{headers:?}");
                assert_eq!(reply.header("x-tidegate-strategy"), Some("passthrough"));
            }
            is_refused(&ask(&tidegate, &headers, 2).await, "max_cost_exceeded");
            is_refused(&ask(&tidegate, &headers, 5).await, "max_turns_exceeded");
            // What was passed on unedited counts for the rest, too.
            is_refused(&ask(&tidegate, &[&[KEY], id].concat(), 2).await, "max_cost_exceeded");
        }
    }
}

#[tokio::test]
async fn the_cost_of_nobody_is_not_limited_but_refused() {
    let upstream = upstream().await;
    let config = format!("[store]\nurl = \"memory:\"\n[context.limits]\nmax_cost_usd = 4.0\n{PRICE}");
    let tidegate = Setup::listening(&config, "0.0.0.0:0").before(&upstream).start().await;
    for headers in [&[][..], &[("x-conversation-id", "c")], &[("authorization", "Bearer ")]] {
        let reply = ask(&tidegate, headers, 1).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (401, "credentials_required"));
    }
    assert_eq!(upstream.connections(), 0);
    assert_eq!(ask(&tidegate, &[KEY], 1).await.status, 200);
}

/// The next request can come before the turn is counted, unless the answer waits for that.
#[tokio::test]
async fn a_fast_client_does_not_outrun_its_limit() {
    let upstream = upstream().await;
    let config = format!("[store]\nurl = \"embedded:state\"\n[context.limits]\nmax_cost_usd = 4.0\n{PRICE}");
    let tidegate = Tidegate::start(&config, &upstream).await;
    for run in 0..5 {
        let (name, owner) = (format!("c{run}"), format!("Bearer {run}"));
        for headers in [&[KEY, ("x-conversation-id", &name)][..], &[("authorization", &owner)]] {
            for turns in 0..2 {
                assert_eq!(ask(&tidegate, headers, turns).await.status, 200);
            }
            is_refused(&ask(&tidegate, headers, 2).await, "max_cost_exceeded");
        }
    }
}
