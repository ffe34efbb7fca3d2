//! The path of a stranger: see it work, run it, observe, apply.

use crate::support::client::{admin, exchange, post};
use crate::support::command::{command, run};
use crate::support::tidegate::Setup;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, until};

#[tokio::test]
async fn demo_then_run_then_observe_then_apply() {
    let directory = TempDir::new().unwrap();
    let tidegate = async |args: &[&str]| {
        let output = run(command(directory.path()).args(args)).await;
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args:?}");
        output.out
    };

    // The demo needs nothing, and says what it saved.
    assert!(tidegate(&["demo", "--exit"]).await.contains("% less"));

    // What it says next: every route observes, whatever the file says.
    let observed = tidegate(&["check", "--changed", "--observe"]).await;
    assert!(observed.contains("context.observe  true  --observe"), "{observed}");

    // The starter file mentions `observe`, and is valid with it.
    tidegate(&["init"]).await;
    let file = directory.path().join("proxy.toml");
    let starter = std::fs::read_to_string(&file).unwrap();
    let observing = starter.replace("# observe = true", "observe = true");
    assert_ne!(observing, starter, "the starter file does not mention `observe = true`");
    std::fs::write(&file, &observing).unwrap();
    assert!(tidegate(&["check", "--changed"]).await.contains("context.observe"));

    // A long run of an agent, observed: forwarded byte for byte, and reported.
    let recording: Value = serde_json::from_str(&tidegate(&["demo", "--recording"]).await).unwrap();
    let request = json!({ "model": "gpt-4o", "messages": recording["messages"].as_array().unwrap()[..60] });
    let body = request.to_string();
    let upstream = MockUpstream::start().await;
    let mut running = Setup::new(&observing).before(&upstream).start().await;
    let (address, admin_address) = (running.address, running.admin);
    let ask = async |name: &str| {
        upstream.then(Answer::json(200, ANSWER));
        let headers = [("x-conversation-id", name), ("authorization", "Bearer k")];
        let reply = exchange(address, post("/v1/chat/completions", &headers, body.clone())).await;
        assert_eq!(reply.status, 200);
        let arrived = upstream.next_request().await.body;
        (reply, arrived)
    };
    let (reply, arrived) = ask("observed").await;
    assert_eq!(arrived, body.as_bytes(), "an observed request was edited");
    assert_eq!(reply.header("x-tidegate-observe"), Some("1"));
    let would = reply.header("x-tidegate-edits").unwrap().to_owned();
    assert!(would.starts_with("masked=") && !would.starts_with("masked=0,"), "{would}");
    let overview = async || admin(admin_address, "/api/overview").await.json()["totals"].clone();
    until("the overview knows what would have been", async || {
        let totals = overview().await;
        totals["observed"] == 1 && totals["would_tokens_after"].as_u64() < totals["tokens_before"].as_u64()
    })
    .await;

    // Applied: the same file without the line, while it runs.
    std::fs::write(running.config_file(), &starter).unwrap();
    running.logged_message("configuration reloaded").await;
    let (reply, arrived) = ask("applied").await;
    assert_eq!(reply.header("x-tidegate-observe"), None);
    assert_eq!(reply.header("x-tidegate-edits"), Some(would.as_str()), "what was announced is what is done");
    assert!(arrived.len() < body.len());
}

const ANSWER: &str = r#"{"id":"c","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop",
    "message":{"role":"assistant","content":"done"}}],"usage":{"prompt_tokens":9000,"completion_tokens":1,"total_tokens":9001}}"#;
