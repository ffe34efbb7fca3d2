use crate::answer::{AnswerBlock, LIST_CAP, Member};
use crate::chat::read_usage;
use crate::cursor::Value;
use crate::dialect::StreamState;
use crate::{Answer, AnswerCall, MAX_DEPTH, Unreadable, Usage};

/// Reads a whole message, or an error.
pub(crate) fn read_answer(document: &[u8], answer: &mut Answer) -> bool {
    let Some(document) = object(document) else { return false };
    let read = document.members(|member| match &*member.key {
        "error" => {
            answer.failed |= member.value.raw() != b"null";
            Ok(())
        }
        key => read_member(key, member.value, answer),
    });
    read.is_ok()
}

/// Adds an event to the answer. Its kind stands in its data, too.
pub(crate) fn read_event(data: &[u8], answer: &mut Answer) -> StreamState {
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
    let (mut kind, mut index, mut inner) = (None, 0, None);
    event.members(|member| {
        match &*member.key {
            "type" => kind = member.value.text()?,
            "index" => index = member.value.integer()?.unwrap_or(u64::MAX),
            "message" | "content_block" | "delta" => inner = Some(member.value),
            "usage" => merge_usage(member.value, answer)?,
            _ => {}
        }
        Ok(())
    })?;
    match (kind.as_deref(), inner) {
        (Some("message_start"), Some(message)) => {
            message.members_of_object(|key, value| read_member(key, value, answer))?;
        }
        (Some("message_delta"), Some(delta)) => {
            delta.members_of_object(|key, value| read_member(key, value, answer))?;
        }
        (Some("content_block_start"), Some(block)) => start_block(block, index, answer)?,
        (Some("content_block_delta"), Some(delta)) => continue_block(delta, index, answer)?,
        (Some("error"), _) => answer.failed = true,
        (Some("message_stop"), _) => return Ok(StreamState::Done),
        _ => {}
    }
    Ok(StreamState::Open)
}

/// A member of a message, or of the part of it that a stream begins or ends with.
fn read_member(key: &str, value: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    match key {
        "id" => answer.id = value.text()?.map(|text| text.into_owned()).or(answer.id.take()),
        "model" => answer.model = value.text()?.map(|text| text.into_owned()).or(answer.model.take()),
        "usage" => merge_usage(value, answer)?,
        "stop_reason" => {
            if let Some(reason) = value.text()? {
                answer.finish(&reason);
            }
        }
        "content" if value.first() == Some(b'[') => {
            let mut index = 0;
            value.elements(|block| {
                start_block(block, index, answer)?;
                index += 1;
                Ok(())
            })?;
        }
        _ => {}
    }
    Ok(())
}

/// The counts at the end of a stream are cumulative, and some providers repeat those of the prompt there, or correct a zero.
fn merge_usage(value: Value<'_>, answer: &mut Answer) -> Result<(), Unreadable> {
    if let Some(new) = read_usage(value)? {
        let known = answer.usage.unwrap_or_default();
        let compaction = compaction_usage(value)?;
        let merge =
            |count: fn(&Usage) -> u64| count(&known).max(count(&new).saturating_add(count(&compaction)));
        answer.usage = Some(Usage {
            prompt_tokens: merge(|usage| usage.prompt_tokens),
            completion_tokens: merge(|usage| usage.completion_tokens),
            cached_tokens: merge(|usage| usage.cached_tokens),
            cache_write_tokens: merge(|usage| usage.cache_write_tokens),
            reasoning_tokens: merge(|usage| usage.reasoning_tokens),
        });
    }
    Ok(())
}

