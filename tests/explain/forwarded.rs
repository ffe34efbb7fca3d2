//! The rewritten request is the one that the running proxy forwards.

use super::command::{chat, explain, worker};
use crate::support::client::{CHAT, exchange, post};
use crate::support::tidegate::Setup;
use tidegate_testkit::MockUpstream;

async fn assert_matches_proxy(config: &str, body: &str) {
    let config = format!("[store]\nurl = \"memory:\"\n{config}");
    let upstream = MockUpstream::start().await;
    let tidegate = Setup::new(&config).upstream(&upstream.url()).start().await;
    let reply = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", "a")], body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let forwarded = String::from_utf8(upstream.next_request().await.body).unwrap();
    let output = explain(&config, body, &["--rewritten"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_eq!(output.out, forwarded);
    assert!(forwarded.contains("<conversation_record>"), "{forwarded}");
}

#[tokio::test]
async fn an_inline_summary_matches_the_proxy() {
    let config = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { user_turns = 4 }\n\
                  keep = { user_turns = 2 }\nmode = \"inline\"\n";
    assert_matches_proxy(config, &chat(4)).await;
}

#[tokio::test]
async fn a_summary_with_masks_matches_the_proxy() {
    let config = "[context]\nstrategy = \"hybrid\"\n[context.fold]\nwhen = { user_turns = 4 }\nrole = \"system\"\n\
                  keep = { user_turns = 2 }\nmode = \"inline\"\n[context.mask]\nkeep = { turns = 1 }\n";
    assert_matches_proxy(config, &chat(5)).await;
}

#[tokio::test]
async fn a_summary_that_the_budget_requires_matches_the_proxy() {
    let config = "[context]\nstrategy = \"summarization\"\n[context.fold]\nkeep = { turns = 1 }\n\
                  [context.budget]\nmax_input = 400\n";
    assert_matches_proxy(config, &worker()).await;
}
