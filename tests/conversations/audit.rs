//! The decisions for each request can be read back.

use super::ask::{json, output_of, run_on_directory, until_counted};
use super::scene::{agent_run, in_memory, stored};
use crate::support::agent::{EVERY_TURN, Message, body, conversation, send};
use crate::support::client::{CHAT, exchange, post};
use serde_json::Value;
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream};

const FOLD: &str = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { turns = 3 }\nkeep = { turns = 1 }\nmode = \"inline\"\n";

const SAID: &str = r#"{"id":"c","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop",
    "message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010}}"#;

#[tokio::test]
async fn a_folded_turn_has_all_its_figures() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, SAID));
    let data = TempDir::new().unwrap();
    let tidegate = stored(FOLD, &upstream, &data).start().await;
    let sent = body("gpt-4o", &conversation(4), &[]);
    let (reply, _) = send(&tidegate, &upstream, &[("x-conversation-id", "build-7")], &sent).await;
    until_counted(&tidegate, 1).await;

    let page = json(&tidegate, "/api/conversations/build-7").await;
    let turn = &page["turns"][0];
    let figure = |name: &str| turn[name].as_u64().unwrap_or_else(|| panic!("no {name} in {turn}"));
    let reported = |name: &str| reply.header(name).unwrap().parse::<u64>().unwrap();
    assert_eq!(figure("tokens_before"), reported("x-tidegate-tokens-before"));
    assert_eq!(figure("tokens_after"), reported("x-tidegate-tokens-after"));
    assert_eq!(figure("budget"), reported("x-tidegate-budget"));
    assert_eq!(figure("window"), 128_000);
    assert_eq!((&turn["summary_triggered"], &turn["prune_triggered"]), (&true.into(), &false.into()));
    assert_eq!(
        (&turn["overflow_rejected"], figure("dropped"), figure("masked_tokens")),
        (&false.into(), 0, 0)
    );
    // Three calls with their results. The summary also covers the task, which stays.
    assert_eq!(figure("folded"), 6);
    assert!(figure("tokens_after_summary") < figure("tokens_before"), "{turn}");
    assert_eq!(figure("tokens_after_prune"), figure("tokens_after"));
    assert!((1..figure("tokens_after")).contains(&figure("summary_tokens")), "{turn}");
    assert_eq!((&turn["stop_hint"], turn.get("blocks").is_some()), (&Value::Null, true));
    // The list prices of gpt-4o are 2.50 USD per million input tokens and 10 per million output tokens.
    assert_eq!((&turn["cost_usd"], &page["conversation"]["cost_usd"]), (&0.0026.into(), &0.0026.into()));

    let shown = output_of(&tidegate, &["show", "build-7"]).await;
    assert!(shown.contains("\ncost     $0.002600\n") && shown.contains("folded"), "{shown}");
    let list = output_of(&tidegate, &["list"]).await;
    assert!(list.lines().nth(1).unwrap().contains(" $0.002600 "), "{list}");
    tidegate.stop().await;

    // From the store alone.
    let figures = run_on_directory(&data, &["show", "build-7", "--turns"], &[]).await;
    assert_eq!((figures.code, figures.err.as_str()), (Some(0), ""), "{figures:?}");
    for line in [
        "window    128,000, ",
        "summary   of 6 messages in ",
        " tokens, written for this turn\n",
        "cost      $0.002600: 1,000 prompt, 0 of them cached, 10 completion\n",
    ] {
        assert!(figures.out.contains(line), "{line} in {}", figures.out);
    }
    assert!(!figures.out.contains("careful agent"), "`--turns` shows messages: {}", figures.out);
}

#[tokio::test]
async fn masked_and_refused_turns_are_recorded_as_such() {
    let upstream = MockUpstream::start().await;
    let config = format!("{EVERY_TURN}[models.\"gpt-4o\"]\nwindow = 128000\n");
    let tidegate = in_memory(&config, &upstream).start().await;
    agent_run(&tidegate, &upstream, "masks", 4).await;
    until_counted(&tidegate, 4).await;
    let page = json(&tidegate, "/api/conversations/masks").await;
    assert_eq!(page["turns"][0]["masked_tokens"], 0);
    assert!(page["turns"][3]["masked_tokens"].as_u64() > Some(0), "{page}");

    let huge = body("gpt-4o", &[Message::user(&"word ".repeat(150_000))], &[]);
    let refused = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", "huge")], huge)).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    until_counted(&tidegate, 5).await;
    let page = json(&tidegate, "/api/conversations/huge").await;
    let turn = &page["turns"][0];
    assert_eq!((&turn["overflow_rejected"], &turn["outcome"]), (&true.into(), &"refused".into()));
    assert_eq!((&turn["cost_usd"], &page["conversation"]["cost_usd"]), (&Value::Null, &Value::Null));
    let shown = output_of(&tidegate, &["show", "huge", "--turns"]).await;
    assert!(
        shown.contains(" 422 refused: context_budget_exceeded\n") && shown.contains(", 0 forwarded\n"),
        "{shown}"
    );
    assert!(shown.contains("\ncost     n/a\n") && shown.contains("    cost      n/a: "), "{shown}");
}

#[tokio::test]
async fn without_a_known_price_there_is_no_cost() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, SAID));
    let tidegate = in_memory("", &upstream).start().await;
    let sent = body("my-local-model", &[Message::user("hi")], &[]);
    send(&tidegate, &upstream, &[("x-conversation-id", "local")], &sent).await;
    until_counted(&tidegate, 1).await;
    let page = json(&tidegate, "/api/conversations/local").await;
    assert_eq!(
        (&page["turns"][0]["cost_usd"], &page["conversation"]["cost_usd"]),
        (&Value::Null, &Value::Null)
    );
    let list = output_of(&tidegate, &["list"]).await;
    assert!(list.lines().nth(1).unwrap().contains(" n/a "), "{list}");
}
