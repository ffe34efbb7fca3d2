//! Which messages count as observations.

use crate::support::agent::{EVERY_TURN, Message, body, conversation_with, output, results, send};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

/// An agent with a text protocol, in which results are user messages.
fn text_protocol(turns: usize, before: &str) -> Vec<Message> {
    let mut messages = vec![Message::user("Fix the bug.")];
    for number in 0..turns {
        messages.push(Message::assistant("Action: run the tests"));
        messages.push(Message::new(before, &format!("Observation: {}", output(number)), "}"));
    }
    messages
}

#[tokio::test]
async fn user_messages_that_match_the_pattern_are_masked() {
    let upstream = MockUpstream::start().await;
    let config = format!("{EVERY_TURN}[context.observations]\nuser_pattern = '^Observation:'\n");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let messages = text_protocol(4, "{\"role\":\"user\",\"content\":");
    let (_, arrived) = send(&tidegate, &upstream, &[], &body("gpt-4o", &messages, &[])).await;
    assert_eq!(arrived, body("gpt-4o", &messages, &[2, 4]));
}

#[tokio::test]
async fn without_a_pattern_user_messages_are_kept() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let sent = body("gpt-4o", &text_protocol(4, "{\"role\":\"user\",\"content\":"), &[]);
    let (_, arrived) = send(&tidegate, &upstream, &[], &sent).await;
    assert_eq!(arrived, sent);
}

const TAG: &str = "\"observation\" : {\"type\":\"tool_output\"}";

#[tokio::test]
async fn tagged_messages_are_masked_and_the_tag_is_removed() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for (tagged, bare) in [
        (format!("{{{TAG}, \"role\":\"user\",\"content\":"), "{\"role\":\"user\",\"content\":"),
        (format!("{{\"role\":\"user\" ,{TAG} ,  \"content\":"), "{\"role\":\"user\" ,\"content\":"),
    ] {
        let sent = body("gpt-4o", &text_protocol(4, &tagged), &[]);
        let (_, arrived) = send(&tidegate, &upstream, &[], &sent).await;
        assert_eq!(arrived, body("gpt-4o", &text_protocol(4, bare), &[2, 4]));
    }
}

/// Providers reject unknown members, whatever the strategy.
#[tokio::test]
async fn the_tag_is_removed_even_if_nothing_is_masked() {
    let upstream = MockUpstream::start().await;
    let tagged = text_protocol(3, &format!("{{\"role\":\"user\",{TAG},\"content\":"));
    let expected = body("gpt-4o", &text_protocol(3, "{\"role\":\"user\",\"content\":"), &[]);
    for config in ["[context]\nstrategy = \"passthrough\"\n", "[context]\nobserve = true\n"] {
        let tidegate = Tidegate::start(config, &upstream).await;
        let (_, arrived) = send(&tidegate, &upstream, &[], &body("gpt-4o", &tagged, &[])).await;
        assert_eq!(arrived, expected, "{config}");
    }
}

#[tokio::test]
async fn other_tags_are_left_alone() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let sent = body(
        "gpt-4o",
        &text_protocol(4, "{\"role\":\"user\",\"observation\":{\"type\":\"note\"},\"content\":"),
        &[],
    );
    assert_eq!(send(&tidegate, &upstream, &[], &sent).await.1, sent);
}

#[tokio::test]
async fn results_of_excluded_tools_are_kept() {
    let upstream = MockUpstream::start().await;
    let config = format!("{EVERY_TURN}exclude_tools = [\"read_*\", \"todo\"]\n");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let tool = |turn: usize| ["read_file", "shell", "todo", "shell"][turn % 4];
    let messages = conversation_with(8, tool);
    let (reply, arrived) = send(&tidegate, &upstream, &[], &body("gpt-4o", &messages, &[])).await;
    let shells: Vec<usize> = results(0..6).into_iter().skip(1).step_by(2).collect();
    assert_eq!(arrived, body("gpt-4o", &messages, &shells));
    assert_eq!(reply.header("x-tidegate-edits"), Some("masked=3,folded=0,dropped=0"));
}
