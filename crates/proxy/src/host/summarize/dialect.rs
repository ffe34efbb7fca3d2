//! Adapts requests to what an endpoint supports. Some OpenAI-compatible endpoints do not support schemas, and reasoning models
//! reject `max_tokens` and `temperature`.

use http::StatusCode;
use memchr::memmem::find;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tidegate_config::{JsonSchema, LlmSummarizer};
use tidegate_summary::{Bounds, Limits, Prompt, Schema, Style, bounded_schema, schema};

/// The request format to use with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    form: Form,
    knobs: Knobs,
}

/// How the format of the response is specified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A schema with length limits, which small models need and strict endpoints reject. Only for the brief style: in a full
    /// summary any list may be the long one.
    BoundedSchema,
    Schema,
    /// Only described in the prompt.
    Prompt,
}

/// How length and randomness are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knobs {
    Classic,
    /// `max_completion_tokens`, which includes reasoning tokens, and no temperature.
    Reasoning,
}

/// Extra output tokens for a reasoning model.
const REASONING_TOKENS: u64 = 4_096;

/// The dialect that each endpoint has accepted, by address and model. It has at most one entry per configured summarizer.
static ACCEPTED: Mutex<BTreeMap<(String, String), Dialect>> = Mutex::new(BTreeMap::new());

/// A request to a summarizer, independent of the dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    pub(super) limits: Limits,
    /// The maximum length of the response in tokens.
    pub(super) max_tokens: u64,
    pub(super) temperature: f64,
}

impl Dialect {
    /// Returns the dialect to try first.
    pub(super) fn of(llm: &LlmSummarizer, style: Style) -> Dialect {
        let first = Dialect { form: Form::BoundedSchema, knobs: Knobs::Classic };
        let accepted = ACCEPTED.lock().unwrap_or_else(PoisonError::into_inner).get(&address(llm)).copied();
        let Dialect { form, knobs } = accepted.unwrap_or(first);
        let form = match (llm.json_schema, form, style) {
            (JsonSchema::Never, _, _) | (JsonSchema::Auto, Form::Prompt, _) => Form::Prompt,
            (_, Form::BoundedSchema, Style::Brief) => Form::BoundedSchema,
            (_, Form::BoundedSchema, Style::Full) | (_, Form::Schema | Form::Prompt, _) => Form::Schema,
        };
        Dialect { form, knobs }
    }

    /// Remembers this dialect for the endpoint. Call it only after a successful response: an endpoint that rejects every request
    /// reveals nothing about the dialects it supports.
    pub(super) fn remember(self, llm: &LlmSummarizer) {
        ACCEPTED.lock().unwrap_or_else(PoisonError::into_inner).insert(address(llm), self);
    }

    /// Returns the dialect to try after the endpoint rejected this one, or `None` if the rejection has another cause. Every step
    /// only removes features, so there are at most three.
    pub(super) fn simpler(self, llm: &LlmSummarizer, status: StatusCode, answer: &[u8]) -> Option<Dialect> {
        let may_reject_form = matches!(
            status,
            StatusCode::BAD_REQUEST
                | StatusCode::NOT_FOUND
                | StatusCode::UNPROCESSABLE_ENTITY
                | StatusCode::NOT_IMPLEMENTED
        );
        if !may_reject_form {
            return None;
        }
        let mentions = |words: &[&str]| words.iter().any(|word| find(answer, word.as_bytes()).is_some());
        let form = match (self.form, llm.json_schema) {
            (Form::BoundedSchema, _) => Some(Form::Schema),
            (Form::Schema, JsonSchema::Auto) => Some(Form::Prompt),
            (Form::Schema, JsonSchema::Always | JsonSchema::Never) | (Form::Prompt, _) => None,
        };
        let rejects_knobs = self.knobs == Knobs::Classic
            && mentions(&["max_tokens", "max_completion_tokens", "temperature"])
            && !(form.is_some() && mentions(&["response_format", "json_schema"]));
        if rejects_knobs {
            Some(Dialect { knobs: Knobs::Reasoning, ..self })
        } else {
            form.map(|form| Dialect { form, ..self })
        }
    }

    /// The length limits that the schema imposes on the response.
    pub(super) fn bounds(self, limits: Limits) -> Option<Bounds> {
        (self.form == Form::BoundedSchema).then(|| Bounds::of(limits.max_tokens))
    }

    /// Serializes the request body.
    pub(super) fn request(self, question: Question<'_>) -> Vec<u8> {
        let Question { model, prompt, limits, max_tokens, temperature } = question;
        let messages = [
            Message { role: "system", content: &prompt.system },
            Message { role: "user", content: &prompt.user },
        ];
        let mut request = Request { model, messages, stream: false, ..Request::default() };
        match self.knobs {
            Knobs::Classic => {
                request.max_tokens = Some(max_tokens);
                request.temperature = Some(temperature);
            }
            Knobs::Reasoning => {
                request.max_completion_tokens = Some(max_tokens.saturating_add(REASONING_TOKENS));
            }
        }
        request.response_format = match (self.form, self.bounds(limits)) {
            (_, Some(bounds)) => Some(response_format(bounded_schema(bounds))),
            (Form::Schema | Form::BoundedSchema, None) => Some(response_format(schema(limits.style))),
            (Form::Prompt, None) => None,
        };
        // Only strings, numbers and a schema: serializing cannot fail.
        serde_json::to_vec(&request).unwrap_or_default()
    }
}

/// The request body. A struct instead of a `Value`, so that the members of the schema keep their order.
#[derive(Debug, Default, Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: [Message<'a>; 2],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat>,
}

#[derive(Debug, Default, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Debug, Serialize)]
struct ResponseFormat {
    r#type: &'static str,
    json_schema: JsonSchemaFormat,
}

#[derive(Debug, Serialize)]
struct JsonSchemaFormat {
    name: &'static str,
    strict: bool,
    schema: Schema,
}

fn response_format(schema: Schema) -> ResponseFormat {
    let json_schema = JsonSchemaFormat { name: "conversation_state", strict: true, schema };
    ResponseFormat { r#type: "json_schema", json_schema }
}

fn address(llm: &LlmSummarizer) -> (String, String) {
    (llm.upstream.url.to_string(), llm.model.clone())
}
