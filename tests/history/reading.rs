//! Where something is promised, a request that cannot be read is refused.

use crate::support::client::{CHAT, exchange, post};
use crate::support::tidegate::Tidegate;
use serde_json::json;
use std::io::Write;
use tidegate_testkit::{Answer, MockUpstream};

/// A conversation that has had its only turn.
fn body() -> String {
    let messages = json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }, { "role": "user", "content": "c" }]);
    json!({ "model": "gpt-4o", "messages": messages }).to_string()
}

type Spelling = (Vec<(&'static str, &'static str)>, String, Vec<u8>, &'static str);

/// The same in ways that some upstreams read: headers, path, body, and the code of the refusal.
fn spellings() -> Vec<Spelling> {
    let plain = body();
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(plain.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let duplicate = plain.replacen("\"role\":\"assistant\"", "\"role\":\"assistant\",\"role\":\"user\"", 1);
    assert_ne!(duplicate, plain);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(plain.as_bytes()).unwrap();
    let chat = || CHAT.to_owned();
    vec![
        (vec![], chat(), [b"\xef\xbb\xbf", plain.as_bytes()].concat(), "unreadable_request"),
        (vec![], chat(), utf16, "unreadable_request"),
        (vec![], chat(), duplicate.into_bytes(), "unreadable_request"),
        (vec![("content-encoding", "compress")], chat(), plain.clone().into_bytes(), "unreadable_request"),
        (vec![("content-encoding", "deflate")], chat(), zlib.finish().unwrap(), "max_turns_exceeded"),
        (vec![], format!("{CHAT};x=1"), plain.clone().into_bytes(), "max_turns_exceeded"),
        (vec![], chat(), plain.into_bytes(), "max_turns_exceeded"),
    ]
}

#[tokio::test]
async fn limits_hold_for_requests_that_cannot_be_read() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let limited = "[store]\nurl = \"memory:\"\n[context.limits]\nmax_turns = 1\n";
    let for_some = "[[routes]]\nname = \"some\"\nmatch = { models = [\"gpt-*\"] }\n[routes.context.limits]\nmax_turns = 1\n";
    for settings in [limited, for_some] {
        let tidegate = Tidegate::start(settings, &upstream).await;
        for (headers, path, body, code) in spellings() {
            let reply = exchange(tidegate.address, post(&path, &headers, body)).await;
            let status = if code == "unreadable_request" { 400 } else { 422 };
            assert_eq!((reply.status, reply.error_code().as_str()), (status, code), "{headers:?} {path}");
        }
    }
    assert_eq!(upstream.requests().len(), 0);
    // Where nothing is promised, they pass.
    let tidegate = Tidegate::start("[store]\nurl = \"memory:\"\n", &upstream).await;
    for (headers, path, body, _) in spellings() {
        let reply = exchange(tidegate.address, post(&path, &headers, body)).await;
        assert_eq!(reply.status, 200, "{headers:?} {path}");
    }
}
