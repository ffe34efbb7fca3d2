//! Clients that send their last answers changed, and as they were from the next request on. Without a name, their conversation is
//! recognised by the messages before these.

use crate::support::agent::{body, conversation, send};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

const TURNS: usize = 40;
const SETTINGS: &str = "[store]\nurl = \"memory:\"\n[context.mask]\nkeep = { turns = 8 }\n";

/// The requests of an agent that appends `addition` to its last `changed` answers.
fn requests(changed: usize, addition: &str) -> Vec<String> {
    let request = |turns| {
        let mut messages = conversation(turns);
        let answers = messages.iter_mut().rev().filter(|message| message.before.contains("\"assistant\""));
        for message in answers.take(changed) {
            let content: Option<String> = serde_json::from_str(&message.content).unwrap();
            message.content = serde_json::to_string(&(content.unwrap_or_default() + addition)).unwrap();
        }
        body("gpt-5", &messages, &[])
    };
    (1..=TURNS).map(request).collect()
}

#[tokio::test]
async fn they_are_masked_no_more_often_than_with_a_name() {
    for (changed, addition) in [
        (0, ""),
        (1, " \n\n"),
        (1, "<think>The tide rises.</think>"),
        (2, "<think>It falls.</think>"),
        (3, "<think>It is slack.</think>"),
    ] {
        let mut runs = Vec::new();
        for name in [&[("x-conversation-id", "named")][..], &[]] {
            let upstream = MockUpstream::start().await;
            let tidegate = Tidegate::start(SETTINGS, &upstream).await;
            let mut moves = Vec::new();
            for request in requests(changed, addition) {
                let (reply, _) = send(&tidegate, &upstream, name, &request).await;
                moves.push(reply.header("x-tidegate-trigger").is_some());
            }
            runs.push(moves.into_iter().filter(|moved| *moved).count());
        }
        assert!((1..TURNS / 3).contains(&runs[0]), "{changed} changed: {runs:?}");
        assert_eq!(runs[1], runs[0], "{changed} changed");
    }
}
