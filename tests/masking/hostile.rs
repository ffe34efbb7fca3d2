//! Requests that are built to cause harm: each gets a response, and the process survives.

use crate::support::agent::{EVERY_TURN, body, conversation, send};
use crate::support::client::{CHAT, exchange, post};
use crate::support::cores::busy;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream};

/// The expected outcome of a hostile request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is forwarded byte for byte.
    Forwarded,
    /// It is forwarded byte for byte, and the response says that it could not be read.
    Unreadable,
    /// It is refused as over budget.
    TooLong,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) body: Vec<u8>,
    pub(crate) outcome: Outcome,
}

pub(crate) const MEGABYTES: usize = 10 << 20;

/// A model with a huge window, so that a long request is read, counted and forwarded, and one with a small one, so that it is refused.
pub(crate) const WIDE: &str = "[models.\"wide\"]\nwindow = 1000000000\n[models.\"narrow\"]\nwindow = 128000\nencoding = \"o200k_base\"\n";

pub(crate) fn cases() -> Vec<Case> {
    use Outcome::{Forwarded, TooLong, Unreadable};
    let user_message = |model: &str, content: &str| {
        format!("{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":{content}}}]}}")
            .into_bytes()
    };
    let text = |model: &str, text: &str| user_message(model, &serde_json::to_string(text).unwrap());
    let many = |model: &str, message: &str| {
        let rest = format!(",{message}").repeat(99_999);
        format!("{{\"model\":\"{model}\",\"messages\":[{message}{rest}]}}").into_bytes()
    };
    let deep = |open: &str, close: &str| {
        let nested = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        user_message("wide", &format!("\"x\",\"x_deep\":{nested}"))
    };
    let with =
        |bytes: &[u8]| [b"{\"messages\":[{\"role\":\"user\",\"content\":\"a", bytes, b"\"}]}"].concat();
    let case = |name, outcome, body| Case { name, body, outcome };
    let user = "{\"role\":\"user\",\"content\":\"x\"}";
    let tool = "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"x\"}";
    vec![
        case("100,000 messages", Forwarded, many("wide", user)),
        case("100,000 messages that do not fit", TooLong, many("narrow", user)),
        case("100,000 results", Forwarded, many("wide", tool)),
        case(
            "10 MB of prose",
            Forwarded,
            text("wide", &"the tide comes in at the gate. ".repeat(MEGABYTES / 31)),
        ),
        case("10 MB of one letter", Forwarded, text("wide", &"a".repeat(MEGABYTES))),
        case("10 MB of one letter that do not fit", TooLong, text("narrow", &"a".repeat(MEGABYTES))),
        case("10 MB of spaces", Forwarded, text("wide", &" ".repeat(MEGABYTES))),
        case("10 MB of noise", Forwarded, text("wide", &noise(MEGABYTES))),
        case(
            "10 MB between the messages",
            Forwarded,
            [user_message("wide", "\"x\"").as_slice(), &vec![b' '; MEGABYTES]].concat(),
        ),
        case("arrays 10,000 deep", Unreadable, deep("[", "]")),
        case("objects 10,000 deep", Unreadable, deep("{\"a\":", "}")),
        case("10,000 that never close", Unreadable, [b"{\"messages\":".as_slice(), &[b'['; 10_000]].concat()),
        case("a lone surrogate", Forwarded, with(b"\\ud800")),
        case("an escaped NUL", Forwarded, with(b"\\u0000")),
        case("a bare NUL", Unreadable, with(b"\0")),
        case("a byte order mark", Unreadable, [b"\xef\xbb\xbf".as_slice(), &with(b"")].concat()),
        case("invalid UTF-8", Unreadable, with(b"\xc3\x28")),
        case("a number that overflows", Forwarded, user_message("wide", "\"x\",\"x_n\":1e999")),
        case(
            "a max_tokens that overflows",
            Forwarded,
            user_message("wide", "\"x\"}],\"max_tokens\":1e999,\"x\":[{\"a\":1"),
        ),
    ]
}

/// Pseudorandom text with a fixed seed.
fn noise(bytes: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut text = String::with_capacity(bytes + 4);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let letter = if state.is_multiple_of(4) {
            (state >> 20) as u32 % 0x3000
        } else {
            (state >> 20) as u32 % 95 + 32
        };
        text.push(char::from_u32(letter).unwrap_or(' '));
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_are_answered_and_the_process_survives() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    // In memory, because a slow disk takes longer than the store timeout to write ten megabytes.
    let config = format!("{WIDE}{EVERY_TURN}\n[store]\nurl = \"memory:\"\n");
    let tidegate = Tidegate::start(&config, &upstream).await;
    for Case { name, body: sent, outcome } in cases() {
        let reply = exchange(tidegate.address, post(CHAT, &[], &sent)).await;
        match outcome {
            Outcome::Forwarded => {
                assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None), "{name}");
                assert!(upstream.next_request().await.body == sent, "{name} was changed");
            }
            Outcome::Unreadable => {
                assert_eq!(
                    (reply.status, reply.header("x-tidegate-degraded")),
                    (200, Some("unreadable")),
                    "{name}"
                );
                assert!(upstream.next_request().await.body == sent, "{name} was changed");
            }
            Outcome::TooLong => {
                assert_eq!(
                    (reply.status, reply.error_code().as_str()),
                    (422, "context_budget_exceeded"),
                    "{name}"
                );
                assert!(reply.body.len() < 2_000, "{name}");
            }
        }
        let small = body("gpt-4o", &conversation(1), &[]);
        assert_eq!(send(&tidegate, &upstream, &[], &small).await.1, small, "after {name}");
    }
}
