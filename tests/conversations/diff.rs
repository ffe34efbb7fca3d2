//! The changes that a turn's page shows are exactly those made to the forwarded request.

use super::ask::{json, put, until_counted};
use super::scene::in_memory;
use crate::support::agent::{EVERY_TURN, Message, body, conversation, send};
use crate::support::tidegate::Tidegate;
use crate::support::within;
use serde_json::Value;
use tidegate_testkit::MockUpstream;

const FOLD: &str = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { turns = 3 }\nkeep = { turns = 2 }\nmode = \"inline\"\n";
const WINDOW: &str = "[context]\nstrategy = \"window\"\n[context.budget]\nmax_input = 1500\n[context.window]\nhead_min = 1\ntail_min = 2\n";

/// The messages of a body.
fn messages(body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

/// The messages on one side of a change, rebuilt from its lines.
fn side(change: &Value, gone: &str) -> Vec<Value> {
    let lines = change["lines"].as_array().unwrap().iter().filter(|line| line["op"] != gone);
    let lines: Vec<&str> = lines.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(change["omitted"], 0);
    // An escaped line break in the text is followed by one that is only for display.
    let text = lines.join("\n").replace("\\n\n    ", "\\n");
    serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect()
}

/// The client's messages with every change applied.
fn changed(sent: &[Value], page: &Value) -> Vec<Value> {
    let changes = page["changes"].as_array().unwrap();
    let mut forwarded = Vec::new();
    for (index, message) in sent.iter().enumerate() {
        let here = |kind: &'static str| {
            changes.iter().filter(move |one| one["kind"] == *kind).filter(move |one| {
                (one["first"].as_u64().unwrap()..=one["last"].as_u64().unwrap()).contains(&(index as u64))
            })
        };
        here("inserted").for_each(|one| forwarded.extend(side(one, "-")));
        if let Some(removed) = here("removed").next() {
            assert!(side(removed, "+").contains(message), "the removed message differs from what was sent");
        } else if let Some(one) = here("changed").next() {
            assert_eq!(side(one, "+"), std::slice::from_ref(message));
            forwarded.extend(side(one, "-"));
        } else {
            forwarded.push(message.clone());
        }
    }
    forwarded
}

async fn turn(tidegate: &Tidegate, number: usize) -> Value {
    json(tidegate, &format!("/api/conversations/build-7/turns/{number}?limit=500")).await
}

/// Sends a run and compares every turn's page with the forwarded request. Returns both.
async fn compared(config: &str, turns: usize, notes: Option<&str>) -> Vec<(String, Value)> {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory(config, &upstream).start().await;
    let mut played = Vec::new();
    for number in 1..=turns {
        let sent = body("gpt-4o", &conversation(number), &[]);
        let (_, forwarded) = send(&tidegate, &upstream, &[("x-conversation-id", "build-7")], &sent).await;
        until_counted(&tidegate, number as u64).await;
        if let Some(notes) = notes.filter(|_| number == 1) {
            let target = "/api/conversations/build-7/memory";
            assert_eq!(put(tidegate.admin, target, &[], "text/plain", notes).await.status, 204);
        }
        played.push((sent, forwarded));
    }
    let mut pages = Vec::new();
    for (number, (sent, forwarded)) in (1..).zip(played) {
        let page = turn(&tidegate, number).await;
        assert_eq!(page["missing"], Value::Null, "turn {number}");
        assert_eq!(changed(&messages(&sent), &page), messages(&forwarded), "turn {number}");
        assert_eq!(page["explanation"]["usage"]["after"], page["turn"]["tokens_after"]);
        pages.push((forwarded, page));
    }
    pages
}

#[tokio::test]
async fn masked_turns_match_the_upstreams_request() {
    let pages = compared(EVERY_TURN, 6, None).await;
    let (_, last) = &pages[5];
    assert_eq!(last["explanation"]["verdict"]["masked"], 4);
    assert_eq!(last["cause"], "every_turn: an observation has left the window, and the pace follows at once");
    let masked = &last["explanation"]["messages"][3];
    assert_eq!((&masked["action"], &masked["tool"]), (&"mask".into(), &"shell".into()));
    assert_eq!(masked["why"], "older than mask.keep = { turns = 2 }");
}

