//! The content of a summary goes to the upstream and nowhere else.

use super::scene::{degraded, send, summarization, upstream, with_budget, with_store, with_summarizer};
use crate::support::chat::{chat, user};
use crate::support::client::admin;
use crate::support::tidegate::Setup;
use serde_json::json;
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream};

const PROMPT: &str = "the-canary-sings-at-dawn";
const SUMMARIZED: &str = "the-canary-was-summarized";
const KEY: &str = "sk-canary-of-the-summarizer";

fn assert_clean(what: &str, bytes: &[u8]) {
    for canary in [PROMPT, SUMMARIZED, KEY] {
        let found = bytes.windows(canary.len()).any(|window| window == canary.as_bytes());
        assert!(!found, "{canary} is in {what}");
    }
}

async fn assert_no_leak(extractive: bool) {
    let (directory, upstream, summarizer) =
        (TempDir::new().unwrap(), upstream().await, MockUpstream::start().await);
    let url = format!("embedded:{}", directory.path().join("data").display());
    let settings = with_budget(&with_store(&summarization("mode = \"inline\"\n"), &url), 2500);
    let settings = if extractive {
        settings
    } else {
        with_summarizer(&settings, &summarizer, "1s") + "api_key_env = \"SUMMARIZER_KEY\"\n"
    };
    let setup = Setup::new(&format!("[log]\nlevel = \"trace\"\n{settings}"))
        .upstream(&upstream.url())
        .env("SUMMARIZER_KEY", KEY)
        .env("TIDEGATE_STORE_KEY", &"5a".repeat(32));
    let tidegate = setup.start().await;
    let mut messages = chat(4);
    messages[1] = user(&format!("We decided that the password is {PROMPT}."));
    summarizer
        .answer(Answer::chat(&json!({ "summary_text": SUMMARIZED, "decisions": [PROMPT] }).to_string()));
    let (_, forwarded) = send(&tidegate, &upstream, "good", &messages).await;
    let text = forwarded.summary().expect("a summary").text;
    assert!(text.contains(PROMPT), "the decision is not in the summary: {text}");

    if !extractive {
        // Failures that echo their input.
        let echoed = format!("{PROMPT} {SUMMARIZED} {KEY}");
        for (name, answer) in [
            ("status", Answer::error(500, "oops", &echoed)),
            ("refused", Answer::error(400, &echoed.replace(' ', "_"), &echoed)),
            ("nonsense", Answer::chat(&format!("Error: {echoed}"))),
            ("broken", Answer::raw(format!("HTTP/1.1 {echoed}\r\n{echoed}\r\n\r\n"))),
            ("hangs", Answer::json(200, &echoed).stall()),
        ] {
            summarizer.answer(answer);
            let (reply, _) = send(&tidegate, &upstream, name, &messages).await;
            let reason = degraded(&reply).unwrap_or_else(|| panic!("{name} is not degraded"));
            assert_clean("a header", reason.as_bytes());
        }
    }
    for path in ["/metrics", "/readyz"] {
        assert_clean(path, &admin(tidegate.admin, path).await.body);
    }
    assert_clean("the log", tidegate.stop().await.as_bytes());
    let mut files = vec![directory.path().join("data")];
    let mut read = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_clean("the directory", &std::fs::read(path).unwrap());
            read += 1;
        }
    }
    assert!(read > 0);
}

#[tokio::test]
async fn a_built_in_summary_does_not_leak() {
    assert_no_leak(true).await;
}

#[tokio::test]
async fn an_llm_summary_does_not_leak() {
    assert_no_leak(false).await;
}
