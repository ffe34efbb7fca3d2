use super::*;
use crate::recall_offer::RECALL_TOOL;

fn chunk(id: &str, delta: Value, finish: Option<&str>) -> String {
    let chunk = json!({ "id": id, "created": 1, "object": "chat.completion.chunk", "model": "m",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    format!("data: {chunk}\n\n")
}

fn call(index: u64, name: &str, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "id": format!("c{index}"), "type": "function",
        "function": { "name": name, "arguments": arguments } }] })
}

const DONE: &str = "data: [DONE]\n\n";

/// Feeds an answer in pieces of this length.
fn fed(stream: &mut RecallStream, answer: &str, step: usize) -> String {
    let passed: Vec<u8> = answer.as_bytes().chunks(step).flat_map(|chunk| stream.feed(chunk)).collect();
    String::from_utf8(passed).unwrap()
}

fn asking() -> String {
    [
        chunk("a", json!({ "role": "assistant", "content": "Let me see. " }), None),
        chunk("a", call(0, RECALL_TOOL, ""), None),
        chunk(
            "a",
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"ref\":1}" } }] }),
            None,
        ),
        chunk("a", json!({}), Some("tool_calls")),
        "data: {\"id\":\"a\",\"choices\":[],\"usage\":{\"prompt_tokens\":7}}\n\n".to_owned(),
        DONE.to_owned(),
    ]
    .concat()
}

fn said(stream: &str) -> String {
    let chunks = stream.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    let chunks = chunks.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks
        .map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn an_answer_without_calls_passes_unchanged() {
    let answer = [
        ": hi\n\n".to_owned(),
        chunk("a", json!({ "role": "assistant", "content": "" }), None),
        chunk("a", json!({ "content": "42", "tool_calls": null }), None),
        chunk("a", json!({}), Some("stop")),
        DONE.to_owned(),
    ];
    for step in [1, 7, 10_000] {
        let mut stream = RecallStream::new(false);
        assert_eq!(fed(&mut stream, &answer.concat(), step), answer.concat());
        assert_eq!(stream.end(&mut Vec::new()), None);
    }
}

#[test]
fn answers_to_recalls_are_one_stream() {
    for step in [1, 11, 10_000] {
        let mut stream = RecallStream::new(false);
        let first = fed(&mut stream, &asking(), step);
        assert_eq!(first, chunk("a", json!({ "role": "assistant", "content": "Let me see. " }), None));
        let (asked, usage) = stream.end(&mut Vec::new()).unwrap();
        assert_eq!((asked.calls[0].id.as_str(), asked.calls[0].arguments.as_str()), ("c0", "{\"ref\":1}"));
        assert_eq!(usage.unwrap().prompt_tokens, 7);
        stream.next_answer(false);
        let answer = [
            chunk("b", json!({ "role": "assistant", "content": "" }), None),
            chunk("b", json!({ "content": "It is 42." }), None),
            chunk("b", json!({}), Some("stop")),
            DONE.to_owned(),
        ];
        let rest = fed(&mut stream, &answer.concat(), step);
        assert_eq!(said(&(first + &rest)), "Let me see. It is 42.");
        assert!(!rest.contains("role") && !rest.contains("\"b\"") && rest.ends_with(DONE), "{rest}");
        assert_eq!(rest.matches("\"finish_reason\":\"stop\"").count(), 1);
        assert_eq!(stream.end(&mut Vec::new()), None);
    }
}

#[test]
fn the_clients_own_calls_are_numbered_densely() {
    let answer = [
        chunk("a", json!({ "role": "assistant", "content": null }), None),
        chunk("a", call(0, RECALL_TOOL, "{}"), None),
        chunk("a", call(1, "ls", ""), None),
        chunk("a", call(2, RECALL_TOOL, "{}"), None),
        chunk("a", call(3, "tide", ""), None),
        chunk(
            "a",
            json!({ "tool_calls": [{ "index": 3, "function": { "name": "_table", "arguments": "{}" } }] }),
            None,
        ),
        chunk("a", json!({ "tool_calls": [{ "index": 1, "function": { "arguments": "{}" } }] }), None),
        chunk("a", json!({}), Some("tool_calls")),
        DONE.to_owned(),
    ];
    let mut stream = RecallStream::new(false);
    let passed = fed(&mut stream, &answer.concat(), 13);
    assert!(!passed.contains(RECALL_TOOL) && passed.ends_with(DONE), "{passed}");
    let mut reader = SideReader::new(Dialect::Chat);
    reader.feed(passed.as_bytes());
    let calls: Vec<_> =
        reader.answer().tool_calls.iter().map(|call| (&*call.name, &*call.arguments, &*call.id)).collect();
    assert_eq!(calls, [("ls", "{}", "c1"), ("tide_table", "{}", "c3")]);
    assert_eq!(stream.end(&mut Vec::new()), None);
}

#[test]
fn the_last_answer_asks_in_vain() {
    let mut stream = RecallStream::new(false);
    fed(&mut stream, &asking(), 100);
    stream.next_answer(true);
    let passed = fed(&mut stream, &asking(), 100);
    assert!(passed.contains("\"finish_reason\":\"stop\"") && passed.ends_with(DONE), "{passed}");
    assert!(!passed.contains("tool_calls") && passed.contains("usage"), "{passed}");
    assert_eq!(stream.end(&mut Vec::new()), None);
}

/// As OpenAI's own API begins an answer that is nothing but a call: who speaks and what is called come at once.
#[test]
fn an_answer_that_begins_with_a_call_is_still_the_assistants() {
    let mut begun = call(0, RECALL_TOOL, "");
    begun["role"] = "assistant".into();
    begun["content"] = Value::Null;
    let arguments = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"ref\":1}" } }] });
    let mut whole = call(0, RECALL_TOOL, "{}");
    whole["role"] = "assistant".into();
    for asks in [
        vec![chunk("a", begun, None), chunk("a", arguments, None), chunk("a", json!({}), Some("tool_calls"))],
        vec![chunk("a", whole, Some("tool_calls"))],
    ] {
        let mut stream = RecallStream::new(false);
        let mut got = fed(&mut stream, &(asks.concat() + DONE), 9);
        assert!(!stream.is_over());
        assert!(stream.end(&mut Vec::new()).is_some());
        stream.next_answer(false);
        let answer = [
            chunk("b", json!({ "role": "assistant", "content": "" }), None),
            chunk("b", json!({ "content": "It is 42." }), None),
            chunk("b", json!({}), Some("stop")),
        ];
        got += &fed(&mut stream, &(answer.concat() + DONE), 9);
        assert!(stream.is_over());
        assert_eq!(got.matches("\"role\":\"assistant\"").count(), 1, "{got}");
        assert!(got.find("\"role\"") < got.find("It is 42.") && !got.contains("tool_calls"), "{got}");
        assert_eq!(got.matches("\"finish_reason\":\"stop\"").count(), 1, "{got}");
    }
}

