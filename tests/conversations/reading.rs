//! All messages can be read back, including those masked for the model.

use super::ask::{api, json, output_of, until_counted};
use super::scene::{agent_run, in_memory, stored};
use crate::support::agent::{EVERY_TURN, PLACEHOLDER, conversation, output};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;

/// A message as the client wrote it.
fn written(index: usize) -> String {
    let message = &conversation(5)[index];
    format!("{}{}{}", message.before, message.content, message.behind)
}

async fn assert_read_back(setup: Setup, upstream: &MockUpstream) {
    let tidegate = setup.start().await;
    agent_run(&tidegate, upstream, "build-7", 5).await;
    let list = until_counted(&tidegate, 5).await;
    let one = &list["conversations"][0];
    assert_eq!((&list["total"], &list["next"]), (&1.into(), &Value::Null));
    assert_eq!(
        (&one["name"], &one["turns"], &one["model"]),
        (&"build-7".into(), &5.into(), &"gpt-4o".into())
    );
    assert!(one["tokens_after"].as_u64() < one["tokens_before"].as_u64(), "{one}");
    let id = one["id"].as_str().unwrap();

    let shown = json(&tidegate, &format!("/api/conversations/{id}?turns_offset=3&turns_limit=9")).await;
    assert_eq!((&shown["turns_total"], shown["turns"].as_array().unwrap().len()), (&5.into(), 2));
    assert_eq!(shown["turns"][1]["masked"], serde_json::json!([3, 5, 7]));

    let target = format!("/api/conversations/{id}/messages?limit=500");
    let text = api(tidegate.admin, "GET", &target, &[]).await.text();
    for index in 0..12 {
        assert!(text.contains(&format!("\"message\":{}}}", written(index))), "message {index} in {text}");
    }
    let page: Value = serde_json::from_str(&text).unwrap();
    // Twelve messages of the client and five answers.
    assert_eq!((&page["total"], &page["unreadable"]["count"]), (&17.into(), &0.into()));

    let export = api(tidegate.admin, "GET", "/api/conversations/build-7/export", &[]).await;
    assert_eq!(export.header("content-type"), Some("application/x-ndjson"));
    let export = export.text();
    let first = export.lines().next().unwrap();
    let all: Vec<String> = (0..12).map(written).collect();
    let start = format!("{{\"id\":\"build-7\",\"model\":\"gpt-4o\",\"messages\":[{},{{", all.join(","));
    assert!(first.starts_with(&start), "{first}");
    assert_eq!(output_of(&tidegate, &["export", &id[..8]]).await, export);
    assert_shown_by_command(&tidegate, id).await;
}

async fn assert_shown_by_command(tidegate: &Tidegate, id: &str) {
    let list = output_of(tidegate, &["list"]).await;
    let row = list.lines().nth(1).unwrap();
    let has_age = row.contains(" ago") || row.contains("just now");
    assert!(row.trim_start().starts_with(&id[..12]) && row.contains("build-7") && has_age, "{list}");
    let all: Value = serde_json::from_str(&output_of(tidegate, &["list", "--json"]).await).unwrap();
    assert_eq!(all["conversations"][0]["id"], id);

    let short = output_of(tidegate, &["show", "build-7"]).await;
    assert!(short.contains("more lines; --full shows them"), "{short}");
    assert_eq!(short.matches("[masked in the last turn]").count(), 3, "{short}");
    assert!(short.contains("every_turn"), "{short}");
    let full = output_of(tidegate, &["show", "build-7", "--full"]).await;
    for turn in 0..5 {
        let indented: String = output(turn).lines().map(|line| format!("    {line}\n")).collect();
        assert!(full.contains(&indented), "the result of turn {turn} in {full}");
    }
    assert!(!full.contains(PLACEHOLDER), "{full}");
    let both: Value =
        serde_json::from_str(&output_of(tidegate, &["show", id, "--json", "--limit", "2"]).await).unwrap();
    assert_eq!((both["turns"].as_array().unwrap().len(), both["messages"].as_array().unwrap().len()), (2, 2));

    let directory = TempDir::new().unwrap();
    let file = directory.path().join("run.jsonl");
    output_of(tidegate, &["export", "build-7", "-o", file.to_str().unwrap()]).await;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), output_of(tidegate, &["export", "build-7"]).await);
}

#[tokio::test]
async fn masked_messages_are_read_back_whole_from_memory() {
    let upstream = MockUpstream::start().await;
    assert_read_back(in_memory(EVERY_TURN, &upstream), &upstream).await;
}

#[tokio::test]
async fn masked_messages_are_read_back_whole_from_a_directory() {
    let upstream = MockUpstream::start().await;
    let data = TempDir::new().unwrap();
    assert_read_back(stored(EVERY_TURN, &upstream, &data), &upstream).await;
}

#[tokio::test]
async fn without_raw_recording_there_are_turns_but_no_messages() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("[store]\nraw = false\n", &upstream).start().await;
    agent_run(&tidegate, &upstream, "quiet", 3).await;
    until_counted(&tidegate, 3).await;
    let page = json(&tidegate, "/api/conversations/quiet/messages").await;
    assert_eq!((&page["total"], &page["recorded"]), (&0.into(), &false.into()));
    assert_eq!(json(&tidegate, "/api/conversations/quiet").await["turns_total"], 3);
    let shown = output_of(&tidegate, &["show", "quiet"]).await;
    assert!(shown.contains("none are recorded: `store.raw` is false"), "{shown}");
}

#[tokio::test]
async fn metrics_are_in_the_prometheus_text_format() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).start().await;
    agent_run(&tidegate, &upstream, "m", 2).await;
    until_counted(&tidegate, 2).await;
    let reply = api(tidegate.admin, "GET", "/metrics", &[]).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/plain; version=0.0.4")));
    assert!(
        reply.text().contains("tidegate_requests_total{outcome=\"answered\",route=\"default\"} 2\n"),
        "{}",
        reply.text()
    );
}
