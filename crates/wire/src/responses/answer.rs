use crate::answer::LIST_CAP;
use crate::chat::read_usage;
use crate::cursor::Value;
use crate::dialect::StreamState;
use crate::{Answer, AnswerCall, MAX_DEPTH, Unreadable};
use serde_json::json;

/// Reads a whole response, or an error.
pub(crate) fn read_answer(document: &[u8], answer: &mut Answer) -> bool {
    object(document).is_some_and(|document| read_response(document, answer).is_ok())
}

/// Adds an event to the answer. Its kind stands in its data, too.
pub(crate) fn read_event(data: &[u8], answer: &mut Answer) -> StreamState {
    // Some servers end with the same event as chat completions.
    if data == b"[DONE]" {
        return StreamState::Done;
    }
    match object(data).map(|event| event_of(event, answer)) {
        Some(Ok(state)) => state,
        Some(Err(_)) | None => StreamState::Open,
    }
}

fn object(json: &[u8]) -> Option<Value<'_>> {
    let json = json.trim_ascii();
    let is_object = json.first() == Some(&b'{') && u32::try_from(json.len()).is_ok();
    is_object.then(|| Value::whole(json, MAX_DEPTH))
}

fn event_of(event: Value<'_>, answer: &mut Answer) -> Result<StreamState, Unreadable> {
    let (mut kind, mut inner) = (None, None);
    event.members(|member| {
        match &*member.key {
            "type" => kind = member.value.text()?,
            "response" | "item" => inner = Some(member.value),
            "error" => answer.failed |= member.value.raw() != b"null",
            _ => {}
        }
        Ok(())
    })?;
    match (kind.as_deref(), inner) {
        (Some("response.output_item.done"), Some(item)) => read_item(item, answer)?,
        (Some("response.completed" | "response.incomplete"), Some(response)) => {
            read_response(response, answer)?;
            return Ok(StreamState::Done);
        }
        (Some("response.failed"), Some(response)) => {
            read_response(response, answer)?;
            answer.failed = true;
            return Ok(StreamState::Done);
        }
        (Some("response.created" | "response.in_progress" | "response.queued"), Some(response)) => {
            response.members_of_object(|key, value| read_name(key, value, answer))?;
        }
        (Some("error"), _) => answer.failed = true,
        _ => {}
    }
    Ok(StreamState::Open)
}

fn read_name(key: &str, value: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    match key {
        "id" => answer.id = value.text()?.map(|text| text.into_owned()).or(answer.id.take()),
        "model" => answer.model = value.text()?.map(|text| text.into_owned()).or(answer.model.take()),
        _ => {}
    }
    Ok(())
}

/// A response, or the last event of a stream, which may repeat the items that came before.
fn read_response(response: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    let has_items = answer.whole.is_some();
    let (mut status, mut reason) = (None, None);
    response.members(|member| {
        let value = member.value;
        match &*member.key {
            "usage" => answer.usage = read_usage(value)?.or(answer.usage),
            "error" => answer.failed |= value.raw() != b"null",
            "status" => status = value.text()?,
            "incomplete_details" => value.members_of_object(|key, value| {
                if key == "reason" {
                    reason = value.text()?;
                }
                Ok(())
            })?,
            "output" if value.first() == Some(b'[') && !has_items => {
                value.elements(|item| read_item(item, answer))?;
            }
            key => read_name(key, value, answer)?,
        }
        Ok(())
    })?;
    match status.as_deref() {
        Some("completed") => answer.finish("completed"),
        Some("incomplete") => answer.finish(reason.as_deref().unwrap_or("incomplete")),
        Some("failed" | "cancelled") => answer.failed = true,
        // All that the upstream answers to a request that it works on in the background.
        Some(begun @ ("queued" | "in_progress")) => answer.finish_reasons.push(begun.to_owned()),
        Some(_) | None => {}
    }
    Ok(())
}

