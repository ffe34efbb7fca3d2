use super::usage::read_usage;
use crate::answer::{LIST_CAP, Member, push_member};
use crate::cursor::Value;
use crate::dialect::StreamState;
use crate::{Answer, AnswerCall, MAX_DEPTH, Unreadable};

/// The data of the event that ends a stream.
const DONE: &[u8] = b"[DONE]";

pub(crate) fn read_event(data: &[u8], answer: &mut Answer) -> StreamState {
    if data == DONE {
        return StreamState::Done;
    }
    read_answer(data, answer);
    StreamState::Open
}

/// Adds one chunk, or a whole completion, to the answer. Returns `false` if it could not be read; only what came before the error
/// has been added then.
pub(crate) fn read_answer(chunk: &[u8], answer: &mut Answer) -> bool {
    let chunk = chunk.trim_ascii();
    if chunk.first() != Some(&b'{') || u32::try_from(chunk.len()).is_err() {
        return false;
    }
    let mut cached = 0;
    let read = Value::whole(chunk, MAX_DEPTH).members(|member| {
        match &*member.key {
            "id" => set_once(&mut answer.id, member.value)?,
            "model" => set_once(&mut answer.model, member.value)?,
            "usage" | "usageMetadata" => {
                if let Some(usage) = read_usage(member.value)? {
                    answer.usage = Some(usage);
                }
            }
            "choices" if member.value.first() == Some(b'[') => {
                member.value.elements(|choice| read_choice(choice, answer))?;
            }
            "error" => answer.failed |= member.value.raw() != b"null",
            // llama.cpp says there how much of the prompt it had in its cache.
            "timings" if member.value.first() == Some(b'{') => {
                member.value.members_of_object(|key, value| {
                    cached = if key == "cache_n" { value.integer()?.unwrap_or(0) } else { cached };
                    Ok(())
                })?
            }
            _ => {}
        }
        Ok(())
    });
    if let Some(usage) = &mut answer.usage {
        usage.cached_tokens = usage.cached_tokens.max(cached.min(usage.prompt_tokens));
    }
    read.is_ok()
}