#[tokio::test]
async fn folded_turns_with_pinned_memory_match_the_upstreams_request() {
    let pages = compared(FOLD, 8, Some("The ship is Ada.")).await;
    let (forwarded, last) = &pages[7];
    assert!(
        forwarded.contains("The ship is Ada.") && forwarded.contains("<conversation_record>"),
        "{forwarded}"
    );
    let titles = last["changes"].to_string();
    assert!(titles.contains("the pinned memory") && titles.contains("a summary that stands for"), "{titles}");
    assert!(last["summary"]["summary"].is_object(), "{last}");
    assert_eq!(last["explanation"]["folding"]["cause"], last["turn"]["trigger"]);
    let (_, second) = &pages[1];
    let sentence = second["explanation"]["verdict"]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("fits: forwarded with the pinned memory added, "), "{sentence}");
    assert!(last["turn"]["folded_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn windowed_turns_match_the_upstreams_request() {
    let pages = compared(WINDOW, 10, None).await;
    let (_, last) = &pages[9];
    assert!(last["explanation"]["verdict"]["dropped"].as_u64().unwrap() > 0, "{last}");
    assert!(last["turn"]["dropped_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn each_branch_shows_its_own_messages() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory(EVERY_TURN, &upstream).start().await;
    let named = [("x-conversation-id", "build-7")];
    for (number, text) in [(1, "no"), (2, "yes")] {
        let mut talk = conversation(4);
        talk.push(Message::user(text));
        let sent = body("gpt-4o", &talk, &[]);
        let (_, forwarded) = send(&tidegate, &upstream, &named, &sent).await;
        until_counted(&tidegate, number).await;
        let page = turn(&tidegate, usize::try_from(number).unwrap()).await;
        assert_eq!(changed(&messages(&sent), &page), messages(&forwarded));
    }
    let first = turn(&tidegate, 1).await;
    assert_eq!((&first["messages_total"], &first["missing"]), (&11.into(), &Value::Null));
}

#[tokio::test]
async fn without_raw_messages_the_figures_remain() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory(&format!("[store]\nraw = false\n{EVERY_TURN}"), &upstream).start().await;
    let sent = body("gpt-4o", &conversation(4), &[]);
    send(&tidegate, &upstream, &[("x-conversation-id", "build-7")], &sent).await;
    until_counted(&tidegate, 1).await;
    let page = turn(&tidegate, 1).await;
    assert_eq!(page["missing"], "`store.raw` is false: messages are not recorded");
    assert_eq!((&page["turn"]["masked"], &page["explanation"]), (&serde_json::json!([3, 5]), &Value::Null));
    assert!(page["turn"]["saved_by_masking"].as_u64().unwrap() > 100, "{page}");
}

#[tokio::test]
async fn observed_turns_are_forwarded_unchanged_and_save_nothing() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory(&format!("[context]\nobserve = true\n{EVERY_TURN}"), &upstream).start().await;
    let sent = body("gpt-4o", &conversation(4), &[]);
    let (_, forwarded) = send(&tidegate, &upstream, &[("x-conversation-id", "build-7")], &sent).await;
    assert_eq!(forwarded, sent);
    let list = until_counted(&tidegate, 1).await;
    let one = &list["conversations"][0];
    assert_eq!(one["tokens_after"], one["tokens_before"]);
    assert_eq!(one["unedited_cost_usd"], one["cost_usd"]);
    let page = turn(&tidegate, 1).await;
    assert_eq!((&page["turn"]["observed"], &page["changes"]), (&true.into(), &serde_json::json!([])));
    assert_eq!(
        page["turn"]["masked"],
        serde_json::json!([3, 5]),
        "the masks that would have been made are not recorded"
    );
    let overview = async {
        loop {
            let totals = json(&tidegate, "/api/overview").await["totals"].clone();
            if totals["requests"] == 1 {
                return totals;
            }
        }
    };
    let totals = within("the request is counted", overview).await;
    assert_eq!((&totals["tokens_after"], &totals["masked"]), (&totals["tokens_before"], &0.into()));
}