/// Keeps an item as it came, and reads its words and calls.
fn read_item(item: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    let Ok(raw) = std::str::from_utf8(item.raw()) else { return Ok(()) };
    let mut items = answer.whole.take().unwrap_or_default();
    if !items.is_empty() {
        answer.append(&mut items, ",");
    }
    answer.append(&mut items, raw);
    answer.whole = Some(items);
    // The items count toward the cap of what is kept; their texts are in them.
    if answer.truncated {
        return Ok(());
    }
    let (mut kind, mut call, mut content) = (None, AnswerCall::default(), None);
    item.members_of_object(|key, value| {
        let text = || value.text().map(|text| text.map(|text| text.into_owned()));
        match key {
            "type" => kind = text()?,
            "call_id" => call.id = text()?.unwrap_or_default(),
            "name" => call.name = text()?.unwrap_or_default(),
            "arguments" | "input" => call.arguments = text()?.unwrap_or_default(),
            "content" => content = Some(value),
            _ => {}
        }
        Ok(())
    })?;
    match (kind.as_deref(), content) {
        (Some("message"), Some(content)) if content.first() == Some(b'[') => {
            content.elements(|part| read_part(part, answer))
        }
        (Some("function_call" | "custom_tool_call"), _) if answer.tool_calls.len() < LIST_CAP => {
            if kind.as_deref() == Some("custom_tool_call") {
                call.kind = "custom".to_owned();
            }
            answer.tool_calls.push(call);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn read_part(part: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    part.members_of_object(|key, value| {
        let slot = match key {
            "text" => &mut answer.content,
            "refusal" => &mut answer.refusal,
            _ => return Ok(()),
        };
        if let Some(text) = value.text()? {
            slot.get_or_insert_default().push_str(&text);
        }
        Ok(())
    })
}

/// The items of the answer, with commas between them.
pub(crate) fn answer_message(answer: &Answer) -> Option<Vec<u8>> {
    if answer.failed || answer.truncated {
        return None;
    }
    if let Some(items) = answer.whole.as_ref().filter(|items| !items.is_empty()) {
        return Some(items.clone().into_bytes());
    }
    // An upstream that was asked in this shape may answer as a chat completion.
    let words = answer.content.as_ref().map(|text| json!({"role": "assistant", "content": text}).to_string());
    let calls = answer.tool_calls.iter().map(|call| {
        json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
            .to_string()
    });
    let items: Vec<String> = words.into_iter().chain(calls).collect();
    (!items.is_empty()).then(|| items.join(",").into_bytes())
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, SideReader, Usage};

    const ITEMS: [&str; 3] = [
        r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"e"}"#,
        r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"ab","annotations":[]}]}"#,
        r#"{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{\"x\":1}"}"#,
    ];

    fn response(status: &str) -> String {
        format!(
            r#"{{"id":"resp_1","object":"response","model":"m","status":"{status}","error":null,"incomplete_details":null,"output":[{}],
            "usage":{{"input_tokens":30,"input_tokens_details":{{"cached_tokens":20}},"output_tokens":7,"output_tokens_details":{{"reasoning_tokens":4}},"total_tokens":37}}}}"#,
            ITEMS.join(",")
        )
        .replace('\n', " ")
    }

    const USAGE: Usage = Usage {
        prompt_tokens: 30,
        completion_tokens: 7,
        cached_tokens: 20,
        cache_write_tokens: 0,
        reasoning_tokens: 4,
    };

    #[test]
    fn a_whole_response_is_read() {
        let answer = Dialect::Responses.read_answer(response("completed").as_bytes()).unwrap();
        assert_eq!((answer.id.as_deref(), answer.model.as_deref()), (Some("resp_1"), Some("m")));
        assert_eq!((answer.content.as_deref(), &*answer.tool_calls[0].arguments), (Some("ab"), r#"{"x":1}"#));
        assert_eq!((answer.finish_reasons.join(""), answer.usage), ("completed".to_owned(), Some(USAGE)));
        let message = Dialect::Responses.answer_message(&answer).unwrap();
        assert_eq!(String::from_utf8(message).unwrap(), ITEMS.join(","));
        let error = Dialect::Responses.read_answer(br#"{"error":{"message":"x"}}"#).unwrap();
        assert!(error.failed);
        assert!(Dialect::Responses.read_answer(response("failed").as_bytes()).unwrap().failed);
    }

    #[test]
    fn a_stream_is_read() {
        for (end, is_failed) in [("completed", false), ("incomplete", false), ("failed", true)] {
            let mut reader = SideReader::new(Dialect::Responses);
            let mut feed = |kind: &str, rest: &str| {
                let event = format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n");
                reader.feed(event.as_bytes());
            };
            feed("response.created", r#""response":{"id":"resp_1","model":"m","output":[],"usage":null}"#);
            for item in ITEMS {
                feed("response.output_item.added", &format!(r#""item":{item}"#));
                feed("response.output_text.delta", r#""delta":"a""#);
                feed("response.output_item.done", &format!(r#""item":{item}"#));
            }
            assert!(!reader.is_done());
            let mut feed = |kind: &str, rest: &str| {
                let event = format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n");
                reader.feed(event.as_bytes());
            };
            feed(&format!("response.{end}"), &format!(r#""response":{}"#, response(end)));
            assert!(reader.is_done());
            let answer = reader.answer();
            assert_eq!((answer.content.as_deref(), answer.tool_calls.len()), (Some("ab"), 1));
            assert_eq!((answer.usage, answer.failed), (Some(USAGE), is_failed), "{end}");
            let message = Dialect::Responses.answer_message(answer).map(|it| String::from_utf8(it).unwrap());
            assert_eq!(message, (!is_failed).then(|| ITEMS.join(",")));
        }
    }

    #[test]
    fn an_error_in_a_stream_is_a_failure() {
        let mut reader = SideReader::new(Dialect::Responses);
        reader.feed(b"data: {\"type\":\"error\",\"code\":\"x\",\"message\":\"y\"}\n\n");
        assert!(reader.answer().failed && !reader.is_done());
    }
}
