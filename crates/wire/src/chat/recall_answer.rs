//! Takes calls of the recall tool out of a whole chat completion.

use crate::recall_offer::RECALL_TOOL;
use crate::{Answer, AnswerCall, Dialect, Usage};
use serde_json::{Value, json};

/// What a model asks for, in an answer that does nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The answer as a message of the next request.
    pub message: Vec<u8>,
    pub calls: Vec<RecallCall>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallCall {
    pub id: String,
    pub arguments: String,
}

impl RecallCall {
    /// The message that answers the call.
    #[must_use]
    pub fn result(&self, text: &str) -> Vec<u8> {
        json!({ "role": "tool", "tool_call_id": self.id, "content": text }).to_string().into_bytes()
    }
}

/// A call of ours among those of the client's, which does not get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBeside {
    /// Its place among all calls of the answer.
    pub at: usize,
    pub call: RecallCall,
    /// The call as JSON.
    pub json: String,
    /// The ids of the calls that the client gets.
    pub own: Vec<String>,
}

/// The calls of ours in an answer that has others, too.
pub(super) fn beside(answer: &Answer) -> Vec<CallBeside> {
    let Some(message) = Dialect::Chat.answer_message(answer) else { return Vec::new() };
    let Ok(message) = serde_json::from_slice::<Value>(&message) else { return Vec::new() };
    let others = answer.tool_calls.iter().filter(|call| call.name != RECALL_TOOL);
    let own: Vec<String> = others.map(|call| call.id.clone()).collect();
    let ours = answer.tool_calls.iter().enumerate().filter(|(_, call)| call.name == RECALL_TOOL);
    let beside = |(at, call): (usize, &AnswerCall)| {
        let mut json = message["tool_calls"].get(at)?.clone();
        if !is_object(&call.arguments) {
            json["function"]["arguments"] = NO_ARGUMENTS.into();
        }
        let json = json.to_string();
        let call = RecallCall { id: call.id.clone(), arguments: call.arguments.clone() };
        // Without an id, nothing could answer it.
        (!call.id.is_empty()).then(|| CallBeside { at, call, json, own: own.clone() })
    };
    ours.filter_map(beside).collect()
}

/// An answer that was read for calls of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecallAnswer {
    /// There are none.
    Untouched,
    /// It is nothing else.
    Asks(Asked, Option<Usage>),
    /// The answer without them, and those that stood beside others.
    Without(Vec<u8>, Vec<CallBeside>),
}

impl RecallAnswer {
    /// Reads a whole completion. If it `is_last`, calls of ours only disappear.
    #[must_use]
    pub fn read(body: &[u8], is_last: bool) -> RecallAnswer {
        if memchr::memmem::find(body, RECALL_TOOL.as_bytes()).is_none() {
            return RecallAnswer::Untouched;
        }
        let Some(answer) = Dialect::Chat.read_answer(body) else { return RecallAnswer::Untouched };
        let ours = answer.tool_calls.iter().filter(|call| call.name == RECALL_TOOL).count();
        if ours == 0 {
            return RecallAnswer::Untouched;
        }
        let (is_alone, usage) = (ours == answer.tool_calls.len(), answer.usage);
        let beside = if is_alone { Vec::new() } else { beside(&answer) };
        let is_cut = answer.finish_reasons.iter().any(|reason| is_cut(reason));
        if is_alone
            && !is_last
            && !is_cut
            && let Some(asked) = asked(answer)
        {
            return RecallAnswer::Asks(asked, usage);
        }
        without_calls(body).map_or(RecallAnswer::Untouched, |rest| RecallAnswer::Without(rest, beside))
    }
}

/// Whether an answer that ends so is incomplete: the model has been stopped in the middle, perhaps of a call.
pub(super) fn is_cut(finish_reason: &str) -> bool {
    ["length", "max_tokens", "content_filter", "error"].contains(&finish_reason)
}

/// What upstreams are told that a model has called us with, if that is not JSON. Many refuse a conversation with calls that they cannot read.
const NO_ARGUMENTS: &str = "{}";

fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok()
}

/// What an answer asks for that has no calls but ours. `None` if it cannot be repeated to the model.
pub(super) fn asked(mut answer: Answer) -> Option<Asked> {
    // Some servers leave ids out, but pairs need them.
    let is_named = answer.tool_calls.iter().all(|call| !call.id.is_empty());
    if !is_named {
        answer.whole = None;
        for (index, call) in answer.tool_calls.iter_mut().enumerate() {
            call.id = format!("call_recall_{index}");
        }
    }
    let calls = answer.tool_calls.iter();
    let calls =
        calls.map(|call| RecallCall { id: call.id.clone(), arguments: call.arguments.clone() }).collect();
    for call in answer.tool_calls.iter_mut().filter(|call| !is_object(&call.arguments)) {
        answer.whole = None;
        call.arguments = NO_ARGUMENTS.to_owned();
    }
    Some(Asked { message: Dialect::Chat.answer_message(&answer)?, calls })
}

