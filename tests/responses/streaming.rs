//! Streams pass as they are, their usage is read, and a broken one ends with an error event.

use super::{HEADERS, RESPONSES, conversation, response};
use crate::support::client::{exchange, post};
use crate::support::reply::End;
use crate::support::tidegate::Tidegate;
use serde_json::Value;
use tidegate_testkit::{Answer, Ending, Framing, MockUpstream};

fn events() -> Vec<String> {
    let item = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}"#;
    let event = |kind: &str, rest: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n");
    vec![
        event(
            "response.created",
            r#""sequence_number":0,"response":{"id":"resp_1","model":"gpt-5","output":[],"usage":null}"#,
        ),
        event("response.output_text.delta", r#""sequence_number":1,"delta":"hi""#),
        event(
            "response.output_item.done",
            &format!("\"sequence_number\":2,\"output_index\":0,\"item\":{item}"),
        ),
        event("response.completed", &format!("\"sequence_number\":3,\"response\":{}", response("hi"))),
    ]
}

fn stream() -> Answer {
    let head = Answer::new(200).header("content-type", "text/event-stream").framing(Framing::Chunked);
    events().into_iter().fold(head, Answer::chunk)
}

#[tokio::test]
async fn a_stream_passes_byte_for_byte() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    upstream.then(stream());
    let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, conversation(1, 0))).await;
    assert_eq!((reply.status, reply.text()), (200, events().concat()));
}

#[tokio::test]
async fn a_broken_stream_ends_with_an_error_event() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let whole = events().concat();
    let end_of_last = whole.len() - events()[3].len();
    for position in (0..end_of_last).step_by(61) {
        upstream.then(stream().break_after_body_bytes(position as u64, Ending::Close));
        let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, conversation(1, 0))).await;
        assert_eq!((reply.status, reply.end), (200, End::Complete));
        let text = reply.text();
        let (before, event) = text.rsplit_once("event: error\ndata: ").unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!(before.trim_end_matches('\n'), whole[..position].trim_end_matches('\n'));
        let error: Value = serde_json::from_str(event.trim_end()).unwrap();
        assert_eq!((&error["type"], &error["code"]), (&"error".into(), &error["error"]["code"]));
        assert_eq!(error["error"]["type"], "upstream_error");
    }
}
