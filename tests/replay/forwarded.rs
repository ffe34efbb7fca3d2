//! What is edited in a replay is what the running proxy forwards for the same conversation, byte for byte.

use super::command::replay_in;
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, Trajectory, until};

/// Replays the lines under the configuration's own route, sends every request that the replay has reconstructed to a real proxy in
/// front of an upstream, and compares what arrives there. Gives what was edited, all requests together.
async fn is_what_the_proxy_forwards(context: &str, lines: &[String]) -> Seen {
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
    let mut seen = Seen::default();
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
                seen.count(sent, forwarded);
            }
            None => {
                assert_eq!(reply.status, 422, "request {} of {id}: {}", line["request"], reply.text());
                seen.refused += 1;
            }
        }
        // A summary in the background is there for the next request, and no earlier.
        let summaries = line["summaries"].as_u64().unwrap();
        summarized(&tidegate, id, summaries).await;
        seen.summaries = seen.summaries.max(summaries);
    }
    seen
}

/// What happened to the requests of a test, so that none of them passes because nothing happened.
#[derive(Debug, Default)]
struct Seen {
    requests: usize,
    edited: usize,
    masked: usize,
    with_summary: usize,
    with_marker: usize,
    refused: usize,
    summaries: u64,
}

impl Seen {
    fn count(&mut self, sent: &str, forwarded: &str) {
        self.requests += 1;
        self.edited += usize::from(sent != forwarded);
        self.masked += forwarded.matches("OMITTED_OBSERVATION").count();
        self.with_summary += usize::from(forwarded.contains("<conversation_record>"));
        self.with_marker += usize::from(forwarded.contains("of this conversation"));
    }
}

/// Waits until the conversation has so many summaries.
async fn summarized(tidegate: &Tidegate, id: &str, wanted: u64) {
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
        let seen = is_what_the_proxy_forwards(
            &format!("[context.mask]\nkeep = {{ turns = 3 }}\npace = {pace}\n"),
            &runs(24, 0),
        )
        .await;
        assert!(seen.masked > 20 && seen.edited > 10 && seen.requests == 50, "{pace}: {seen:?}");
    }
}

#[tokio::test]
async fn background_summaries_match_the_proxy() {
    let context = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { user_turns = 3 }\nkeep = { turns = 3 }\n";
    let seen = is_what_the_proxy_forwards(context, &runs(24, 2)).await;
    assert!(seen.with_summary > 20 && seen.summaries >= 3, "{seen:?}");
}

#[tokio::test]
async fn break_even_summaries_match_the_proxy() {
    let context = "[context]\nstrategy = \"hybrid\"\n[context.mask]\nkeep = { turns = 5 }\n";
    let seen = is_what_the_proxy_forwards(context, &runs(30, 2)).await;
    assert!(seen.with_summary > 10 && seen.masked > 0, "{seen:?}");
}

#[tokio::test]
async fn summaries_that_the_budget_requires_match_the_proxy() {
    let context = "[context]\nstrategy = \"hybrid\"\n[context.fold]\nmode = \"inline\"\n[context.budget]\nmax_input = 5000\n";
    let seen = is_what_the_proxy_forwards(context, &runs(24, 0)).await;
    assert!(seen.with_summary > 10 && seen.summaries >= 2, "{seen:?}");
}

#[tokio::test]
async fn windows_match_the_proxy() {
    let context = "[context]\nstrategy = \"window\"\n[context.budget]\nmax_input = 6000\n";
    let seen = is_what_the_proxy_forwards(context, &runs(24, 0)).await;
    assert!(seen.with_marker > 5, "{seen:?}");
}

#[tokio::test]
async fn refusals_match_the_proxy() {
    let context = "[context.mask]\nkeep = { turns = 5 }\n[context.budget]\nmax_input = 4000\n";
    let seen = is_what_the_proxy_forwards(context, &runs(20, 0)).await;
    assert!(seen.refused > 2 && seen.edited > 2, "{seen:?}");
}

#[tokio::test]
async fn every_profile_with_client_side_history_matches_the_proxy() {
    // Windows that are soon full; stories keep 10,500 tokens for something else.
    for (profile, window) in
        [("agent", 16_384), ("budgeted-chat", 16_384), ("story", 22_000), ("assistant", 16_384)]
    {
        let context =
            format!("[context]\nprofile = \"{profile}\"\n[context.budget]\nfallback_window = {window}\n");
        // A model that nobody knows has the window that is given here.
        let lines: Vec<String> = runs(24, 3).iter().map(|line| line.replace("gpt-4o", "harbour-1")).collect();
        let seen = is_what_the_proxy_forwards(&context, &lines).await;
        assert!(seen.edited > 2 && seen.requests + seen.refused == 50, "{profile}: {seen:?}");
    }
}

#[tokio::test]
async fn text_protocol_observations_match_the_proxy() {
    let mut messages = vec![r#"{"role":"user", "content":"Mend it, \u00e9t c\u00e6tera."}"#.to_owned()];
    for turn in 0..12 {
        let output = "one line of output\\n".repeat(30);
        messages.push(format!(r#"{{"content" : "look {turn}", "role":"assistant","x_n":1.50e3}}"#));
        // Two turns a second, so that the cache stays warm in both.
        let at = 1_700_000_000.0 + f64::from(turn) / 2.0;
        messages.push(format!(r#"{{"timestamp":{at},"role":"user","content":"OBSERVATION: {output}"}}"#));
    }
    messages.push(r#"{"role":"assistant","content":"done"}"#.to_owned());
    let line = format!(r#"{{"id":"odd","model":"gpt-4o","messages":[ {} ]}}"#, messages.join(" , "));
    let context = "[context.observations]\nuser_pattern = '^OBSERVATION:'\n[context.mask]\nkeep = { turns = 2 }\npace = \"every_turn\"\n";
    let seen = is_what_the_proxy_forwards(context, &[line]).await;
    assert!(seen.masked > 20 && seen.requests == 13, "{seen:?}");
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
    let seen =
        is_what_the_proxy_forwards("[context.mask]\nkeep = { turns = 2 }\npace = \"every_turn\"\n", &lines)
            .await;
    assert!(seen.requests == 22 && seen.masked > 20, "{seen:?}");
}
