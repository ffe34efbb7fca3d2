//! An answer as chat completions take it back. Without calls, they refuse a message whose content is null.

use super::answer_message::answer_message;
use crate::answer::push_member;
use crate::cursor::Value;
use crate::{Answer, MAX_DEPTH};

/// The finish reason of an answer that was cut off.
const CUT_OFF: &str = "length";

pub(crate) fn answer_to_keep(answer: &Answer) -> Option<Vec<u8>> {
    let message =
        answer_message(answer).unwrap_or_else(|| br#"{"role":"assistant","content":null}"#.to_vec());
    let is_cut_off = answer.finish_reasons.iter().any(|reason| reason == CUT_OFF);
    let (mut members, mut calls) = (Vec::new(), Vec::new());
    let read = Value::whole(&message, MAX_DEPTH).members(|member| {
        let raw = std::str::from_utf8(member.value.raw()).unwrap_or("null").trim().to_owned();
        if member.key == "tool_calls" && member.value.first() == Some(b'[') {
            member.value.elements(|call| {
                calls.extend(std::str::from_utf8(call.raw()).map(|raw| raw.trim().to_owned()));
                Ok(())
            })?;
        } else {
            members.push((member.key.clone().into_owned(), raw));
        }
        Ok(())
    });
    read.ok()?;
    // Nobody can answer a call whose arguments end in the middle, and a call without an answer is refused.
    calls.retain(|call| !is_cut_off || has_whole_arguments(call));
    let has = |name: &str| members.iter().any(|(key, raw)| key == name && raw != "null");
    let needs_content = calls.is_empty() && !has("function_call") && !has("audio") && !has("content");
    if needs_content {
        members.retain(|(key, _)| key != "content");
        members.push(("content".to_owned(), "\"\"".to_owned()));
    }
    // What an answer may hold, but a request may not.
    members.retain(|(key, raw)| key != "annotations" || !raw.trim_matches(['[', ']', ' ']).is_empty());
    let mut kept = String::new();
    members.iter().for_each(|(key, raw)| push_member(&mut kept, key, raw));
    if !calls.is_empty() {
        push_member(&mut kept, "tool_calls", &format!("[{}]", calls.join(",")));
    }
    Some(format!("{{{kept}}}").into_bytes())
}

fn has_whole_arguments(call: &str) -> bool {
    let Ok(call) = serde_json::from_str::<serde_json::Value>(call) else { return false };
    let Some(arguments) = call["function"]["arguments"].as_str() else { return true };
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, SideReader};
    use serde_json::{Value, json};

    fn kept(message: &Value, finish: &str) -> Value {
        let whole = json!({ "choices": [{ "index": 0, "finish_reason": finish, "message": message }] });
        let whole = Dialect::Chat.read_answer(whole.to_string().as_bytes()).unwrap();
        let kept: Value = serde_json::from_slice(&Dialect::Chat.answer_to_keep(&whole).unwrap()).unwrap();
        let mut reader = SideReader::new(Dialect::Chat);
        let mut delta = message.clone();
        let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
        for (index, call) in calls.into_iter().flatten().enumerate() {
            call["index"] = json!(index);
        }
        let chunk = json!({ "choices": [{ "index": 0, "delta": delta }] });
        let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] });
        reader.feed(format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n").as_bytes());
        let streamed = Dialect::Chat.answer_to_keep(reader.answer()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&streamed).unwrap(), kept, "streamed");
        kept
    }

    #[test]
    fn an_answer_without_words_has_content() {
        let empty = json!({ "role": "assistant", "content": "" });
        for message in [
            json!({ "role": "assistant", "content": null }),
            json!({ "role": "assistant" }),
            json!({ "role": "assistant", "content": null, "annotations": [] }),
            json!({ "role": "assistant", "content": null, "refusal": null, "tool_calls": [] }),
        ] {
            assert_eq!(kept(&message, "stop"), empty, "{message}");
        }
        let reasoning = json!({ "role": "assistant", "content": null, "reasoning_content": "Hm." });
        let expected = json!({ "role": "assistant", "content": "", "reasoning_content": "Hm." });
        assert_eq!(kept(&reasoning, "stop"), expected);
        let words = json!({ "role": "assistant", "content": "a1", "x": [] });
        assert_eq!(kept(&words, "stop"), words);
    }

    #[test]
    fn a_call_that_was_cut_off_is_left_out() {
        let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": arguments } });
        let with = |calls: &[Value]| json!({ "role": "assistant", "content": null, "tool_calls": calls });
        let ids = |message: &Value| -> Vec<String> {
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect()
        };
        let both = with(&[call("a", "{}"), call("b", "{\"pa")]);
        assert_eq!(ids(&kept(&both, "length")), ["a"]);
        assert_eq!(ids(&kept(&both, "tool_calls")), ["a", "b"], "the model has written it so");
        let cut = kept(&with(&[call("a", "{\"pa")]), "length");
        assert_eq!(cut, json!({ "role": "assistant", "content": "" }));
    }
}
