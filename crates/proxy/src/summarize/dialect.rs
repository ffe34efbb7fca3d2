//! What an endpoint understands. The protocol has one name and many speakers: some do not know schemas, and reasoning models
//! refuse `max_tokens` and a temperature.

use http::StatusCode;
use memchr::memmem::find;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tidegate_config::{JsonSchema, LlmSummarizer};
use tidegate_summary::{Prompt, schema};

/// How a question is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    form: Form,
    knobs: Knobs,
}

/// How the answer's form is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Schema,
    /// The prompt alone says it.
    Prompt,
}

/// How length and chance are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knobs {
    Classic,
    /// `max_completion_tokens`, which counts the reasoning too, and no temperature.
    Reasoning,
}

/// What a reasoning model may think before it answers.
const REASONING_TOKENS: u64 = 4_096;

/// What endpoints were found to understand, by address and model. It is as long as the list of summarizers.
static LEARNT: Mutex<BTreeMap<(String, String), Dialect>> = Mutex::new(BTreeMap::new());

impl Dialect {
    /// The dialect to begin with.
    pub(super) fn of(llm: &LlmSummarizer) -> Dialect {
        let learnt = LEARNT.lock().unwrap_or_else(PoisonError::into_inner).get(&address(llm)).copied();
        let Dialect { form, knobs } = learnt.unwrap_or(Dialect { form: Form::Schema, knobs: Knobs::Classic });
        let form = match llm.json_schema {
            JsonSchema::Auto => form,
            JsonSchema::Always => Form::Schema,
            JsonSchema::Never => Form::Prompt,
        };
        Dialect { form, knobs }
    }

    /// Begins with this one from now on. Only for what was answered: an endpoint that refuses everything says nothing about what
    /// it understands.
    pub(super) fn learn(self, llm: &LlmSummarizer) {
        LEARNT.lock().unwrap_or_else(PoisonError::into_inner).insert(address(llm), self);
    }

    /// The dialect to try after the endpoint refused this one; none if the refusal was about something else. Each
    /// step goes one way, so there are two at most.
    pub(super) fn simpler(self, llm: &LlmSummarizer, status: StatusCode, answer: &[u8]) -> Option<Dialect> {
        let may_be_about_form = matches!(
            status,
            StatusCode::BAD_REQUEST
                | StatusCode::NOT_FOUND
                | StatusCode::UNPROCESSABLE_ENTITY
                | StatusCode::NOT_IMPLEMENTED
        );
        if !may_be_about_form {
            return None;
        }
        let mentions = |words: &[&str]| words.iter().any(|word| find(answer, word.as_bytes()).is_some());
        let can_drop_schema = self.form == Form::Schema && llm.json_schema == JsonSchema::Auto;
        let is_about_knobs = self.knobs == Knobs::Classic
            && mentions(&["max_tokens", "max_completion_tokens", "temperature"])
            && !(can_drop_schema && mentions(&["response_format", "json_schema"]));
        if is_about_knobs {
            Some(Dialect { knobs: Knobs::Reasoning, ..self })
        } else if can_drop_schema {
            Some(Dialect { form: Form::Prompt, ..self })
        } else {
            None
        }
    }

    /// The body of the request.
    pub(super) fn request(self, model: &str, prompt: &Prompt, max_tokens: u64, temperature: f64) -> Vec<u8> {
        let mut request = json!({
            "model": model,
            "messages": [
                { "role": "system", "content": prompt.system },
                { "role": "user", "content": prompt.user },
            ],
            "stream": false,
        });
        match self.knobs {
            Knobs::Classic => {
                request["max_tokens"] = max_tokens.into();
                request["temperature"] = temperature.into();
            }
            Knobs::Reasoning => {
                request["max_completion_tokens"] = max_tokens.saturating_add(REASONING_TOKENS).into();
            }
        }
        match self.form {
            Form::Schema => request["response_format"] = response_format(),
            Form::Prompt => {}
        }
        request.to_string().into_bytes()
    }
}

fn response_format() -> Value {
    let state = json!({ "name": "conversation_state", "strict": true, "schema": schema() });
    json!({ "type": "json_schema", "json_schema": state })
}

fn address(llm: &LlmSummarizer) -> (String, String) {
    (llm.upstream.url.to_string(), llm.model.clone())
}
