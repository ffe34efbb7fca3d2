//! What an endpoint understands. The protocol has one name and many speakers: some do not know schemas, and reasoning models
//! refuse `max_tokens` and a temperature.

use http::StatusCode;
use memchr::memmem::find;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tidegate_config::{JsonSchema, LlmSummarizer};
use tidegate_summary::{Bounds, Limits, Prompt, Schema, Style, bounded_schema, schema};

/// How a question is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    form: Form,
    knobs: Knobs,
}

/// How the answer's form is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// With lengths, which small models need and strict endpoints refuse. Only for brief questions: in a full answer any list may
    /// be the long one.
    BoundedSchema,
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

/// What is asked, whatever the dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    pub(super) limits: Limits,
    /// The longest answer, in tokens.
    pub(super) max_tokens: u64,
    pub(super) temperature: f64,
}

impl Dialect {
    /// The dialect to begin with.
    pub(super) fn of(llm: &LlmSummarizer, style: Style) -> Dialect {
        let first = Dialect { form: Form::BoundedSchema, knobs: Knobs::Classic };
        let learnt = LEARNT.lock().unwrap_or_else(PoisonError::into_inner).get(&address(llm)).copied();
        let Dialect { form, knobs } = learnt.unwrap_or(first);
        let form = match (llm.json_schema, form, style) {
            (JsonSchema::Never, _, _) | (JsonSchema::Auto, Form::Prompt, _) => Form::Prompt,
            (_, Form::BoundedSchema, Style::Brief) => Form::BoundedSchema,
            (_, Form::BoundedSchema, Style::Full) | (_, Form::Schema | Form::Prompt, _) => Form::Schema,
        };
        Dialect { form, knobs }
    }

    /// Begins with this one from now on. Only for what was answered: an endpoint that refuses everything says nothing about what
    /// it understands.
    pub(super) fn learn(self, llm: &LlmSummarizer) {
        LEARNT.lock().unwrap_or_else(PoisonError::into_inner).insert(address(llm), self);
    }

    /// The dialect to try after the endpoint refused this one; none if the refusal was about something else. Each
    /// step goes one way, so there are three at most.
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
        let form = match (self.form, llm.json_schema) {
            (Form::BoundedSchema, _) => Some(Form::Schema),
            (Form::Schema, JsonSchema::Auto) => Some(Form::Prompt),
            (Form::Schema, JsonSchema::Always | JsonSchema::Never) | (Form::Prompt, _) => None,
        };
        let is_about_knobs = self.knobs == Knobs::Classic
            && mentions(&["max_tokens", "max_completion_tokens", "temperature"])
            && !(form.is_some() && mentions(&["response_format", "json_schema"]));
        if is_about_knobs {
            Some(Dialect { knobs: Knobs::Reasoning, ..self })
        } else {
            form.map(|form| Dialect { form, ..self })
        }
    }

    /// What the answer is held to.
    pub(super) fn bounds(self, limits: Limits) -> Option<Bounds> {
        (self.form == Form::BoundedSchema).then(|| Bounds::of(limits.max_tokens))
    }

    /// The body of the request.
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
        // Texts, numbers and a schema, which is made of both: there is nothing in it that JSON cannot say.
        serde_json::to_vec(&request).unwrap_or_default()
    }
}

/// A request in the order in which it is written: the schema inside it must keep its own.
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
