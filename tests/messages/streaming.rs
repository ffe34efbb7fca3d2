//! Streams pass as they are, and a broken one ends with an error event.

use super::{HEADERS, MESSAGES, conversation};
use crate::support::client::{exchange, post};
use crate::support::reply::End;
use crate::support::tidegate::Tidegate;
use serde_json::Value;
use tidegate_testkit::{Answer, Ending, Framing, MockUpstream};

const EVENTS: [&str; 6] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":90,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];

fn stream() -> Answer {
    let head = Answer::new(200).header("content-type", "text/event-stream").framing(Framing::Chunked);
    EVENTS.iter().fold(head, |answer, event| answer.chunk(event.to_string()))
}

#[tokio::test]
async fn a_stream_passes_byte_for_byte() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    upstream.then(stream());
    let reply = exchange(tidegate.address, post(MESSAGES, &HEADERS, conversation(1, 0))).await;
    assert_eq!((reply.status, reply.text()), (200, EVENTS.concat()));
}

#[tokio::test]
async fn a_broken_stream_ends_with_an_error_event() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let whole = EVENTS.concat();
    let end_of_last = whole.len() - EVENTS[5].len();
    for position in (0..end_of_last).step_by(37) {
        upstream.then(stream().break_after_body_bytes(position as u64, Ending::Close));
        let reply = exchange(tidegate.address, post(MESSAGES, &HEADERS, conversation(1, 0))).await;
        assert_eq!((reply.status, reply.end), (200, End::Complete));
        let text = reply.text();
        let (before, event) = text.rsplit_once("event: error\ndata: ").unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!(before.trim_end_matches('\n'), whole[..position].trim_end_matches('\n'));
        let error: Value = serde_json::from_str(event.trim_end()).unwrap();
        assert_eq!((&error["type"], &error["error"]["type"]), (&"error".into(), &"api_error".into()));
    }
}
