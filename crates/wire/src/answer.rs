use crate::cursor::Value;
use crate::{MAX_DEPTH, Unreadable};

/// The most bytes of an answer that are kept. A longer one goes to the client all the same; only our copy is cut.
const ANSWER_CAP: usize = 4 << 20;
/// The most tool calls and finish reasons that are kept: their indexes come from the upstream and are not trusted.
const LIST_CAP: usize = 256;

/// What an upstream answered, picked up while the bytes went by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub id: Option<String>,
    pub model: Option<String>,
    pub usage: Option<Usage>,
    /// One for each choice that has ended, in the order in which they did.
    pub finish_reasons: Vec<String>,
    /// The text, refusal and tool calls of the first choice.
    pub content: Option<String>,
    pub refusal: Option<String>,
    pub tool_calls: Vec<AnswerCall>,
    /// Whether the answer holds an `error` in place of, or after, its choices.
    pub failed: bool,
    /// Whether some of the answer was too long to keep.
    pub cut: bool,
    kept: usize,
}

/// A tool call of the answer, put together from its deltas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerCall {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub arguments: String,
}

/// What the upstream says it has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    pub reasoning_tokens: u64,
}

/// Reads an answer that came as one JSON document; nothing if it is no JSON object.
#[must_use]
pub fn read_completion(body: &[u8]) -> Option<Answer> {
    let mut answer = Answer::default();
    answer.absorb(body).then_some(answer)
}

impl Answer {
    /// Adds what one chunk, or a whole completion, says. Whether it could be read; if not, nothing but what stood
    /// before the broken place has been added.
    pub(crate) fn absorb(&mut self, chunk: &[u8]) -> bool {
        let chunk = chunk.trim_ascii();
        if chunk.first() != Some(&b'{') || u32::try_from(chunk.len()).is_err() {
            return false;
        }
        let read = Value::whole(chunk, MAX_DEPTH).members(|member| {
            match &*member.key {
                "id" => keep_first(&mut self.id, member.value)?,
                "model" => keep_first(&mut self.model, member.value)?,
                "usage" => {
                    if let Some(usage) = read_usage(member.value)? {
                        self.usage = Some(usage);
                    }
                }
                "choices" if member.value.first() == Some(b'[') => {
                    member.value.elements(|choice| self.choice(choice))?;
                }
                "error" => self.failed |= member.value.raw() != b"null",
                _ => {}
            }
            Ok(())
        });
        read.is_ok()
    }