/// The completion without calls of ours.
fn without_calls(body: &[u8]) -> Option<Vec<u8>> {
    let mut completion: Value = serde_json::from_slice(body).ok()?;
    let choice = completion.get_mut("choices")?.get_mut(0)?;
    let calls = choice.get_mut("message")?.get_mut("tool_calls")?.as_array_mut()?;
    calls.retain(|call| call["function"]["name"] != RECALL_TOOL);
    if calls.is_empty() {
        let message = choice.get_mut("message")?.as_object_mut()?;
        message.remove("tool_calls");
        if message.get("content").is_none_or(Value::is_null) {
            message.insert("content".to_owned(), "".into());
        }
        end_without_calls(choice);
    }
    Some(completion.to_string().into_bytes())
}

/// Ends a choice that has no calls left: a client would look for them.
pub(super) fn end_without_calls(choice: &mut Value) {
    if choice["finish_reason"] == "tool_calls" {
        choice["finish_reason"] = "stop".into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(names: &[&str]) -> Vec<u8> {
        let call = |(index, name): (usize, &&str)| json!({ "id": format!("c{index}"), "type": "function", "function": { "name": name, "arguments": "{}" } });
        let calls: Vec<Value> = names.iter().enumerate().map(call).collect();
        let message =
            json!({ "role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": calls });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "tool_calls" });
        json!({ "id": "a", "choices": [choice], "usage": { "prompt_tokens": 7 } }).to_string().into_bytes()
    }

    #[test]
    fn calls_of_ours_alone_are_asked() {
        let RecallAnswer::Asks(asked, usage) =
            RecallAnswer::read(&completion(&[RECALL_TOOL, RECALL_TOOL]), false)
        else {
            panic!("it asks")
        };
        assert_eq!((asked.calls.len(), usage.unwrap().prompt_tokens), (2, 7));
        let message: Value = serde_json::from_slice(&asked.message).unwrap();
        assert_eq!(
            (&message["reasoning_content"], &message["tool_calls"][1]["id"]),
            (&json!("hm"), &json!("c1"))
        );
        let result: Value = serde_json::from_slice(&asked.calls[1].result("42")).unwrap();
        assert_eq!(result, json!({ "role": "tool", "tool_call_id": "c1", "content": "42" }));
    }

    #[test]
    fn what_is_no_json_is_not_repeated_to_the_upstream() {
        let broken = |names: &[&str], reason: &str| {
            let text = String::from_utf8(completion(names)).unwrap();
            text.replacen(r#""arguments":"{}""#, r#""arguments":"{\"ref\":\"7f3""#, 1)
                .replace(r#""finish_reason":"tool_calls""#, &format!(r#""finish_reason":"{reason}""#))
        };
        let arguments = |json: &Value| json["function"]["arguments"].clone();
        let RecallAnswer::Asks(asked, _) =
            RecallAnswer::read(broken(&[RECALL_TOOL], "tool_calls").as_bytes(), false)
        else {
            panic!("it asks")
        };
        let message: Value = serde_json::from_slice(&asked.message).unwrap();
        assert_eq!(
            (arguments(&message["tool_calls"][0]), &*asked.calls[0].arguments),
            (json!("{}"), r#"{"ref":"7f3"#)
        );
        assert_eq!(message["reasoning_content"], "hm");
        let RecallAnswer::Without(_, beside) =
            RecallAnswer::read(broken(&[RECALL_TOOL, "ls"], "tool_calls").as_bytes(), false)
        else {
            panic!("it has both")
        };
        assert_eq!(arguments(&serde_json::from_str(&beside[0].json).unwrap()), "{}");
        // The model was stopped in the middle of the call, so it has not asked for anything.
        let RecallAnswer::Without(rest, beside) =
            RecallAnswer::read(broken(&[RECALL_TOOL], "length").as_bytes(), false)
        else {
            panic!("it was cut off")
        };
        let rest: Value = serde_json::from_slice(&rest).unwrap();
        assert_eq!((&rest["choices"][0]["finish_reason"], beside.len()), (&json!("length"), 0));
    }

    #[test]
    fn calls_beside_others_disappear() {
        assert_eq!(RecallAnswer::read(&completion(&["ls"]), false), RecallAnswer::Untouched);
        let RecallAnswer::Without(_, beside) =
            RecallAnswer::read(&completion(&["ls", RECALL_TOOL, "ls"]), false)
        else {
            panic!("it has both")
        };
        assert_eq!((beside.len(), beside[0].at, beside[0].call.id.as_str()), (1, 1, "c1"));
        assert_eq!(beside[0].own, ["c0", "c2"]);
        let without = |names: &[&str], is_last| match RecallAnswer::read(&completion(names), is_last) {
            RecallAnswer::Without(body, _) => {
                serde_json::from_slice::<Value>(&body).unwrap()["choices"][0].clone()
            }
            other => panic!("{other:?}"),
        };
        let mixed = without(&[RECALL_TOOL, "ls"], false);
        assert_eq!(
            (&mixed["message"]["tool_calls"][0]["id"], &mixed["finish_reason"]),
            (&json!("c1"), &json!("tool_calls"))
        );
        let last = without(&[RECALL_TOOL], true);
        assert_eq!((&last["finish_reason"], &last["message"]["content"]), (&json!("stop"), &json!("")));
        assert!(last["message"].get("tool_calls").is_none());
    }
}
