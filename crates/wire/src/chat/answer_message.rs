use crate::answer::push_member;
use crate::{Answer, AnswerCall};
use serde_json::{Value, json};

pub(crate) fn answer_message(answer: &Answer) -> Option<Vec<u8>> {
    let has_content = answer.content.is_some()
        || answer.refusal.is_some()
        || !answer.tool_calls.is_empty()
        || !answer.members.is_empty();
    if answer.failed || answer.truncated || !has_content {
        return None;
    }
    if let Some(whole) = &answer.whole {
        return Some(whole.clone().into_bytes());
    }
    let mut message = String::new();
    push_member(&mut message, "role", "\"assistant\"");
    push_member(&mut message, "content", &json!(answer.content).to_string());
    if let Some(refusal) = &answer.refusal {
        push_member(&mut message, "refusal", &json!(refusal).to_string());
    }
    if !answer.tool_calls.is_empty() {
        let calls: Vec<String> = answer.tool_calls.iter().map(call).collect();
        push_member(&mut message, "tool_calls", &format!("[{}]", calls.join(",")));
    }
    answer.members.iter().for_each(|(key, member)| push_member(&mut message, key, &member.json()));
    Some(format!("{{{message}}}").into_bytes())
}

fn call(call: &AnswerCall) -> String {
    let (kind, input) = match call.kind.as_str() {
        "custom" => ("custom", "input"),
        _ => ("function", "arguments"),
    };
    let mut object = String::new();
    push_member(&mut object, "id", &json!(call.id).to_string());
    push_member(&mut object, "type", &json!(kind).to_string());
    let called: Value = json!({ "name": call.name, input: call.arguments });
    push_member(&mut object, kind, &called.to_string());
    call.members.iter().for_each(|(key, member)| push_member(&mut object, key, &member.json()));
    format!("{{{object}}}")
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
    fn every_member_of_a_whole_message_is_kept_as_it_came() {
        let completion = br#"{"choices":[{"message":{"content":"hi","reasoning_content":"hm\u002e","tool_calls":[],"audio":null,
            "role":"assistant" , "x_n": 1.50e3,"x":{"b":1,"a":2}}}]}"#;
        let answer = Dialect::Chat.read_answer(completion).unwrap();
        let expected = r#"{"content":"hi","reasoning_content":"hm\u002e","role":"assistant","x_n":1.50e3,"x":{"b":1,"a":2}}"#;
        assert_eq!(String::from_utf8(answer_message(&answer).unwrap()).unwrap(), expected);
    }

    #[test]
    fn every_member_of_a_streamed_message_is_kept() {
        let mut answer = Answer::default();
        for delta in [
            r#"{"role":"assistant","reasoning_content":"let me","details":[{"i":0}]}"#,
            r#"{"reasoning_content":" see","details":[{"i":1}],"content":""}"#,
            r#"{"content":"42","reasoning_content":null,"tool_calls":[{"index":0,"id":"a","function":{"name":"f"},"extra":{"s":"x"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#,
        ] {
            let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
            assert!(super::super::answer::read_answer(chunk.as_bytes(), &mut answer));
        }
        let message: Value = serde_json::from_slice(&answer_message(&answer).unwrap()).unwrap();
        let expected = json!({ "role": "assistant", "content": "42", "reasoning_content": "let me see",
            "details": [{ "i": 0 }, { "i": 1 }], "tool_calls": [{ "id": "a", "type": "function",
            "function": { "name": "f", "arguments": "{}" }, "extra": { "s": "x" } }] });
        assert_eq!(message, expected);
    }

    #[test]
    fn failed_and_empty_answers_give_no_message() {
        for completion in [r#"{"error":{"message":"x"}}"#, r#"{"choices":[]}"#, "{}"] {
            assert_eq!(answer_message(&Dialect::Chat.read_answer(completion.as_bytes()).unwrap()), None);
        }
    }
}
