//! An observed run tells the same figures as an applied one, as what would have been.

use crate::support::agent::{EVERY_TURN, body, conversation, send};
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::reply::{Reply, figure};
use crate::support::tidegate::Tidegate;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream, until};

/// An upstream that reports no usage, so that both runs are billed by our own count.
async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    let message = json!({ "role": "assistant", "content": "ok" });
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": message });
    upstream
        .answer(Answer::json(200, json!({ "id": "c", "object": "chat.completion", "choices": [choice] })));
    upstream
}

async fn overview(tidegate: &Tidegate, requests: u64) -> Value {
    let mut page = Value::Null;
    until("all requests are in the overview", async || {
        page = admin(tidegate.admin, "/api/overview").await.json();
        page["totals"]["requests"] == requests && !page["totals"]["cost_usd"].is_null()
    })
    .await;
    page["totals"].clone()
}

fn reported(reply: &Reply) -> (u64, u64, Option<String>) {
    let edits = reply.header("x-tidegate-edits").map(str::to_owned);
    (figure(reply, "x-tidegate-tokens-before"), figure(reply, "x-tidegate-tokens-after"), edits)
}

#[tokio::test]
async fn observed_and_applied_runs_tell_the_same_figures() {
    let upstream = upstream().await;
    // Without a discount on cached input, neither side has to estimate what would have been cached.
    let config = format!("{EVERY_TURN}[models.\"gpt-4o\"]\ninput = 2.5\noutput = 10.0\n");
    let applied = Tidegate::start(&config, &upstream).await;
    let mut observed = Tidegate::start(&format!("[context]\nobserve = true\n{config}"), &upstream).await;
    for turns in 1..12 {
        let sent = body("gpt-4o", &conversation(turns), &[]);
        let headers = [("x-conversation-id", "c"), ("authorization", "Bearer ada")];
        let (one, _) = send(&applied, &upstream, &headers, &sent).await;
        let (other, arrived) = send(&observed, &upstream, &headers, &sent).await;
        assert_eq!(arrived, sent, "nothing is applied");
        assert_eq!(reported(&one), reported(&other), "{turns} turns");
        assert_eq!((one.header("x-tidegate-observe"), other.header("x-tidegate-observe")), (None, Some("1")));
    }
    let (one, other) = (overview(&applied, 11).await, overview(&observed, 11).await);
    assert_eq!(one["tokens_before"], other["tokens_before"]);
    assert_eq!(one["tokens_after"], other["would_tokens_after"], "{one} {other}");
    assert_eq!(other["tokens_after"], other["tokens_before"], "what was really forwarded");
    assert_eq!((&one["observed"], &other["observed"]), (&json!(0), &json!(11)));
    // What editing saved in the one, it would have saved in the other.
    let of = |totals: &Value, name: &str| totals[name].as_f64().unwrap();
    let (saved, would) = (of(&one, "avoided_usd"), of(&other, "would_avoid_usd"));
    assert!(saved > 0.0 && (saved - would).abs() / saved < 1e-6, "{saved} {would}");
    assert_eq!(of(&other, "avoided_usd"), 0.0);
    let metrics = admin(observed.admin, "/metrics").await.text();
    let counter = metrics
        .lines()
        .find(|line| line.starts_with("tidegate_observed_tokens_total") && line.contains("planned"));
    assert!(counter.is_some_and(|line| line.ends_with(&format!(" {}", one["tokens_after"]))), "{metrics}");
    let lines = observed.access_log(11).await;
    assert!(lines.iter().all(|line| line["observed"] == true), "{lines:?}");
}

