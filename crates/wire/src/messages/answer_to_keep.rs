//! An answer as Anthropic's messages take it back. They refuse an empty message, blank texts, and reasoning that nothing follows.

use super::answer_message::block;
use crate::Answer;
use crate::answer::{AnswerBlock, NO_ANSWER};
use serde_json::json;

pub(crate) fn answer_to_keep(answer: &Answer) -> Option<Vec<u8>> {
    let legal = |one: &&AnswerBlock| match one.text("type") {
        Some("text") => one.text("text").is_some_and(|text| !text.trim().is_empty()),
        _ => true,
    };
    let kept = answer.blocks.iter().filter(legal);
    // The input of a call that was cut off is no JSON, and nobody can answer it.
    let whole: Vec<(&AnswerBlock, String)> = kept.filter_map(|one| Some((one, block(one)?))).collect();
    let is_reasoning = |one: &AnswerBlock| matches!(one.text("type"), Some("thinking" | "redacted_thinking"));
    let ends_with_reasoning = whole.last().is_none_or(|(one, _)| is_reasoning(one));
    let mut blocks: Vec<String> = whole.into_iter().map(|(_, json)| json).collect();
    if ends_with_reasoning {
        blocks.push(json!({ "type": "text", "text": NO_ANSWER }).to_string());
    }
    Some(format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(",")).into_bytes())
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, SideReader};
    use serde_json::{Value, json};

    fn kept(content: &Value) -> Value {
        let message =
            json!({ "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn" });
        let answer = Dialect::Messages.read_answer(message.to_string().as_bytes()).unwrap();
        let kept = Dialect::Messages.answer_to_keep(&answer).unwrap();
        serde_json::from_slice::<Value>(&kept).unwrap()["content"].clone()
    }

    #[test]
    fn what_is_kept_is_never_refused() {
        let none = json!({ "type": "text", "text": "[no answer]" });
        let text = json!({ "type": "text", "text": "Hm." });
        let thinking = json!({ "type": "thinking", "thinking": "x", "signature": "s" });
        let call = json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} });
        assert_eq!(kept(&json!([])), json!([none]));
        assert_eq!(kept(&json!([{ "type": "text", "text": " \n" }])), json!([none]));
        assert_eq!(kept(&json!([thinking])), json!([thinking, none]));
        assert_eq!(kept(&json!([thinking, text])), json!([thinking, text]));
        assert_eq!(kept(&json!([{ "type": "text", "text": "" }, call])), json!([call]));
    }

    #[test]
    fn a_call_that_was_cut_off_is_left_out() {
        for words in [false, true] {
            let mut reader = SideReader::new(Dialect::Messages);
            let mut feed = |event: Value| reader.feed(format!("data: {event}\n\n").as_bytes());
            feed(json!({ "type": "message_start", "message": { "role": "assistant", "content": [] } }));
            if words {
                feed(
                    json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "Hm." } }),
                );
            }
            let index = usize::from(words);
            let call = json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} });
            feed(json!({ "type": "content_block_start", "index": index, "content_block": call }));
            let part = json!({ "type": "input_json_delta", "partial_json": "{\"path\": \"/et" });
            feed(json!({ "type": "content_block_delta", "index": index, "delta": part }));
            feed(json!({ "type": "message_delta", "delta": { "stop_reason": "max_tokens" } }));
            feed(json!({ "type": "message_stop" }));
            assert_eq!(Dialect::Messages.answer_message(reader.answer()), None);
            let kept = Dialect::Messages.answer_to_keep(reader.answer()).unwrap();
            let expected = if words { "Hm." } else { "[no answer]" };
            let kept: Value = serde_json::from_slice(&kept).unwrap();
            assert_eq!(kept["content"], json!([{ "type": "text", "text": expected }]));
        }
    }
}
