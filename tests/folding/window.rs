//! The window strategy in a tool loop that outgrows its budget several times.

use crate::support::agent::{body, conversation, send};
use crate::support::reply::edited;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

const TURNS: usize = 60;

/// Between two cuts, each request is the previous one plus new messages.
#[tokio::test]
async fn a_tool_loop_keeps_its_prefix_between_cuts() {
    let upstream = MockUpstream::start().await;
    let settings = "[context]\nstrategy = \"window\"\n[context.budget]\nmax_input = 3500\n";
    let tidegate = Tidegate::start(settings, &upstream).await;
    let (mut shortened, mut changed, mut previous) = (0, 0, None::<String>);
    for turns in 1..=TURNS {
        let sent = body("gpt-4o", &conversation(turns), &[]);
        let (reply, arrived) = send(&tidegate, &upstream, &[], &sent).await;
        let messages = arrived.split_once(" ],\n").unwrap().0.to_owned();
        let is_changed = previous.is_some_and(|previous| !messages.starts_with(&previous));
        assert_eq!(is_changed, reply.header("x-tidegate-trigger").is_some(), "{turns} turns");
        shortened += usize::from(edited(&reply, "dropped") > 0);
        changed += usize::from(is_changed);
        previous = Some(messages);
    }
    println!("{changed} of {shortened} shortened requests changed their prefix");
    assert!(shortened > 40 && changed * 3 <= shortened, "{changed} of {shortened} changed their prefix");
}