/// Two routes of one conversation, one of which only observes.
#[tokio::test]
async fn what_would_have_been_is_told_of_all_turns_of_a_conversation() {
    let upstream = upstream().await;
    let config = "[models.\"gpt-4o\"]\ninput = 2.5\noutput = 10.0\n[context.mask]\nkeep = { turns = 2 }\npace = \"every_turn\"\n\
        [[routes]]\nname = \"watch\"\nmatch = { headers = { x-mode = \"watch\" } }\n[routes.context]\nobserve = true\n[[routes]]\nname = \"edit\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    for turns in 1..9 {
        let sent = body("gpt-4o", &conversation(turns), &[]);
        let mode = if turns < 5 { "watch" } else { "edit" };
        send(&tidegate, &upstream, &[("x-conversation-id", "c"), ("x-mode", mode)], &sent).await;
    }
    let read = async || admin(tidegate.admin, "/api/conversations/c").await.json();
    let is_counted = |page: &Value| {
        page["turns"].as_array().is_some_and(|all| all.len() == 8) && page["conversation"]["turns"] == 8
    };
    let page =
        crate::support::until("all turns are counted", Duration::from_secs(10), read, is_counted).await;
    let (turns, all) = (page["turns"].as_array().unwrap(), &page["conversation"]);
    assert_eq!(all["observed"], json!(4));
    // The record of a turn says what was planned, whether it was applied or not.
    let planned: u64 = turns.iter().map(|turn| turn["tokens_after"].as_u64().unwrap()).sum();
    assert_eq!(all["tokens_planned"], json!(planned), "{page}");
    let cost = |turn: &Value| turn["planned_cost_usd"].as_f64().or(turn["cost_usd"].as_f64()).unwrap();
    let (sum, told): (f64, f64) = (turns.iter().map(cost).sum(), all["planned_cost_usd"].as_f64().unwrap());
    assert!((sum - told).abs() < 1e-8, "{sum} {told}");
    assert!(all["tokens_planned"].as_u64() < all["tokens_after"].as_u64());
    // Each masked result is one, however many requests went without it; those of observed turns were forwarded.
    let mut masked: Vec<&Value> = turns.iter().flat_map(|turn| turn["masked"].as_array().unwrap()).collect();
    masked.sort_by_key(|index| index.as_u64());
    masked.dedup();
    let observed = turns[3]["masked"].as_array().unwrap().len();
    let totals = overview(&tidegate, 8).await;
    assert_eq!(totals["left_out"], json!(masked.len() - observed), "{totals}");
}

/// Limits refuse nothing while they are only observed, and every report says what they would have refused.
#[tokio::test]
async fn observed_limits_tell_what_they_would_have_refused() {
    for (limit, code) in
        [("max_turns = 3", "max_turns_exceeded"), ("max_cost_usd = 0.000001", "max_cost_exceeded")]
    {
        let upstream = upstream().await;
        let config = format!("{EVERY_TURN}[context.limits]\n{limit}\n");
        let applied = Tidegate::start(&config, &upstream).await;
        let mut observed = Tidegate::start(&format!("[context]\nobserve = true\n{config}"), &upstream).await;
        let headers = [("x-conversation-id", "c"), ("authorization", "Bearer ada")];
        let mut refused = Vec::new();
        for turns in 1..=6 {
            let sent = body("gpt-4o", &conversation(turns), &[]);
            let reply = exchange(applied.address, post(CHAT, &headers, &sent)).await;
            if reply.status == 200 {
                upstream.next_request().await;
            } else {
                assert_eq!((reply.status, reply.error_code().as_str()), (422, code));
                let read = async || admin(applied.admin, "/api/conversations/c").await.json();
                let is_told = |page: &Value| page["turns"][turns - 1]["reason"] == code;
                crate::support::until("the record to say why", Duration::from_secs(10), read, is_told).await;
                refused.push(turns);
            }
            let (reply, arrived) = send(&observed, &upstream, &headers, &sent).await;
            assert_eq!((reply.status, &arrived), (200, &sent), "nothing is refused, nothing is applied");
            let would = (refused.last() == Some(&turns)).then_some(code);
            assert_eq!(reply.header("x-tidegate-would-refuse"), would, "{limit}, {turns} turns");
            // The cost of this turn is counted before the next one asks for it.
            for process in [&applied, &observed] {
                let read = async || admin(process.admin, "/api/conversations/c").await.json();
                let is_counted =
                    |page: &Value| page["turns"].as_array().is_some_and(|all| all.len() == turns);
                crate::support::until("the turn is counted", Duration::from_secs(10), read, is_counted).await;
            }
        }
        assert!((1..6).contains(&refused.len()), "{limit}: {refused:?}");
        let (one, other) = (refusals(&applied).await, overview(&observed, 6).await);
        assert_eq!((one, &other["would_refuse"]), (refused.len() as u64, &json!(refused.len())), "{limit}");
        assert_eq!(other["refusals"], json!(0));
        let page = admin(observed.admin, "/api/conversations/c").await.json();
        let told =
            page["turns"].as_array().unwrap().iter().filter(|turn| turn["would_refuse"] == true).count();
        assert_eq!(told, refused.len(), "{limit}");
        let lines = observed.access_log(6).await;
        assert_eq!(lines.iter().filter(|line| line["would_refuse"] == true).count(), refused.len());
    }
}

async fn refusals(tidegate: &Tidegate) -> u64 {
    let mut refused = 0;
    until("all requests are in the overview", async || {
        let totals = admin(tidegate.admin, "/api/overview").await.json()["totals"].clone();
        refused = totals["refusals"].as_u64().unwrap_or_default();
        totals["requests"] == 6
    })
    .await;
    refused
}
