//! Messages that are never folded.

use super::scene::{edits, send, start, summarization, upstream};
use crate::support::chat::{CONSTRAINT, calls, chat, output, question, result, system, user};

const INLINE: &str = "mode = \"inline\"\n";

#[tokio::test]
async fn a_pinned_task_is_kept() {
    let upstream = upstream().await;
    let tidegate = start(&summarization("mode = \"inline\"\npin_task = true\n"), &upstream).await;
    for questions in 4..=9 {
        let messages = chat(questions);
        let (_, forwarded) = send(&tidegate, &upstream, "a", &messages).await;
        assert_eq!(forwarded.summary().unwrap().at, 1);
        assert_eq!(forwarded.messages[0], messages[0]);
        assert_eq!(forwarded.messages[2], messages[1], "the task moved");
        let kept = forwarded.messages.len() - 3;
        assert_eq!(forwarded.messages[3..], messages[messages.len() - kept..]);
    }
}

#[tokio::test]
async fn instructions_are_kept_wherever_they_are() {
    let upstream = upstream().await;
    let tidegate = start(&summarization(INLINE), &upstream).await;
    let mut messages = chat(4);
    let developer = "{\"role\":\"developer\",\"content\":\"Tools are metered.\"}".to_owned();
    let late = system("From here on, be brief.");
    messages.insert(1, developer.clone());
    messages.insert(question(1) + 1, late.clone());
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &messages).await;
    assert_eq!(edits(&reply), "masked=0,folded=9,dropped=0");
    let summary = forwarded.summary().unwrap();
    // It is in the next question.
    assert_eq!((summary.at, summary.covered), (3, 9));
    assert_eq!(forwarded.messages[..3], [system(CONSTRAINT), developer, late]);
    assert_eq!(forwarded.messages[4..], messages[question(2) + 2..]);
    assert!(!summary.text.contains("metered") && !summary.text.contains("be brief"), "{}", summary.text);
}

#[tokio::test]
async fn the_role_of_the_summary_is_configurable() {
    let upstream = upstream().await;
    let tidegate = start(&summarization("mode = \"inline\"\nrole = \"system\"\n"), &upstream).await;
    let (_, forwarded) = send(&tidegate, &upstream, "a", &chat(4)).await;
    let summary = forwarded.summary().unwrap();
    assert_eq!((summary.at, summary.role.as_str()), (1, "system"));
}

/// An agent with one task that has called tools ever since: the task is the last user message.
#[tokio::test]
async fn the_last_request_and_the_unresolved_end_are_kept() {
    let upstream = upstream().await;
    let settings =
        summarization(INLINE).replace(super::scene::FOLD, "when = { turns = 5 }\nkeep = { turns = 1 }\n");
    let tidegate = start(&settings, &upstream).await;
    let mut messages = vec![system(CONSTRAINT), user("Mend every pier.")];
    for turn in 0..12 {
        let ids = [format!("call_{turn}_a"), format!("call_{turn}_b")];
        messages.push(calls(&ids));
        messages.extend(ids.iter().map(|id| result(id, &output(turn))));
        let (_, forwarded) = send(&tidegate, &upstream, "a", &messages).await;
        assert!(forwarded.messages.contains(&messages[0]) && forwarded.messages.contains(&messages[1]));
        assert!(
            forwarded.messages.ends_with(&messages[messages.len() - 3..]),
            "turn {turn}: {}",
            forwarded.body
        );
        if turn >= 4 {
            assert_eq!(forwarded.summary().expect("a summary").at, 1);
            assert_eq!(forwarded.messages[2], messages[1]);
        }
    }
}
