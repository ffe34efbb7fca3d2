use crate::Answer;
use serde_json::{Value, json};

pub(crate) fn answer_message(answer: &Answer) -> Option<Vec<u8>> {
    let has_content = answer.content.is_some() || answer.refusal.is_some() || !answer.tool_calls.is_empty();
    if answer.failed || answer.truncated || !has_content {
        return None;
    }
    let mut message = json!({ "role": "assistant", "content": answer.content });
    if let Some(refusal) = &answer.refusal {
        message["refusal"] = json!(refusal);
    }
    if !answer.tool_calls.is_empty() {
        let calls = answer.tool_calls.iter().map(|call| {
            let (kind, input) = match call.kind.as_str() {
                "custom" => ("custom", "input"),
                _ => ("function", "arguments"),
            };
            json!({ "id": call.id, "type": kind, kind: { "name": call.name, input: call.arguments } })
        });
        message["tool_calls"] = calls.collect::<Value>();
    }
    serde_json::to_vec(&message).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn same(completion: &str, sent_back: &str) {
        let answer = Dialect::Chat.read_answer(completion.as_bytes()).unwrap();
        let message = answer_message(&answer).unwrap();
        let canonical = |raw: &[u8]| Dialect::Chat.read_facts(raw).unwrap().canonical;
        assert_eq!(canonical(&message), canonical(sent_back.as_bytes()), "{completion}");
    }

    #[test]
    fn it_equals_the_message_that_clients_send_back() {
        same(
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi \u00fc","refusal":null}}]}"#,
            r#"{"role":"assistant","content":"hi ü"}"#,
        );
        same(
            r#"{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function",
                "function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":"custom","custom":{"name":"g","input":"ls"}}]}}]}"#,
            r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
                {"id":"b","type":"custom","custom":{"name":"g","input":"ls"}}]}"#,
        );
        same(
            r#"{"choices":[{"message":{"role":"assistant","content":null,"refusal":"no"}}]}"#,
            r#"{"role":"assistant","content":null,"refusal":"no"}"#,
        );
    }

    #[test]
    fn failed_and_empty_answers_give_no_message() {
        for completion in [r#"{"error":{"message":"x"}}"#, r#"{"choices":[]}"#, "{}"] {
            assert_eq!(answer_message(&Dialect::Chat.read_answer(completion.as_bytes()).unwrap()), None);
        }
    }
}
