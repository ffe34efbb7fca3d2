//! A conversation as each API spells it.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Chat,
    Messages,
    Responses,
}

impl Spelling {
    /// The API at this address.
    pub(crate) fn of_path(url: &str) -> Spelling {
        match () {
            () if url.ends_with("/messages") => Spelling::Messages,
            () if url.ends_with("/responses") => Spelling::Responses,
            () => Spelling::Chat,
        }
    }

    /// A message of a chat completion with at most one call, as it stands in the list.
    pub(crate) fn message(self, message: &Value) -> String {
        let text = message["content"].as_str().unwrap_or_default();
        let call = &message["tool_calls"][0];
        let (name, arguments) = (&call["function"]["name"], &call["function"]["arguments"]);
        match (self, message["role"].as_str().unwrap_or_default()) {
            (Spelling::Chat, _) => message.to_string(),
            (_, "assistant") if call.is_null() => json!({"role": "assistant", "content": text}).to_string(),
            (Spelling::Messages, "tool") => {
                let result =
                    json!({"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text});
                json!({"role": "user", "content": [result]}).to_string()
            }
            (Spelling::Messages, "assistant") => {
                let input: Value =
                    serde_json::from_str(arguments.as_str().unwrap_or_default()).unwrap_or_default();
                let call = json!({"type": "tool_use", "id": call["id"], "name": name, "input": input});
                json!({"role": "assistant", "content": [{"type": "text", "text": text}, call]}).to_string()
            }
            // Instructions are a message of the user's, which changes no length.
            (Spelling::Messages, _) => json!({"role": "user", "content": text}).to_string(),
            (Spelling::Responses, "tool") => {
                json!({"type": "function_call_output", "call_id": message["tool_call_id"], "output": text})
                    .to_string()
            }
            (Spelling::Responses, "assistant") => {
                let said = json!({"role": "assistant", "content": text});
                let call = json!({"type": "function_call", "call_id": call["id"], "name": name, "arguments": arguments});
                format!("{said},{call}")
            }
            (Spelling::Responses, role) => json!({"role": role, "content": text}).to_string(),
        }
    }

    /// A request with these messages.
    pub(crate) fn body(self, list: &str) -> String {
        match self {
            Spelling::Chat => format!(r#"{{"model":"gpt-4.1","messages":[{list}]}}"#),
            Spelling::Messages => {
                format!(r#"{{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[{list}]}}"#)
            }
            Spelling::Responses => format!(r#"{{"model":"gpt-4.1","store":false,"input":[{list}]}}"#),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_testkit::Trajectory;

    #[test]
    fn every_call_has_its_result() {
        let messages = Trajectory { turns: 2, ..Trajectory::default() }.messages(1);
        for (spelling, list, call, result) in [
            (Spelling::Chat, "messages", "\"tool_calls\"", "\"tool_call_id\""),
            (Spelling::Messages, "messages", "\"tool_use\"", "\"tool_result\""),
            (Spelling::Responses, "input", "\"function_call\"", "\"function_call_output\""),
        ] {
            let spelled: Vec<String> = messages.iter().map(|message| spelling.message(message)).collect();
            let body: Value = serde_json::from_str(&spelling.body(&spelled.join(","))).unwrap();
            let text = body[list].to_string();
            assert_eq!((text.matches(call).count(), text.matches(result).count()), (2, 2), "{spelling:?}");
            let arguments = messages[2]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
            let why = serde_json::from_str::<Value>(arguments).unwrap()["why"].as_str().unwrap().to_owned();
            // Up to the first character that one of them may escape.
            let word = why.split(|letter: char| !letter.is_alphanumeric()).find(|word| !word.is_empty());
            assert!(text.contains(word.unwrap()));
        }
        let url = "http://127.0.0.1:80/v1/";
        let of = |path: &str| Spelling::of_path(&format!("{url}{path}"));
        assert_eq!(of("messages"), Spelling::Messages);
        assert_eq!(of("responses"), Spelling::Responses);
        assert_eq!(of("chat/completions"), Spelling::Chat);
    }
}