    fn choice(&mut self, choice: Value<'_>) -> Result<(), Unreadable> {
        let (mut index, mut said) = (0, None);
        each_member(choice, |key, value| {
            match key {
                "index" => index = value.integer()?.unwrap_or(0),
                "delta" | "message" => said = Some(value),
                "finish_reason" => {
                    if let (Some(reason), true) = (value.text()?, self.finish_reasons.len() < LIST_CAP) {
                        self.finish_reasons.push(reason.into_owned());
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        match said {
            Some(said) if index == 0 => each_member(said, |key, value| match key {
                "content" => self.text(value, |answer| &mut answer.content),
                "refusal" => self.text(value, |answer| &mut answer.refusal),
                "tool_calls" if value.first() == Some(b'[') => {
                    let mut position = 0;
                    value.elements(|call| {
                        position += 1;
                        self.call(call, position - 1)
                    })
                }
                _ => Ok(()),
            }),
            Some(_) | None => Ok(()),
        }
    }

    fn text(
        &mut self,
        value: Value<'_>,
        slot: impl Fn(&mut Answer) -> &mut Option<String>,
    ) -> Result<(), Unreadable> {
        if let Some(text) = value.text()? {
            let mut so_far = slot(self).take().unwrap_or_default();
            self.append(&mut so_far, &text);
            *slot(self) = Some(so_far);
        }
        Ok(())
    }

    /// Deltas name the call by its index; a whole message does not, and there the position counts.
    fn call(&mut self, call: Value<'_>, position: usize) -> Result<(), Unreadable> {
        let mut index = position;
        each_member(call, |key, value| {
            if let ("index", Some(named)) = (key, value.integer()?) {
                index = usize::try_from(named).unwrap_or(usize::MAX);
            }
            Ok(())
        })?;
        if index >= LIST_CAP {
            self.cut = true;
            return Ok(());
        }
        if self.tool_calls.len() <= index {
            self.tool_calls.resize_with(index + 1, AnswerCall::default);
        }
        let mut so_far = std::mem::take(&mut self.tool_calls[index]);
        let read = each_member(call, |key, value| match key {
            "id" => self.append_text(&mut so_far.id, value),
            "type" if so_far.kind.is_empty() => self.append_text(&mut so_far.kind, value),
            "function" | "custom" => each_member(value, |key, value| match key {
                "name" => self.append_text(&mut so_far.name, value),
                "arguments" | "input" => self.append_text(&mut so_far.arguments, value),
                _ => Ok(()),
            }),
            _ => Ok(()),
        });
        self.tool_calls[index] = so_far;
        read
    }

    fn append_text(&mut self, to: &mut String, value: Value<'_>) -> Result<(), Unreadable> {
        if let Some(text) = value.text()? {
            self.append(to, &text);
        }
        Ok(())
    }

    fn append(&mut self, to: &mut String, text: &str) {
        if self.kept.saturating_add(text.len()) > ANSWER_CAP {
            self.cut = true;
        } else if !self.cut {
            // Once something is missing, what follows would join what does not belong together.
            self.kept += text.len();
            to.push_str(text);
        }
    }
}

fn read_usage(value: Value<'_>) -> Result<Option<Usage>, Unreadable> {
    if value.first() != Some(b'{') {
        return Ok(None);
    }
    let mut usage = Usage::default();
    each_member(value, |key, value| {
        let details = |name: &str, slot: &mut u64| {
            each_member(value, |key, value| {
                if key == name {
                    *slot = value.integer()?.unwrap_or(0);
                }
                Ok(())
            })
        };
        match key {
            "prompt_tokens" => usage.prompt_tokens = value.integer()?.unwrap_or(0),
            "completion_tokens" => usage.completion_tokens = value.integer()?.unwrap_or(0),
            "prompt_tokens_details" => details("cached_tokens", &mut usage.cached_tokens)?,
            "completion_tokens_details" => details("reasoning_tokens", &mut usage.reasoning_tokens)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(Some(usage))
}

fn keep_first(slot: &mut Option<String>, value: Value<'_>) -> Result<(), Unreadable> {
    if slot.is_none() {
        *slot = value.text()?.map(|text| text.into_owned());
    }
    Ok(())
}

/// The members of an object; of anything else, none.
fn each_member<'a>(
    value: Value<'a>,
    mut each: impl FnMut(&str, Value<'a>) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    if value.first() != Some(b'{') {
        return Ok(());
    }
    value.members(|member| each(&member.key, member.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_completion() {
        let answer = read_completion(
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
        let usage = Usage { prompt_tokens: 10, completion_tokens: 2, cached_tokens: 8, reasoning_tokens: 1 };
        assert_eq!(answer.usage, Some(usage));
        assert!(!answer.failed && !answer.cut);
    }

    #[test]
    fn an_index_from_the_upstream_allocates_no_memory() {
        let chunk = br#"{"choices":[{"delta":{"tool_calls":[{"index":4000000000,"id":"x"}]}}]}"#;
        let answer = read_completion(chunk).unwrap();
        assert!(answer.tool_calls.is_empty() && answer.cut);
    }

    #[test]
    fn a_long_answer_is_cut() {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "x".repeat(ANSWER_CAP / 3));
        let mut answer = Answer::default();
        (0..5).for_each(|_| assert!(answer.absorb(chunk.as_bytes())));
        assert!(answer.cut && answer.content.unwrap().len() <= ANSWER_CAP);
    }

    #[test]
    fn errors_and_other_shapes_are_told_apart() {
        assert!(read_completion(br#"{"error":{"message":"x"}}"#).unwrap().failed);
        assert!(!read_completion(br#"{"error":null,"choices":{},"usage":null}"#).unwrap().failed);
        assert_eq!(read_completion(b"<html>"), None);
        assert_eq!(read_completion(br#"{"id":"x""#), None);
    }
}
