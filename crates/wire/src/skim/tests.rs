use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn skim(cap: usize, chunks: &[&[u8]]) -> Option<Skimmed> {
    let mut skimmer = Skimmer::new(cap, usize::MAX);
    chunks.iter().for_each(|chunk| skimmer.feed(chunk));
    skimmer.finish()
}

fn whole(text: &str) -> Option<Skimmed> {
    Some(Skimmed::Whole { document: text.as_bytes().to_vec(), is_shortened: false })
}

#[test]
fn only_what_nobody_reads_is_left_out() {
    let document = r#"{"choices":[{"logprobs":{"content":[{"token":"\"}","top_logprobs":[1,[2]]}]},"index":0},{"logprobs":null}],
        "logprobs" : "a,b}" , "a":{"b":"logprobs","c":[{}]},"usage":{"prompt_tokens":1}}"#;
    let expected = r#"{"choices":[{"logprobs":null,"index":0},{"logprobs":null}],
        "logprobs" :null, "a":{"b":"logprobs","c":[{}]},"usage":{"prompt_tokens":1}}"#;
    assert_eq!(skim(1000, &[document.as_bytes()]), whole(expected));
}

#[test]
fn the_usage_of_a_huge_document_is_found() {
    let document = format!(
        r#"{{"a":{{"usage":1}},"b":["usage"],"text":"{}","usage":{{"prompt_tokens":7}},"z":1}}"#,
        "x".repeat(5000)
    );
    let usage = br#"{"prompt_tokens":7}"#.to_vec();
    let rest = Skimmed::Rest(Rest { usage, ..Rest::default() });
    assert_eq!(skim(1000, &[document.as_bytes()]), Some(rest));
}

#[test]
fn the_kind_and_the_usage_of_a_huge_event_are_found() {
    let numbers = "1,".repeat(2000);
    let inner = format!(r#""response":{{"output":[{numbers}{{"usage":1}}],"usage":{{"x":[2]}},"a":1}}"#);
    for event in [format!(r#"{{"type":"done",{inner}}}"#), format!(r#"{{"usage":3,{inner},"type" :"done"}}"#)]
    {
        let Some(Skimmed::Rest(rest)) = skim(1000, &[event.as_bytes()]) else { panic!("{event}") };
        assert_eq!(rest.document(), br#"{"type":"done","response":{"usage":{"x":[2]}}}"#);
    }
    let event = format!(r#"{{"item":{{"usage":4}},"a":[{numbers}0]}}"#);
    let Some(Skimmed::Rest(rest)) = skim(1000, &[event.as_bytes()]) else { panic!("{event}") };
    assert_eq!(rest.document(), br#"{"type":null,"usage":null,"response":{}}"#);
}

#[test]
fn long_texts_are_left_out() {
    let document = r#"{"a":"12345","b":["123456","12\"456"],"logprobs":"1234567","123456":"1234"}"#;
    for cut in 0..document.len() {
        let mut skimmer = Skimmer::new(1000, 6);
        let (first, second) = document.as_bytes().split_at(cut);
        skimmer.feed(first);
        skimmer.feed(second);
        // The closing quote counts.
        let expected = r#"{"a":"12345","b":["",""],"logprobs":null,"123456":"1234"}"#;
        let whole = Skimmed::Whole { document: expected.into(), is_shortened: true };
        assert_eq!(skimmer.finish(), Some(whole), "{cut}");
    }
}

#[test]
fn an_incomplete_document_is_nothing() {
    for document in [r#"{"a":1"#, r#"{"a":"b"#, "{}}", &"[".repeat(200)] {
        assert_eq!(skim(1000, &[document.as_bytes()]), None, "{document}");
    }
}

/// Any JSON, with the keys that matter among others.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["\"", "\\", "}\"", "usage", "logprobs"]).prop_map(Value::from),
    ];
    let key = prop::sample::select(vec!["usage", "logprobs", "top_logprobs", "a", "\"}", "b\\"]);
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

fn without_skipped(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| {
                let is_skipped = SKIPPED.contains(&key.as_bytes());
                (key, if is_skipped { Value::Null } else { without_skipped(value) })
            })
            .collect(),
        Value::Array(elements) => elements.into_iter().map(without_skipped).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn the_copy_is_the_document_without_skipped_members(value in json(), is_pretty: bool, cut in 0usize..200) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
        let skimmed = skim(1 << 20, &[first, second]);
        let Some(Skimmed::Whole { document: copy, .. }) = skimmed else { panic!("{skimmed:?}") };
        prop_assert_eq!(serde_json::from_slice::<Value>(&copy).unwrap(), without_skipped(value));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(
        prop_oneof![any::<u8>(), prop::sample::select(&b"{}[]:,\"\\ul"[..])], 0..400), cap in 0usize..200) {
        skim(cap, &[&bytes]);
        let mut skimmer = Skimmer::new(cap, cap / 4);
        skimmer.feed(&bytes);
        skimmer.finish();
    }
}
