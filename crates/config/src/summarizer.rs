use crate::Upstream;
use crate::fold::at_least_one;
use crate::route::known_upstream;
use crate::section::Section;
use crate::tree::{Node, Value};
use crate::value::{self, Wrong};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tidegate_engine::Tokens;

/// What writes the summaries of a fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Summarizer {
    /// Deterministic, built in, no network.
    Extractive,
    Llm(Box<LlmSummarizer>),
}

/// A model that writes summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmSummarizer {
    pub name: String,
    pub upstream: Arc<Upstream>,
    pub model: String,
    /// How long a summary may take; absent: `fold.timeout`.
    pub timeout: Option<Duration>,
    /// The environment variable that holds the key; absent: the upstream's key, or the client's own where it may be used.
    pub api_key_env: Option<String>,
    /// Whether a client's key may go to this upstream although the client's request does not.
    pub forward_key: bool,
    pub json_schema: JsonSchema,
    /// The model's window; absent: what the model table says.
    pub window: Option<Tokens>,
    /// How many characters of a tool's output the summarizer sees.
    pub max_tool_output: NonZeroU32,
}

/// Whether the endpoint is told the schema of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonSchema {
    /// Until the endpoint refuses it.
    Auto,
    Always,
    Never,
}

impl Summarizer {
    pub(crate) fn read(
        name: &str,
        section: &mut Section<'_>,
        upstreams: &BTreeMap<String, Arc<Upstream>>,
        default_upstream: &Arc<Upstream>,
    ) -> Option<Summarizer> {
        let hint = "write `kind = \"llm\"` or `kind = \"extractive\"`";
        let kind = section.required("kind", hint, |node| value::one_of(node, &["llm", "extractive"]));
        let upstream = section.optional("upstream", |node| known_upstream(node, upstreams));
        let model = if kind == Some("llm") {
            section.required("model", "an `llm` summarizer needs the name of its model", value::text)
        } else {
            section.optional("model", value::text)
        };
        let llm = LlmSummarizer {
            name: name.to_owned(),
            upstream: upstream.unwrap_or_else(|| Arc::clone(default_upstream)),
            model: model.clone().unwrap_or_default(),
            timeout: section.optional("timeout", value::duration),
            api_key_env: section.optional("api_key_env", value::variable),
            forward_key: section.flag("forward_key", false),
            json_schema: section.or(
                "json_schema",
                JsonSchema::Auto,
                JsonSchema::parse,
                JsonSchema::to_string,
            ),
            window: section.optional("window", value::some_tokens),
            max_tool_output: section.count("max_tool_output", at_least_one(4000)),
        };
        match kind? {
            "llm" => model.map(|_| Summarizer::Llm(Box::new(llm))),
            _ => Some(Summarizer::Extractive),
        }
    }

    /// How long a summary may take, where `fold` is what the fold allows.
    #[must_use]
    pub fn timeout(&self, fold: Duration) -> Duration {
        match self {
            Summarizer::Extractive => fold,
            Summarizer::Llm(llm) => llm.timeout.unwrap_or(fold),
        }
    }
}

impl JsonSchema {
    fn parse(node: &Node) -> Result<JsonSchema, Wrong> {
        if matches!(&node.value, Value::Text(text) if text == "auto") {
            return Ok(JsonSchema::Auto);
        }
        match value::boolean(node) {
            Ok(true) => Ok(JsonSchema::Always),
            Ok(false) => Ok(JsonSchema::Never),
            Err(_) => {
                Err(Wrong::new("must be `\"auto\"`, `true` or `false`", "leave the key out for `\"auto\"`"))
            }
        }
    }
}

impl fmt::Display for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonSchema::Auto => "\"auto\"",
            JsonSchema::Always => "true",
            JsonSchema::Never => "false",
        })
    }
}