/// What the provider has used to compact the conversation before it answered. It is billed, but the other counts leave it out.
fn compaction_usage(usage: Value<'_>) -> Result<Usage, Unreadable> {
    let mut all = Usage::default();
    usage.members_of_object(|key, value| {
        if key != "iterations" || value.first() != Some(b'[') {
            return Ok(());
        }
        value.elements(|iteration| {
            let mut is_compaction = false;
            iteration.members_of_object(|key, value| {
                if key == "type" {
                    is_compaction = value.text()?.as_deref() == Some("compaction");
                }
                Ok(())
            })?;
            if let Some(one) = read_usage(iteration)?.filter(|_| is_compaction) {
                all.prompt_tokens = all.prompt_tokens.saturating_add(one.prompt_tokens);
                all.completion_tokens = all.completion_tokens.saturating_add(one.completion_tokens);
                all.cached_tokens = all.cached_tokens.saturating_add(one.cached_tokens);
                all.cache_write_tokens = all.cache_write_tokens.saturating_add(one.cache_write_tokens);
            }
            Ok(())
        })
    })?;
    Ok(all)
}

fn start_block(block: Value<'_>, index: u64, answer: &mut Answer) -> Result<(), Unreadable> {
    if index != answer.blocks.len() as u64 || answer.blocks.len() >= LIST_CAP {
        answer.truncated = true;
        return Ok(());
    }
    let mut read = AnswerBlock::default();
    block.members_of_object(|key, value| {
        let Ok(raw) = std::str::from_utf8(value.raw()) else { return Ok(()) };
        let mut kept = String::new();
        answer.append(&mut kept, raw);
        if answer.truncated {
            return Ok(());
        }
        let member = match value.text()? {
            Some(text) => Member::Text(text.into_owned()),
            None => Member::Json(kept),
        };
        read.members.push((key.to_owned(), member));
        Ok(())
    })?;
    match read.text("type") {
        Some("text") => {
            let text = read.text("text").unwrap_or_default();
            answer.content.get_or_insert_default().push_str(text);
        }
        Some("tool_use") => {
            let call = AnswerCall {
                id: read.text("id").unwrap_or_default().to_owned(),
                name: read.text("name").unwrap_or_default().to_owned(),
                arguments: read.json("input").filter(|input| input != "{}").unwrap_or_default(),
                ..AnswerCall::default()
            };
            read.call = Some(answer.tool_calls.len());
            answer.tool_calls.push(call);
        }
        Some(_) | None => {}
    }
    answer.blocks.push(read);
    Ok(())
}

