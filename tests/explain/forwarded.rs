//! What is shown is what a running proxy forwards.

use super::command::{explain, talk, worker};
use crate::support::client::{CHAT, exchange, post};
use crate::support::tidegate::Setup;
use tidegate_testkit::MockUpstream;

async fn is_what_the_proxy_forwards(config: &str, body: &str) {
    let config = format!("[store]\nurl = \"memory:\"\n{config}");
    let upstream = MockUpstream::start().await;
    let tidegate = Setup::new(&config).upstream(&upstream.url()).start().await;
    let reply = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", "a")], body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let forwarded = String::from_utf8(upstream.next_request().await.body).unwrap();
    let said = explain(&config, body, &["--rewritten"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_eq!(said.out, forwarded);
    assert!(forwarded.contains("<conversation_record>"), "{forwarded}");
}

#[tokio::test]
async fn an_inline_summary_matches_the_proxy() {
    let config = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { user_turns = 4 }\n\
                  keep = { user_turns = 2 }\nmode = \"inline\"\n";
    is_what_the_proxy_forwards(config, &talk(4)).await;
}

#[tokio::test]
async fn a_summary_with_masks_matches_the_proxy() {
    let config = "[context]\nstrategy = \"hybrid\"\n[context.fold]\nwhen = { user_turns = 4 }\nrole = \"system\"\n\
                  keep = { user_turns = 2 }\nmode = \"inline\"\n[context.mask]\nkeep = { turns = 1 }\n";
    is_what_the_proxy_forwards(config, &talk(5)).await;
}

#[tokio::test]
async fn a_summary_that_the_budget_requires_matches_the_proxy() {
    let config = "[context]\nstrategy = \"summarization\"\n[context.fold]\nkeep = { turns = 1 }\n\
                  [context.budget]\nmax_input = 400\n";
    is_what_the_proxy_forwards(config, &worker()).await;
}