#[test]
fn a_call_that_was_cut_off_is_no_question() {
    let mut stream = RecallStream::new(false);
    let answer = [
        chunk("a", json!({ "role": "assistant", "content": "Hm." }), None),
        chunk("a", call(0, RECALL_TOOL, "{\"re"), None),
        chunk("a", json!({}), Some("length")),
        DONE.to_owned(),
    ];
    let passed = fed(&mut stream, &answer.concat(), 10);
    assert!(passed.contains("\"finish_reason\":\"length\"") && passed.ends_with(DONE), "{passed}");
    assert!(!passed.contains("tool_calls") && stream.is_over());
    assert_eq!(stream.end(&mut Vec::new()), None);
}

#[test]
fn a_tool_whose_name_begins_like_ours_is_the_clients() {
    for name in ["tidegate_recall_all", "tide"] {
        let said = |text: &str| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] });
        let answer = [
            chunk("a", json!({ "role": "assistant", "content": null }), None),
            chunk("a", call(0, name, ""), None),
            chunk("a", said("{\"of\":"), None),
            chunk("a", said("1}"), None),
            chunk("a", json!({}), Some("tool_calls")),
            DONE.to_owned(),
        ];
        let mut stream = RecallStream::new(false);
        let passed = fed(&mut stream, &answer.concat(), 10);
        let mut reader = SideReader::new(Dialect::Chat);
        reader.feed(passed.as_bytes());
        let calls = &reader.answer().tool_calls;
        assert_eq!((calls.len(), &*calls[0].name, &*calls[0].arguments), (1, name, "{\"of\":1}"), "{passed}");
        assert!(passed.contains("\"finish_reason\":\"tool_calls\"") && stream.is_over());
    }
}

/// Whatever an upstream sends, reading it ends well.
#[test]
fn what_makes_no_sense_passes() {
    let strange = [
        json!({ "choices": ["x"] }),
        json!({ "choices": [{ "delta": "x", "finish_reason": "stop" }] }),
        json!({ "choices": [{ "delta": { "tool_calls": ["x", 7, { "function": "x" }, { "function": "y" }] } }] }),
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "function": { "name": "tide" } }] } }] }),
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "function": "x" }] } }] }),
        json!({ "choices": [{ "delta": 7, "finish_reason": "tool_calls" }] }),
    ];
    let answer: String = strange.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let mut stream = RecallStream::new(false);
    let passed = fed(&mut stream, &answer, 10);
    assert!(passed.contains("\"tide\""), "{passed}");
    assert_eq!(stream.end(&mut Vec::new()), None);
}

/// The client parses the text that it gets as a whole.
#[test]
fn an_answer_in_a_form_that_has_begun_is_not_continued() {
    let mut stream = RecallStream::new(true);
    let passed = fed(&mut stream, &asking(), 10);
    assert!(passed.contains("\"finish_reason\":\"stop\"") && passed.ends_with(DONE), "{passed}");
    assert!(!passed.contains(RECALL_TOOL) && stream.end(&mut Vec::new()).is_none());
    let silent = asking().replace("Let me see. ", "");
    let mut stream = RecallStream::new(true);
    fed(&mut stream, &silent, 10);
    assert!(stream.end(&mut Vec::new()).is_some());
}
