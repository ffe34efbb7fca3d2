//! A request over budget is refused with its token counts; an unreadable one is forwarded unchanged.

use crate::support::agent::{EVERY_TURN, Message, body, conversation, send};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::figure;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream};

#[tokio::test]
async fn a_request_over_budget_is_refused_with_its_token_counts() {
    let upstream = MockUpstream::start().await;
    let config =
        format!("[models.\"tiny\"]\nwindow = 2000\n{EVERY_TURN}[context.budget]\nrefuse_at = \"budget\"\n");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let mut messages = conversation(3);
    messages.push(Message::user(&"far too much to say ".repeat(400)));
    let reply = exchange(tidegate.address, post(CHAT, &[], body("tiny", &messages, &[]))).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
    assert_eq!(figure(&reply, "x-tidegate-budget"), 2000 - 400 - 1024);
    let after = figure(&reply, "x-tidegate-tokens-after");
    assert!(after > 576 && after < figure(&reply, "x-tidegate-tokens-before"));
    assert_eq!(reply.header("x-tidegate-edits"), Some("masked=1,folded=0,dropped=0"));
    assert_eq!(reply.header("x-tidegate-route"), Some("default"));
    let text = reply.text();
    for figure in [after.to_string().as_str(), "576", "2000", "400", "1024"] {
        assert!(text.contains(figure), "{figure} is not in {text}");
    }
    assert!(!text.contains("far too much"), "the refusal repeats the prompt");
    assert_eq!(upstream.connections(), 0, "nothing reached the upstream");
}

/// Servers such as llama.cpp's shorten an answer that has no room, so only a prompt that leaves none at all is refused.
#[tokio::test]
async fn an_answer_as_long_as_a_configured_window_is_the_upstreams_to_judge() {
    let upstream = MockUpstream::start().await;
    let config = "[models.\"tiny\"]\nwindow = 4096\nencoding = \"o200k_base\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let asking = |text: &str| {
        format!(r#"{{"model":"tiny","max_tokens":4096,"messages":[{{"role":"user","content":"{text}"}}]}}"#)
    };
    let (_, arrived) = send(&tidegate, &upstream, &[], &asking("hi")).await;
    assert_eq!(arrived, asking("hi"));
    let (_, arrived) = send(&tidegate, &upstream, &[], &asking(&"word ".repeat(4_000))).await;
    assert_eq!(arrived, asking(&"word ".repeat(4_000)));
    let reply = exchange(tidegate.address, post(CHAT, &[], asking(&"word ".repeat(4_096)))).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
}

#[tokio::test]
async fn the_budget_overrides_the_pace() {
    let upstream = MockUpstream::start().await;
    let config =
        "[models.\"tiny\"]\nwindow = 2900\n[context.mask]\nkeep = { turns = 2 }\npace = { batch = 50 }\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let mut causes = Vec::new();
    for turns in 1..10 {
        let (reply, _) = send(&tidegate, &upstream, &[], &body("tiny", &conversation(turns), &[])).await;
        assert!(figure(&reply, "x-tidegate-tokens-after") <= figure(&reply, "x-tidegate-budget"));
        causes.extend(reply.header("x-tidegate-trigger").map(str::to_owned));
    }
    assert!(!causes.is_empty() && causes.iter().all(|cause| cause == "budget"), "{causes:?}");
}

#[tokio::test]
async fn a_refused_request_stores_no_decision() {
    let upstream = MockUpstream::start().await;
    let config = "[models.\"tiny\"]\nwindow = 2000\nencoding = \"o200k_base\"\n[models.\"wide\"]\nwindow = 100000\n\
                  [context.mask]\nkeep = { turns = 1 }\npace = { batch = 3 }\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let mut messages = conversation(3);
    messages.push(Message::user(&"far too much to say ".repeat(800)));
    let reply = exchange(tidegate.address, post(CHAT, &[], body("tiny", &messages, &[]))).await;
    assert_eq!(reply.status, 422);
    // If the frontier had been stored, two results would be masked here.
    let sent = body("wide", &messages, &[]);
    assert_eq!(send(&tidegate, &upstream, &[], &sent).await.1, sent);
}

#[tokio::test]
async fn unreadable_bodies_are_forwarded_unchanged() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for body in [
        &b"not json"[..],
        b"",
        b"[]",
        b"{\"model\":\"gpt-4o\"}",
        b"{\"messages\":5}",
        b"{\"messages\":[1]}",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},]}",
        b"{\"messages\":[{\"role\":\"user\",\"role\":\"tool\",\"content\":\"a\"}]}",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]} trailing",
    ] {
        let reply = exchange(tidegate.address, post(CHAT, &[], body)).await;
        let name = body.escape_ascii().to_string();
        assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, Some("unreadable")), "{name}");
        assert_eq!(reply.header("x-tidegate-edits"), None, "{name}");
        assert_eq!(upstream.next_request().await.body, body, "{name}");
    }
}

#[tokio::test]
async fn duplicate_messages_members_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for body in
        ["{\"messages\":[],\"messages\":[]}", "{\"messages\":1,\"m\\u0065ssages\":[{\"role\":\"user\"}]}"]
    {
        let reply = exchange(tidegate.address, post(CHAT, &[], body)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "ambiguous_request"), "{body}");
    }
    assert_eq!(upstream.connections(), 0);
}
