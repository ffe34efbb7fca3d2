//! A replay edits a conversation byte for byte like the running proxy.

use super::command::replay_in;
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, Trajectory, until};

/// Replays the lines under the configured route, sends each reconstructed request to a real proxy, and compares what reaches the
/// upstream. Returns the totals.
async fn assert_matches_proxy(context: &str, lines: &[String]) -> Edits {
    let config = format!("[store]\nurl = \"memory:\"\n{context}");
    let args = ["--policy", "route:default", "--gap", "1ms", "--forwarded", "forwarded.jsonl"];
    let directory = TempDir::new().unwrap();
    let output = replay_in(&directory, Some(&config), lines, &args);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let text = std::fs::read_to_string(directory.path().join("forwarded.jsonl")).unwrap();
    let upstream = MockUpstream::start().await;
    let answer = json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "ok" } }] });
    upstream.answer(Answer::json(200, answer.to_string()));
    let tidegate = Setup::new(&config).upstream(&upstream.url()).start().await;
    let mut edits = Edits::default();
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if line["policy"] != "route:default" {
            continue;
        }
        let (id, sent) = (line["conversation"].as_str().unwrap(), line["sent"].as_str().unwrap());
        let reply = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", id)], sent)).await;
        match line["forwarded"].as_str() {
            Some(forwarded) => {
                assert_eq!(reply.status, 200, "{}", reply.text());
                let arrived = String::from_utf8(upstream.next_request().await.body).unwrap();
                assert_eq!(arrived, forwarded, "request {} of {id}", line["request"]);
                edits.count(sent, forwarded);
            }
            None => {
                assert_eq!(reply.status, 422, "request {} of {id}: {}", line["request"], reply.text());
                edits.refused += 1;
            }
        }
        // A background summary is available from the next request on.
        let summaries = line["summaries"].as_u64().unwrap();
        until_summarized(&tidegate, id, summaries).await;
        edits.summaries = edits.summaries.max(summaries);
    }
    edits
}

/// Counts edits, so that a test cannot pass because nothing was edited.
#[derive(Debug, Default)]
struct Edits {
    requests: usize,
    edited: usize,
    masked: usize,
    with_summary: usize,
    with_marker: usize,
    refused: usize,
    summaries: u64,
}

impl Edits {
    fn count(&mut self, sent: &str, forwarded: &str) {
        self.requests += 1;
        self.edited += usize::from(sent != forwarded);
        self.masked += forwarded.matches("OMITTED_OBSERVATION").count();
        self.with_summary += usize::from(forwarded.contains("<conversation_record>"));
        self.with_marker += usize::from(forwarded.contains("of this conversation"));
    }
}

/// Waits until the conversation has this many summaries.
async fn until_summarized(tidegate: &Tidegate, id: &str, wanted: u64) {
    if wanted == 0 {
        return;
    }
    let path = format!("/api/conversations/{id}");
    until("a summary in the background", async || {
        let reply = admin(tidegate.admin, &path).await;
        let page: Value = serde_json::from_str(&reply.text()).unwrap_or_default();
        page["summaries"].as_array().is_some_and(|summaries| summaries.len() as u64 >= wanted)
    })
    .await;
}

fn runs(turns: usize, question_every: usize) -> Vec<String> {
    let shape = Trajectory { turns, output: 250.0, system: 200, question_every, ..Trajectory::default() };
    (1..=2).map(|seed| shape.line(seed)).collect()
}

#[tokio::test]
async fn masks_match_the_proxy_at_every_pace() {
    for pace in ["\"every_turn\"", "{ batch = 4 }", "\"break_even\""] {
        let edits = assert_matches_proxy(
            &format!("[context.mask]\nkeep = {{ turns = 3 }}\npace = {pace}\n"),
            &runs(24, 0),
        )
        .await;
        assert!(edits.masked > 20 && edits.edited > 10 && edits.requests == 50, "{pace}: {edits:?}");
    }
}

#[tokio::test]
async fn background_summaries_match_the_proxy() {
    let context = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { user_turns = 3 }\nkeep = { turns = 3 }\n";
    let edits = assert_matches_proxy(context, &runs(24, 2)).await;
    assert!(edits.with_summary > 20 && edits.summaries >= 3, "{edits:?}");
}

#[tokio::test]
async fn break_even_summaries_match_the_proxy() {
    let context = "[context]\nstrategy = \"hybrid\"\n[context.mask]\nkeep = { turns = 5 }\n[context.fold]\n\
                   when = { user_turns = 8 }\npace = \"break_even\"\n";
    let edits = assert_matches_proxy(context, &runs(30, 2)).await;
    assert!(edits.with_summary > 10 && edits.masked > 0, "{edits:?}");
}

#[tokio::test]
async fn summaries_that_the_budget_requires_match_the_proxy() {
    let context = "[context]\nstrategy = \"hybrid\"\n[context.fold]\nmode = \"inline\"\n[context.budget]\nmax_input = 5000\n";
    let edits = assert_matches_proxy(context, &runs(24, 0)).await;
    assert!(edits.with_summary > 10 && edits.summaries >= 2, "{edits:?}");
}

