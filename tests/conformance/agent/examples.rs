//! Section "Example configurations": both examples, as files of environment variables.

use super::run::{Step, result_at, run, run_of};
use crate::conformance::scene::{Scene, message};
use crate::support::command::{self, command};
use crate::support::reply::{edited, figure};
use crate::support::tidegate::Setup;
use tempfile::TempDir;

const FAST_CHAT: &str = include_str!("fast-chat.env");
const DEEP_CODE: &str = include_str!("deep-code.env");

fn variables(file: &str) -> impl Iterator<Item = (&str, &str)> {
    file.lines().filter(|line| !line.is_empty()).map(|line| line.split_once('=').unwrap())
}

fn with(setup: Setup, file: &str) -> Setup {
    variables(file).fold(setup, |setup, (name, value)| setup.env(name, value))
}

/// The value of a key and its source, as `tidegate check` prints them.
async fn checked(file: &str, key: &str) -> String {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("proxy.toml"), "[context]\nprofile = \"agent\"\n").unwrap();
    let mut command = command(directory.path());
    let text = command::run(command.arg("check").envs(variables(file))).await.out;
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with(key))
        .unwrap_or_else(|| panic!("{key} in {text}"));
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn check_names_the_variable_of_each_value() {
    for (file, key, value) in [
        (FAST_CHAT, "context.strategy", "\"masking\" AGENT_CONTEXT_STRATEGY"),
        (FAST_CHAT, "context.mask.keep", "{ turns = 6 } AGENT_CONTEXT_MASKING_WINDOW"),
        (FAST_CHAT, "context.budget.output_reserve.min", "1800 AGENT_CONTEXT_RESERVED"),
        (FAST_CHAT, "context.fold.when", "{ budget_ratio = 1.0, turns = 18 } AGENT_CONTEXT_SUMMARY_TURNS"),
        (DEEP_CODE, "context.strategy", "\"hybrid\" AGENT_CONTEXT_STRATEGY"),
        (DEEP_CODE, "context.mask.keep", "{ turns = 12 } AGENT_CONTEXT_MASKING_WINDOW"),
        (DEEP_CODE, "context.limits.max_turns", "120 AGENT_CONTEXT_MAX_TURNS"),
    ] {
        assert_eq!(checked(file, key).await, value);
    }
    let when = checked(DEEP_CODE, "context.fold.when").await;
    assert!(when.starts_with("{ budget_ratio = 1.0, tokens = 9000, turns = 10 }"), "{when}");
}

#[tokio::test]
async fn the_fast_chat_agent_masks_early_and_leaves_room_for_answers() {
    let model = "[models.\"m\"]\nwindow = 8192\n";
    let scene = Scene::start_with("agent", model, |setup| with(setup, FAST_CHAT)).await.model("m");
    let (reply, _) = scene.send("hello", &[message("user", "hello")]).await;
    assert_eq!(figure(&reply, "x-tidegate-budget"), 8192 - 1800);
    let (reply, _) = scene.send("six", &run(6)).await;
    assert_eq!(edited(&reply, "masked"), 0);
    // Its turn threshold is for another strategy: nothing is summarized.
    let scene = Scene::start_with("agent", "", |setup| with(setup, FAST_CHAT)).await;
    let (reply, sent) = scene.send("long", &run(40)).await;
    assert_eq!((edited(&reply, "masked"), edited(&reply, "folded")), (34, 0));
    assert!(sent.summary().is_none());
    // With that strategy the threshold applies.
    for (turns, is_folded) in [(17, false), (18, true)] {
        let scene = Scene::start_with("agent", "", |setup| {
            with(setup, FAST_CHAT).env("AGENT_CONTEXT_STRATEGY", "summarization")
        });
        let (reply, _) = scene.await.send("c", &run(turns)).await;
        assert_eq!(edited(&reply, "folded") > 0, is_folded);
    }
}

#[tokio::test]
async fn the_deep_code_agent_masks_late_and_summarizes_by_turns_and_tokens() {
    let scene = Scene::start_with("agent", "", |setup| with(setup, DEEP_CODE)).await;
    let (reply, sent) = scene.send("c", &run(10)).await;
    assert_eq!(
        (edited(&reply, "masked"), edited(&reply, "folded")),
        (0, 0),
        "the newest ten turns are never folded"
    );
    assert_eq!(sent.messages(), run(10));
    let (reply, _) = scene.send("c", &run(13)).await;
    assert_eq!((edited(&reply, "folded"), reply.header("x-tidegate-trigger")), (6, Some("turns")));
    // Two turns later, one of them long, the token threshold applies.
    let (reply, _) = scene.send("c", &run(14)).await;
    assert_eq!((edited(&reply, "folded"), reply.header("x-tidegate-trigger")), (6, None));
    let mut long = run(15);
    long[result_at(14)]["content"] = "word ".repeat(9_000).into();
    let (reply, _) = scene.send("c", &long).await;
    assert_eq!((edited(&reply, "folded"), reply.header("x-tidegate-trigger")), (10, Some("budget")));
    for (turns, status) in [(119, 200), (120, 422)] {
        assert_eq!(scene.ask("end", &run(turns)).await.status, status, "{turns} turns");
    }
}

/// A summary that would be longer than the masked messages is made as soon as it would not be, however fast the turns are.
#[tokio::test]
async fn the_deep_code_agent_summarizes_fast_turns() {
    let scene = Scene::start_with("agent", "", |setup| with(setup, DEEP_CODE)).await;
    let short = |turns: usize| {
        let step = |turn: usize| Step::new(format!("{{\"n\":{turn}}}"), format!("{turn} is fine"));
        let mut messages = run_of((0..turns).map(step));
        for thought in messages.iter_mut().filter(|message| message["role"] == "assistant") {
            thought["content"] = "Next, please.".into();
        }
        messages
    };
    let mut folded = 0;
    for turns in 1..=32 {
        let (reply, _) = scene.send("c", &short(turns)).await;
        assert_eq!(reply.header("x-tidegate-degraded"), None, "{turns} turns");
        folded = edited(&reply, "folded");
    }
    assert!(folded >= 20, "{folded} messages are folded");
}