fn continue_block(delta: Value<'_>, index: u64, answer: &mut Answer) -> Result<(), Unreadable> {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let (mut kind, mut text, mut citation, mut encrypted) = (None, None, None, None);
    delta.members_of_object(|key, value| {
        match key {
            "type" => kind = value.text()?,
            "text" | "partial_json" | "thinking" | "signature" | "content" => text = value.text()?,
            "encrypted_content" => encrypted = value.text()?,
            "citation" => citation = std::str::from_utf8(value.raw()).ok(),
            _ => {}
        }
        Ok(())
    })?;
    let Some(mut block) = answer.blocks.get_mut(index).map(std::mem::take) else {
        answer.truncated = true;
        return Ok(());
    };
    let mut new = String::new();
    answer.append(&mut new, text.as_deref().or(citation).unwrap_or_default());
    match kind.as_deref() {
        Some("text_delta") => {
            answer.content.get_or_insert_default().push_str(&new);
            block.append("text", &new);
        }
        Some("thinking_delta") => block.append("thinking", &new),
        Some("compaction_delta") => {
            block.append("content", &new);
            if let Some(encrypted) = encrypted {
                let mut kept = String::new();
                answer.append(&mut kept, &encrypted);
                block.append("encrypted_content", &kept);
            }
        }
        Some("signature_delta") => block.append("signature", &new),
        Some("citations_delta") => block.add("citations", &new),
        Some("input_json_delta") => {
            if let Some(call) = block.call.and_then(|call| answer.tool_calls.get_mut(call)) {
                call.arguments.push_str(&new);
            }
            block.input.push_str(&new);
        }
        // What a delta of an unknown kind does to its block cannot be known.
        Some(_) | None => answer.truncated = true,
    }
    answer.blocks[index] = block;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, SideReader, Usage};

    #[test]
    fn a_whole_message_is_read() {
        let answer = Dialect::Messages
            .read_answer(
                br#"{"id":"m1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm",
                "signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}}],
                "stop_reason":"tool_use","usage":{"input_tokens":5,"cache_creation_input_tokens":10,"cache_read_input_tokens":20,"output_tokens":3}}"#,
            )
            .unwrap();
        assert_eq!((answer.id.as_deref(), answer.model.as_deref()), (Some("m1"), Some("claude")));
        assert_eq!((answer.content.as_deref(), &*answer.tool_calls[0].arguments), (Some("a"), r#"{"x":1}"#));
        assert_eq!(answer.finish_reasons, ["tool_use"]);
        let usage = Usage {
            prompt_tokens: 35,
            completion_tokens: 3,
            cached_tokens: 20,
            cache_write_tokens: 10,
            reasoning_tokens: 0,
        };
        assert_eq!(answer.usage, Some(usage));
        assert!(!answer.failed && !answer.truncated);
        assert!(Dialect::Messages.read_answer(br#"{"type":"error","error":{}}"#).unwrap().failed);
    }

    #[test]
    fn what_the_provider_has_used_to_compact_counts() {
        let usage = |iterations: &str| {
            let message = format!(
                r#"{{"content":[],"usage":{{"input_tokens":20,"cache_read_input_tokens":3,"output_tokens":10,"iterations":{iterations}}}}}"#
            );
            let usage = Dialect::Messages.read_answer(message.as_bytes()).unwrap().usage.unwrap();
            (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        };
        let answered = r#"{"type":"message","input_tokens":20,"output_tokens":10}"#;
        let compacted =
            r#"{"type":"compaction","input_tokens":180,"cache_read_input_tokens":5,"output_tokens":35}"#;
        for (iterations, counted) in [
            (format!("[{compacted},{answered}]"), (208, 8, 45)),
            (format!("[{answered}]"), (23, 3, 10)),
            ("[]".to_owned(), (23, 3, 10)),
            ("null".to_owned(), (23, 3, 10)),
            ("[1,{}]".to_owned(), (23, 3, 10)),
        ] {
            assert_eq!(usage(&iterations), counted, "{iterations}");
        }
    }

    #[test]
    fn a_stream_is_read() {
        let mut reader = SideReader::new(Dialect::Messages);
        for data in [
            r#"{"type":"message_start","message":{"id":"m1","model":"claude","content":[],"stop_reason":null,
                "usage":{"input_tokens":5,"cache_read_input_tokens":20,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" 1}"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        ] {
            let event = format!("event: x\ndata: {}\n\n", data.replace('\n', " "));
            reader.feed(event.as_bytes());
        }
        assert!(!reader.is_done());
        reader.feed(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        assert!(reader.is_done());
        let answer = reader.answer();
        assert_eq!((answer.content.as_deref(), &*answer.tool_calls[0].arguments), (Some("ab"), "{\"x\": 1}"));
        assert_eq!(answer.finish_reasons, ["tool_use"]);
        let usage = answer.usage.unwrap();
        assert_eq!((usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens), (25, 20, 9));
        let message = String::from_utf8(Dialect::Messages.answer_message(answer).unwrap()).unwrap();
        assert_eq!(
            message,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ab"},{"type":"tool_use","id":"t","name":"f","input":{"x": 1}}]}"#
        );
    }

    #[test]
    fn what_the_provider_has_compacted_is_kept() {
        let mut reader = SideReader::new(Dialect::Messages);
        for data in [
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"It was long.","encrypted_content":"Zm9v"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}"#,
        ] {
            reader.feed(format!("data: {data}\n\n").as_bytes());
        }
        let message = Dialect::Messages.answer_message(reader.answer()).unwrap();
        assert_eq!(
            String::from_utf8(message).unwrap(),
            r#"{"role":"assistant","content":[{"type":"compaction","content":"It was long.","encrypted_content":"Zm9v"},{"type":"text","text":"a"}]}"#
        );
    }

    #[test]
    fn an_answer_that_is_not_understood_gives_no_message() {
        let mut reader = SideReader::new(Dialect::Messages);
        reader.feed(b"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\"}}\n\n");
        assert!(Dialect::Messages.answer_message(reader.answer()).is_some());
        reader.feed(
            b"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"new_delta\"}}\n\n",
        );
        assert_eq!(Dialect::Messages.answer_message(reader.answer()), None);
    }
}