#[tokio::test]
async fn windows_match_the_proxy() {
    let context = "[context]\nstrategy = \"window\"\n[context.budget]\nmax_input = 6000\n";
    let edits = assert_matches_proxy(context, &runs(24, 0)).await;
    assert!(edits.with_marker > 5, "{edits:?}");
}

#[tokio::test]
async fn refusals_match_the_proxy() {
    let context = "[context.mask]\nkeep = { turns = 5 }\n[context.budget]\nmax_input = 4000\n";
    let edits = assert_matches_proxy(context, &runs(20, 0)).await;
    assert!(edits.refused > 2 && edits.edited > 2, "{edits:?}");
}

#[tokio::test]
async fn limits_match_the_proxy_whatever_the_strategy() {
    let context = "[context]\nstrategy = \"passthrough\"\n[context.limits]\nmax_turns = 5\n";
    let edits = assert_matches_proxy(context, &runs(12, 0)).await;
    assert!(edits.refused > 4 && edits.requests > 4 && edits.edited == 0, "{edits:?}");
}

#[tokio::test]
async fn a_summary_that_would_not_pay_yet_is_tried_again_as_in_the_proxy() {
    let context = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { user_turns = 2 }\nkeep = { turns = 1 }\nmode = \"inline\"\n";
    let mut messages = Vec::new();
    // At first, a summary would be longer than what it replaces.
    for turn in 0..12 {
        let times = if turn < 6 { 1 } else { 120 };
        messages.push(json!({ "role": "user", "content": format!("Berth {turn} has {} bollards. ", 3 * turn).repeat(times) }));
        messages.push(json!({ "role": "assistant", "content": "noted" }));
    }
    let line = json!({ "id": "short", "model": "gpt-4o", "messages": messages }).to_string();
    let edits = assert_matches_proxy(context, &[line]).await;
    assert!(edits.with_summary > 0 && edits.with_summary < 8, "{edits:?}");
}

#[tokio::test]
async fn every_profile_with_client_side_history_matches_the_proxy() {
    // Small windows; the story profile reserves 10,500 tokens.
    for (profile, window) in
        [("agent", 16_384), ("budgeted-chat", 16_384), ("story", 22_000), ("assistant", 16_384)]
    {
        let context = format!(
            "[context]\nprofile = \"{profile}\"\n[context.budget]\nfallback_window = {window}\n[models.harbour-1]\ninput = 1.0\ncached_input = 1.0\noutput = 2.0\n"
        );
        // An unknown model has the fallback window.
        let lines: Vec<String> = runs(24, 3).iter().map(|line| line.replace("gpt-4o", "harbour-1")).collect();
        let edits = assert_matches_proxy(&context, &lines).await;
        assert!(edits.edited > 2 && edits.requests + edits.refused == 50, "{profile}: {edits:?}");
    }
}

#[tokio::test]
async fn text_protocol_observations_match_the_proxy() {
    let mut messages = vec![r#"{"role":"user", "content":"Mend it, \u00e9t c\u00e6tera."}"#.to_owned()];
    for turn in 0..12 {
        let output = "one line of output\\n".repeat(30);
        messages.push(format!(r#"{{"content" : "look {turn}", "role":"assistant","x_n":1.50e3}}"#));
        // Two turns a second, so that the cache stays warm.
        let at = 1_700_000_000.0 + f64::from(turn) / 2.0;
        messages.push(format!(r#"{{"timestamp":{at},"role":"user","content":"OBSERVATION: {output}"}}"#));
    }
    messages.push(r#"{"role":"assistant","content":"done"}"#.to_owned());
    let line = format!(r#"{{"id":"odd","model":"gpt-4o","messages":[ {} ]}}"#, messages.join(" , "));
    let context = "[context.observations]\nuser_pattern = '^OBSERVATION:'\n[context.mask]\nkeep = { turns = 2 }\npace = \"every_turn\"\n";
    let edits = assert_matches_proxy(context, &[line]).await;
    assert!(edits.masked > 20 && edits.requests == 13, "{edits:?}");
}

#[tokio::test]
async fn request_logs_match_the_proxy() {
    let shape = Trajectory { turns: 12, output: 250.0, system: 100, ..Trajectory::default() };
    let mut lines = Vec::new();
    let histories: Vec<Vec<Value>> = (1..=2).map(|seed| shape.messages(seed)).collect();
    for end in 1..12 {
        for (number, history) in histories.iter().enumerate() {
            let body = json!({ "seed": number, "messages": history[..2 * end], "model": "gpt-4o", "max_tokens": 400 });
            lines.push(
                json!({ "headers": { "X-Conversation-Id": format!("log-{number}") }, "body": body })
                    .to_string(),
            );
        }
    }
    let edits =
        assert_matches_proxy("[context.mask]\nkeep = { turns = 2 }\npace = \"every_turn\"\n", &lines).await;
    assert!(edits.requests == 22 && edits.masked > 20, "{edits:?}");
}
