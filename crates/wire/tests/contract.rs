//! Splitting, reading and splicing agree with `serde_json` on generated bodies, valid and damaged.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod oracle;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tidegate_wire::{Dialect, Unreadable, split};

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just(""), 1 => select(&[" ", "\n", "\t\r\n "][..])]
}

fn string() -> impl Strategy<Value = String> {
    let bits = [
        "a",
        "é",
        "😀",
        "\\n",
        "\\\"",
        "\\\\",
        "\\u0041",
        "\\ud800",
        "\\ud83d\\ude00",
        "\\/",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\u{7f}",
        "\\u0000",
        "plain words that fill more than one block of sixty-four bytes of the scanner, easily",
    ];
    prop::collection::vec(select(bits.to_vec()), 0..8).prop_map(|bits| format!("\"{}\"", bits.concat()))
}

fn array(element: impl Strategy<Value = String>, max_len: usize) -> impl Strategy<Value = String> {
    let spaced = (space(), element, space()).prop_map(|(a, element, b)| format!("{a}{element}{b}"));
    prop::collection::vec(spaced, 0..max_len).prop_map(|elements| format!("[{}]", elements.join(",")))
}

fn object(members: Vec<(String, String)>, space: &str) -> String {
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("{space}{key}{space}:{space}{value}{space}")).collect();
    format!("{{{}}}", members.join(","))
}

fn json() -> impl Strategy<Value = String> {
    let leaves = [
        "0",
        "-0",
        "1e999",
        "123456789012345678901234567890",
        "1.5E+3",
        "-1e-7",
        "true",
        "false",
        "null",
        "{}",
        "[]",
    ];
    let leaf = prop_oneof![select(leaves.to_vec()).prop_map(str::to_owned), string()];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let members = prop::collection::vec((string(), inner.clone()), 0..4);
        prop_oneof![array(inner, 4), (members, space()).prop_map(|(members, space)| object(members, space))]
    })
}

/// A key, sometimes spelled with an escape.
fn key(name: &'static str) -> impl Strategy<Value = String> {
    let escaped = format!("\"\\u00{:02x}{}\"", name.as_bytes()[0], &name[1..]);
    prop_oneof![4 => Just(format!("\"{name}\"")), 1 => Just(escaped)]
}

fn member(
    name: &'static str,
    value: impl Strategy<Value = String> + 'static,
) -> BoxedStrategy<Option<(String, String)>> {
    prop::option::of((key(name), value)).boxed()
}

fn joined(members: Vec<BoxedStrategy<Option<(String, String)>>>) -> impl Strategy<Value = String> {
    (members, space()).prop_flat_map(|(members, space)| {
        let present: Vec<_> = members.into_iter().flatten().collect();
        Just(present).prop_shuffle().prop_map(move |members| object(members, space))
    })
}

fn message() -> impl Strategy<Value = String> {
    let role =
        select(&["\"system\"", "\"user\"", "\"assistant\"", "\"tool\"", "5"][..]).prop_map(str::to_owned);
    let part = prop_oneof![
        string().prop_map(|text| format!("{{\"type\":\"text\",\"text\":{text}}}")),
        string()
            .prop_map(|url| format!("{{\"image_url\":{{\"url\":{url},\"x\":[1]}},\"type\":\"image_url\"}}")),
        json(),
    ];
    let content =
        prop_oneof![3 => string().boxed(), 1 => array(part, 4).boxed(), 1 => Just("null".to_owned()).boxed()];
    let call = (string(), string()).prop_map(|(id, arguments)| {
        format!(
            "{{\"id\":{id},\"type\":\"function\",\"function\":{{\"name\":\"f\",\"arguments\":{arguments}}}}}"
        )
    });
    let tag = prop_oneof![Just("{ \"type\" : \"tool_output\", \"n\":1}".to_owned()), string()];
    joined(vec![
        member("role", role),
        member("content", content),
        member("tool_calls", array(call, 3)),
        member("tool_call_id", string()),
        member("observation", tag),
        member("x_first", json()),
        member("x_second", json()),
    ])
}

fn body() -> impl Strategy<Value = String> {
    let messages = (key("messages"), array(message(), 6)).prop_map(Some).boxed();
    let whole = joined(vec![
        messages,
        member("model", string()),
        member("stream", json()),
        member("max_tokens", json()),
        member("tools", json()),
        member("x_other", json()),
    ]);
    (space(), whole, space()).prop_map(|(a, whole, b)| format!("{a}{whole}{b}"))
}

/// The oracle accepts any verdict on an ambiguous body. Generated bodies have no duplicate members, so none may count as ambiguous.
fn is_ambiguous(body: &str) -> bool {
    matches!(oracle::read_all(body.as_bytes()), Err(Unreadable::Ambiguous(_)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn valid_bodies_are_read_and_spliced(body in body(), seed in any::<u64>()) {
        prop_assert!(!is_ambiguous(&body));
        oracle::check(body.as_bytes(), seed);
    }

    #[test]
    fn serde_json_agrees_on_damaged_bodies(
        body in body(),
        damage in prop::collection::vec((any::<Index>(), 0..4_usize, prop_oneof![any::<u8>(), select(&b"{}[]\",:\\ "[..])]), 1..4),
        seed in any::<u64>(),
    ) {
        let mut bytes = body.into_bytes();
        for (index, kind, byte) in damage {
            let at = index.index(bytes.len());
            match kind {
                // Keep at least one byte for the next damage.
                0 if bytes.len() > 1 => { bytes.remove(at); }
                1 => bytes.insert(at, byte),
                3 => bytes.truncate(at.max(1)),
                _ => bytes[at] = byte,
            }
        }
        oracle::check(&bytes, seed);
    }

    #[test]
    fn serde_json_agrees_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), seed in any::<u64>()) {
        oracle::check(&bytes, seed);
        let _ = Dialect::Chat.read_message(&bytes);
    }
}

#[test]
fn a_hundred_thousand_messages_or_one_of_ten_megabytes_can_be_read() {
    let many = format!("{{\"messages\":[{}{{}}]}}", "{\"role\":\"user\",\"content\":\"x\"},".repeat(99_999));
    let (outline, facts) = oracle::read_all(many.as_bytes()).unwrap();
    assert_eq!((outline.messages.len(), facts.len()), (100_000, 100_000));

    let one = format!("{{\"messages\":[{{\"content\":\"{}\"}}]}}", "long \\n".repeat(1_500_000));
    let (outline, _) = oracle::read_all(one.as_bytes()).unwrap();
    assert_eq!(outline.messages[0].len(), one.len() - 15);
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for levels in [100, 10_000, 1_000_000] {
            let deep = format!("{}1{}", open.repeat(levels), close.repeat(levels));
            let inside = format!("{{\"messages\":[{{\"x\":{deep}}}]}}");
            assert_eq!(split(Dialect::Chat, inside.as_bytes()).is_ok(), levels == 100);
            let message = format!("{{\"content\":[{{\"x\":{deep}}}]}}");
            assert_eq!(Dialect::Chat.read_message(message.as_bytes()).is_ok(), levels == 100);
        }
    }
}
