//! What the provider keeps or manages itself is left to it.

use super::{conversation, edits, send, upstream};
use crate::support::agent::EVERY_TURN;
use crate::support::tidegate::Tidegate;

const STRICT: &str = "[context]\nstrategy = \"hybrid\"\n[context.fold]\nmode = \"inline\"\nwhen = { user_turns = 1 }\n\
    [context.budget]\nmax_input = 300\nrefuse_at = \"budget\"\n";

fn with(member: &str) -> String {
    conversation(6, 0).replacen('{', &format!("{{ {member},"), 1)
}

#[tokio::test]
async fn a_request_that_continues_the_providers_history_is_neither_edited_nor_refused() {
    let upstream = upstream().await;
    for settings in [EVERY_TURN, STRICT] {
        let tidegate = Tidegate::start(settings, &upstream).await;
        for member in [
            r#""previous_response_id":"resp_0""#,
            r#""conversation":"conv_1""#,
            r#""conversation" : {"id":"conv_1"}"#,
        ] {
            let sent = with(member);
            let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
            assert_eq!(reply.header("x-tidegate-history"), Some("upstream"), "{member}");
            assert_eq!(reply.header("x-tidegate-edits"), Some(&*edits(0)));
            assert_eq!(arrived, sent);
        }
        let follow_up = r#"{"model":"gpt-5","previous_response_id":"resp_0","input":"and then?"}"#;
        let (reply, arrived) = send(&tidegate, &upstream, follow_up).await;
        assert_eq!((reply.header("x-tidegate-history"), &*arrived), (Some("upstream"), follow_up));
    }
}

/// `input` may be left out where the provider has all that is to be answered.
#[tokio::test]
async fn a_request_without_input_passes() {
    let upstream = upstream().await;
    for settings in [EVERY_TURN, STRICT] {
        let tidegate = Tidegate::start(settings, &upstream).await;
        for (member, history) in [
            (r#""previous_response_id":"resp_0""#, Some("upstream")),
            (r#""conversation":"conv_1""#, Some("upstream")),
            (r#""prompt":{"id":"pmpt_1","variables":{"city":"Ulm"}}"#, None),
        ] {
            let sent = format!("{{\"model\":\"gpt-5\",{member}}}\n");
            let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
            assert_eq!((&arrived, reply.header("x-tidegate-history")), (&sent, history), "{member}");
            assert_eq!(reply.header("x-tidegate-degraded"), None, "{member}");
            assert_eq!(reply.header("x-tidegate-route"), Some("default"));
        }
        // A legal request names where its messages are.
        let (reply, _) = send(&tidegate, &upstream, r#"{"model":"gpt-5"}"#).await;
        assert_eq!(reply.header("x-tidegate-degraded"), Some("unreadable"));
    }
}

#[tokio::test]
async fn no_history_of_the_providers_is_none() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let (reply, _) =
        send(&tidegate, &upstream, &with(r#""previous_response_id":null,"conversation":null"#)).await;
    assert_eq!(reply.header("x-tidegate-history"), None);
    assert_eq!(reply.header("x-tidegate-edits"), Some(&*edits(8)));
}

#[tokio::test]
async fn compaction_is_the_providers() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let item = |json: &str| {
        conversation(6, 0).replacen("{\"role\":\"user\"", &format!("{json},{{\"role\":\"user\""), 1)
    };
    let asked = [
        with(r#""context_management":[{"type":"compaction","compact_threshold":200000}]"#),
        item(r#"{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}"#),
        conversation(6, 0).replace(" ],\"x\"", ",{\"type\":\"compaction_trigger\"} ],\"x\""),
    ];
    for sent in &asked {
        let (reply, arrived) = send(&tidegate, &upstream, sent).await;
        assert_eq!(reply.header("x-tidegate-edits"), Some("native"), "{sent}");
        assert_eq!(&arrived, sent);
    }
    let ignoring = Tidegate::start(&format!("[context]\nnative = \"ignore\"\n{EVERY_TURN}"), &upstream).await;
    for sent in &asked {
        let (reply, arrived) = send(&ignoring, &upstream, sent).await;
        assert!(reply.header("x-tidegate-edits").unwrap().starts_with("masked="));
        assert!(arrived.len() < sent.len());
    }
}
