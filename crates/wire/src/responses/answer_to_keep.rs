//! The items of an answer as responses take them back. They refuse reasoning that nothing follows, and a call without its output.

use super::answer::answer_message;
use crate::answer::NO_ANSWER;
use crate::cursor::Value;
use crate::{Answer, MAX_DEPTH};
use serde_json::json;

pub(crate) fn answer_to_keep(answer: &Answer) -> Option<Vec<u8>> {
    let items = answer_message(answer).unwrap_or_default();
    let list = [&b"["[..], &items, b"]"].concat();
    let mut kept: Vec<(Option<String>, String)> = Vec::new();
    let read = Value::whole(&list, MAX_DEPTH).elements(|item| {
        let Ok(raw) = std::str::from_utf8(item.raw()) else { return Ok(()) };
        let (mut kind, mut status) = (None, None);
        item.members_of_object(|key, value| {
            match key {
                "type" => kind = value.text()?.map(|text| text.into_owned()),
                "status" => status = value.text()?.map(|text| text.into_owned()),
                _ => {}
            }
            Ok(())
        })?;
        let is_call = kind.as_deref().is_some_and(|kind| kind.ends_with("_call"));
        // Nobody can answer a call that was cut off.
        if !(is_call && status.as_deref() == Some("incomplete")) {
            kept.push((kind, raw.to_owned()));
        }
        Ok(())
    });
    read.ok()?;
    while kept.last().is_some_and(|(kind, _)| kind.as_deref() == Some("reasoning")) {
        kept.pop();
    }
    let mut items: Vec<String> = kept.into_iter().map(|(_, raw)| raw).collect();
    if items.is_empty() {
        items.push(json!({ "role": "assistant", "content": NO_ANSWER }).to_string());
    }
    Some(items.join(",").into_bytes())
}

#[cfg(test)]
mod tests {
    use crate::Dialect;
    use serde_json::{Value, json};

    fn kept(status: &str, output: &Value) -> Value {
        let response = json!({ "id": "r", "object": "response", "status": status, "output": output });
        let answer = Dialect::Responses.read_answer(response.to_string().as_bytes()).unwrap();
        assert_eq!(answer.finish_reasons.len(), 1, "{status}");
        let items = Dialect::Responses.answer_to_keep(&answer).unwrap();
        serde_json::from_slice(&[b"[", &items[..], b"]"].concat()).unwrap()
    }

    #[test]
    fn what_is_kept_is_never_refused() {
        let none = json!({ "role": "assistant", "content": "[no answer]" });
        let reasoning = json!({ "type": "reasoning", "id": "rs", "summary": [] });
        let call = |status: &str| json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": "{", "status": status });
        let message = json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" }] });
        // It is made in the background, and the client asks for it elsewhere.
        assert_eq!(kept("queued", &json!([])), json!([none]));
        assert_eq!(kept("in_progress", &json!([])), json!([none]));
        assert_eq!(kept("completed", &json!([])), json!([none]));
        assert_eq!(kept("incomplete", &json!([reasoning])), json!([none]));
        assert_eq!(kept("incomplete", &json!([message, reasoning, call("incomplete")])), json!([message]));
        assert_eq!(
            kept("completed", &json!([reasoning, call("completed")])),
            json!([reasoning, call("completed")])
        );
    }
}
