//! Valid and invalid inputs of `tidegate replay`.

use super::command::{figures, policy, replay, replay_in};
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::tidegate::Setup;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, Trajectory};

fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

#[test]
fn each_assistant_message_makes_one_request() {
    let messages = [
        message("system", "s"),
        message("user", "a"),
        message("assistant", "b"),
        message("user", "c"),
        message("assistant", "d"),
    ];
    let line = json!({ "id": 7, "model": "gpt-4o", "messages": messages, "tools": [] }).to_string();
    let directory = TempDir::new().unwrap();
    let args = ["--forwarded", "out.jsonl", "--policy", "masking"];
    let output = replay_in(&directory, None, &[line], &args);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let lines = std::fs::read_to_string(directory.path().join("out.jsonl")).unwrap();
    let sent: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["policy"] == "raw")
        .map(|line| serde_json::from_str(line["sent"].as_str().unwrap()).unwrap())
        .collect();
    let request = |count: usize| json!({ "model": "gpt-4o", "tools": [], "messages": messages[..count] });
    assert_eq!(sent, [request(2), request(4)]);
}

#[test]
fn logged_requests_are_grouped_by_their_prefix() {
    let first = [
        message("user", "a"),
        message("assistant", "b"),
        message("user", "c"),
        message("assistant", "d"),
        message("user", "e"),
    ];
    let other = [message("user", "other"), message("assistant", "x"), message("user", "y")];
    let body = |messages: &[Value], clock: u32| {
        let messages = [&[message("system", &format!("It is {clock}."))], messages].concat();
        json!({ "model": "gpt-4o", "messages": messages }).to_string()
    };
    let lines = [
        body(&first[..1], 1),
        body(&other[..1], 2),
        body(&first[..3], 3),
        body(&other, 4),
        body(&first, 5),
        body(&first, 6),
    ];
    let found = figures(None, &lines, &[]);
    let ids: Vec<&str> =
        found["each"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!((ids, &found["requests"]), (vec!["runs.jsonl:1", "runs.jsonl:2"], &6.into()));
    let wrapped = lines.map(|line| json!({ "ts": 1_700_000_000, "request": line }).to_string());
    let found = figures(None, &wrapped, &[]);
    assert_eq!(
        (&found["conversations"], &found["requests"], &found["untimed"]),
        (&2.into(), &6.into(), &0.into())
    );
}

#[test]
fn a_pause_in_the_timestamps_empties_the_cache() {
    let shape = Trajectory { turns: 6, output: 300.0, system: 1_500, ..Trajectory::default() };
    let timed = |pause: u64| {
        let mut messages = shape.messages(1);
        for (number, message) in messages.iter_mut().enumerate() {
            let late = if number > 6 { pause } else { 0 };
            message["created_at"] = (1_700_000_000 + 10 * number as u64 + late).into();
        }
        let found =
            figures(None, &[json!({ "id": "t", "model": "gpt-4o", "messages": messages }).to_string()], &[]);
        assert_eq!(found["untimed"], 0);
        policy(&found, 0, "raw")["tokens_cached"].as_u64().unwrap()
    };
    assert!(timed(3_600) < timed(0));
    // Timestamps are not part of a request, so that they do not change its tokens.
    let plain = figures(None, &[shape.line(1)], &[]);
    assert_eq!(policy(&plain, 0, "raw")["tokens_cached"].as_u64().unwrap(), timed(0));
}

#[tokio::test]
async fn an_exported_conversation_can_be_replayed() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::chat("It is high."));
    let tidegate = Setup::new("[store]\nurl = \"memory:\"\n").upstream(&upstream.url()).start().await;
    let mut messages = Vec::new();
    for turn in 0..3 {
        messages.push(message("user", &format!("What is the tide at {turn}?")));
        let body = json!({ "model": "gpt-4o", "messages": messages }).to_string();
        let reply = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", "kept")], body)).await;
        assert_eq!(reply.status, 200);
        messages.push(message("assistant", "It is high."));
    }
    let export = admin(tidegate.admin, "/api/conversations/kept/export").await.text();
    let found = figures(None, &[export.trim().to_owned()], &[]);
    // The last request counts whether or not its answer has been recorded yet.
    assert_eq!((&found["requests"], &found["untimed"]), (&3.into(), &0.into()));
    assert_eq!(found["each"][0]["id"], "kept");
}

#[test]
fn pinned_memory_is_in_every_request_that_a_policy_edits() {
    let messages = [message("user", "a"), message("assistant", "b")];
    let line =
        json!({ "id": "n", "model": "gpt-4o", "memory": "Deploys are on Fridays.", "messages": messages });
    let directory = TempDir::new().unwrap();
    let args = ["--forwarded", "out.jsonl", "--policy", "masking"];
    replay_in(&directory, None, &[line.to_string()], &args);
    let lines = std::fs::read_to_string(directory.path().join("out.jsonl")).unwrap();
    let forwarded = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let has_it: Vec<bool> =
        forwarded.map(|line| line["forwarded"].as_str().unwrap().contains("on Fridays")).collect();
    assert_eq!(has_it, [false, true]);
}

#[test]
fn a_turn_limit_refuses_as_in_the_proxy_but_never_raw() {
    let line = Trajectory { turns: 9, output: 50.0, ..Trajectory::default() }.line(1);
    let found = figures(Some("[context.limits]\nmax_turns = 4\n"), &[line], &[]);
    assert_eq!(policy(&found, 0, "raw")["refused"], 0);
    assert_eq!(policy(&found, 0, "route:default")["refused"], 6);
}

#[test]
fn invalid_input_is_reported_with_its_line() {
    let good = Trajectory { turns: 1, ..Trajectory::default() }.line(1);
    let cases = [
        ("{", "runs.jsonl:1: not a JSON object"),
        ("[1]", "runs.jsonl:1: not a JSON object"),
        ("{\"text\":1}", "runs.jsonl:1: there are no `messages`"),
        ("{\"id\":1,\"messages\":[{\"content\":\"x\"}]}", "runs.jsonl:1: message 0 has no `role`"),
        ("{\"messages\":[1]}", "runs.jsonl:1: "),
        ("", "runs.jsonl: there are no conversations"),
        ("{\"id\":1,\"messages\":[]}", "the input has no requests"),
    ];
    for (line, expected) in cases {
        let output = replay(None, &[line.to_owned()], &[]);
        assert_eq!(output.code, Some(1), "{line}");
        assert!(
            output.err.starts_with(expected) && output.err.contains("\n  hint: "),
            "{line}: {}",
            output.err
        );
    }
    let many: Vec<String> =
        std::iter::repeat_n(good.clone(), 300).chain(["{\"id\":2}".to_owned(), good]).collect();
    let output = replay(None, &many, &[]);
    assert!(output.err.starts_with("runs.jsonl:301: there are no `messages`"), "{}", output.err);
    let none = replay(None, &[], &["missing.jsonl"]);
    assert_eq!(none.code, Some(1));
}

#[test]
fn wrong_usage_is_explained() {
    for (args, expected) in [
        (["--policy", "rolling"], "masking:every_turn"),
        (["--price", "cheap"], "0.1/1.25"),
        (["--policy", "route:none"], "no such route: `none`"),
    ] {
        let output = replay(None, &[Trajectory::default().line(1)], &args);
        assert!(output.code != Some(0) && output.err.contains(expected), "{args:?}: {}", output.err);
    }
}