fn read_choice(choice: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    let (mut index, mut message) = (0, None);
    choice.members_of_object(|key, value| {
        match key {
            "index" => index = value.integer()?.unwrap_or(0),
            "delta" => message = Some((Form::Delta, value)),
            "message" => message = Some((Form::Whole, value)),
            "finish_reason" => {
                if let Some(reason) = value.text()? {
                    answer.finish(&reason);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    match message {
        Some((key, message)) if index == 0 => {
            if key == Form::Whole {
                keep_whole(message, answer)?;
            }
            read_message(message, answer)
        }
        Some(_) | None => Ok(()),
    }
}

/// How the message of a choice comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Delta,
}

/// Keeps every member of the message as it came. A null stands for a member that is absent, and the API does not take an empty list of
/// calls back.
fn keep_whole(message: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    let mut whole = String::new();
    let mut has_role = false;
    message.members_of_object(|key, value| {
        let Ok(raw) = std::str::from_utf8(value.raw()) else { return Ok(()) };
        let raw = raw.trim();
        has_role |= key == "role";
        if (raw != "null" || key == "content") && !(key == "tool_calls" && is_empty_array(raw)) {
            push_member(&mut whole, key, raw);
        }
        Ok(())
    })?;
    if !has_role {
        push_member(&mut whole, "role", "\"assistant\"");
    }
    let mut kept = String::new();
    answer.append(&mut kept, &whole);
    answer.whole = Some(format!("{{{kept}}}")).filter(|_| !answer.truncated);
    Ok(())
}

fn is_empty_array(raw: &str) -> bool {
    raw.strip_prefix('[').is_some_and(|rest| rest.trim_start() == "]")
}

fn read_message(message: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    message.members_of_object(|key, value| match key {
        "content" => append_optional(value, answer, |answer| &mut answer.content),
        "refusal" => append_optional(value, answer, |answer| &mut answer.refusal),
        "tool_calls" if value.first() == Some(b'[') => {
            let mut position = 0;
            value.elements(|call| {
                position += 1;
                read_call(call, position - 1, answer)
            })
        }
        "role" | "tool_calls" => Ok(()),
        other => {
            let mut members = std::mem::take(&mut answer.members);
            keep_member(&mut members, other, value, answer);
            answer.members = members;
            Ok(())
        }
    })
}

/// Adds a member of a delta to what came before: texts and lists go on, anything else is replaced.
fn keep_member(members: &mut Vec<(String, Member)>, key: &str, value: Value<'_>, answer: &mut Answer) {
    let Ok(raw) = std::str::from_utf8(value.raw()) else { return };
    let mut new = String::new();
    if raw.trim() == "null" || members.len() >= LIST_CAP {
        return;
    }
    answer.append(&mut new, raw.trim());
    if new.is_empty() {
        return;
    }
    let new = match value.text() {
        Ok(Some(text)) => Member::Text(text.into_owned()),
        Ok(None) | Err(_) => Member::Json(new),
    };
    match members.iter_mut().find(|(known, _)| known == key) {
        None => members.push((key.to_owned(), new)),
        Some((_, before)) => before.go_on(new),
    }
}

impl Member {
    fn go_on(&mut self, new: Member) {
        match (self, new) {
            (Member::Text(before), Member::Text(new)) => before.push_str(&new),
            // Joined as texts: a list that grows with every delta must not be parsed each time.
            (Member::Json(before), Member::Json(new)) if before.starts_with('[') && new.starts_with('[') => {
                if is_empty_array(before) {
                    *before = new;
                } else if !is_empty_array(&new) {
                    before.truncate(before.len() - 1);
                    before.push(',');
                    before.push_str(&new[1..]);
                }
            }
            (Member::Json(before), Member::Json(new)) => {
                *before = match (serde_json::from_str(before), serde_json::from_str(&new)) {
                    (Ok(before), Ok(new)) => join(before, new).to_string(),
                    _ => new,
                }
            }
            (before, new) => *before = new,
        }
    }
}

fn join(before: serde_json::Value, new: serde_json::Value) -> serde_json::Value {
    use serde_json::Value::{Array, Null, Object, String};
    match (before, new) {
        (before, Null) => before,
        (String(mut before), String(new)) => {
            before.push_str(&new);
            String(before)
        }
        (Array(mut before), Array(new)) => {
            before.extend(new);
            Array(before)
        }
        (Object(mut before), Object(new)) => {
            for (key, new) in new {
                let joined = match before.remove(&key) {
                    Some(known) => join(known, new),
                    None => new,
                };
                before.insert(key, joined);
            }
            Object(before)
        }
        (_, new) => new,
    }
}

/// Deltas name a call by its index. In a whole message there is none, and the position counts.
fn read_call(call: Value<'_>, position: usize, answer: &mut Answer) -> Result<(), Unreadable> {
    let mut index = position;
    call.members_of_object(|key, value| {
        if let ("index", Some(named)) = (key, value.integer()?) {
            index = usize::try_from(named).unwrap_or(usize::MAX);
        }
        Ok(())
    })?;
    if index >= LIST_CAP {
        answer.truncated = true;
        return Ok(());
    }
    if answer.tool_calls.len() <= index {
        answer.tool_calls.resize_with(index + 1, AnswerCall::default);
    }
    let mut so_far = std::mem::take(&mut answer.tool_calls[index]);
    let read = call.members_of_object(|key, value| match key {
        "id" => append(&mut so_far.id, value, answer),
        "type" if so_far.kind.is_empty() => append(&mut so_far.kind, value, answer),
        "function" | "custom" => value.members_of_object(|key, value| match key {
            "name" => append(&mut so_far.name, value, answer),
            "arguments" | "input" => append(&mut so_far.arguments, value, answer),
            _ => Ok(()),
        }),
        "index" | "type" => Ok(()),
        other => {
            keep_member(&mut so_far.members, other, value, answer);
            Ok(())
        }
    });
    answer.tool_calls[index] = so_far;
    read
}

fn set_once(slot: &mut Option<String>, value: Value<'_>) -> Result<(), Unreadable> {
    if slot.is_none() {
        *slot = value.text()?.map(|text| text.into_owned());
    }
    Ok(())
}

fn append(to: &mut String, value: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    if let Some(text) = value.text()? {
        answer.append(to, &text);
    }
    Ok(())
}

/// Appends to a text that may not exist yet. `null` does not create it.
fn append_optional(
    value: Value<'_>,
    answer: &mut Answer,
    slot: impl Fn(&mut Answer) -> &mut Option<String>,
) -> Result<(), Unreadable> {
    if let Some(text) = value.text()? {
        let mut so_far = slot(answer).take().unwrap_or_default();
        answer.append(&mut so_far, &text);
        *slot(answer) = Some(so_far);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::ANSWER_CAP;
    use crate::{Dialect, Usage};

    fn read(body: &[u8]) -> Option<Answer> {
        Dialect::Chat.read_answer(body)
    }

    #[test]
    fn a_whole_completion_is_read() {
        let answer = read(
            br#" {"id":"c1","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",
              "content":"a\nb","refusal":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}},
              {"id":"y","type":"function","function":{"name":"g","arguments":"1"}}]}},{"index":1,"message":{"content":"no"},
              "finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,
              "prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":1}}}"#,
        )
        .unwrap();
        assert_eq!((answer.id.as_deref(), answer.model.as_deref()), (Some("c1"), Some("m")));
        assert_eq!((answer.content.as_deref(), answer.refusal), (Some("a\nb"), None));
        assert_eq!(answer.finish_reasons, ["tool_calls", "stop"]);
        assert_eq!((&*answer.tool_calls[1].id, &*answer.tool_calls[1].name), ("y", "g"));
        let usage = Usage {
            prompt_tokens: 10,
            completion_tokens: 2,
            cached_tokens: 8,
            reasoning_tokens: 1,
            ..Usage::default()
        };
        assert_eq!(answer.usage, Some(usage));
        assert!(!answer.failed && !answer.truncated);
    }

    #[test]
    fn a_huge_call_index_allocates_no_memory() {
        let chunk = br#"{"choices":[{"delta":{"tool_calls":[{"index":4000000000,"id":"x"}]}}]}"#;
        let answer = read(chunk).unwrap();
        assert!(answer.tool_calls.is_empty() && answer.truncated);
    }

    #[test]
    fn a_long_answer_is_truncated() {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "x".repeat(ANSWER_CAP / 3));
        let mut answer = Answer::default();
        (0..5).for_each(|_| assert!(read_answer(chunk.as_bytes(), &mut answer)));
        assert!(answer.truncated && answer.content.unwrap().len() <= ANSWER_CAP);
    }

    #[test]
    fn errors_differ_from_other_shapes() {
        assert!(read(br#"{"error":{"message":"x"}}"#).unwrap().failed);
        assert!(!read(br#"{"error":null,"choices":{},"usage":null}"#).unwrap().failed);
        assert_eq!(read(b"<html>"), None);
        assert_eq!(read(br#"{"id":"x""#), None);
    }
}
