use crate::Upstream;
use crate::fold::nonzero;
use crate::route::known_upstream;
use crate::section::Section;
use crate::tree::{Node, Value};
use crate::value::{self, InvalidValue};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tidegate_engine::Tokens;

/// What writes summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Summarizer {
    /// The built-in summarizer: deterministic, without network access.
    Extractive,
    Llm(Box<LlmSummarizer>),
}

/// A model that writes summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmSummarizer {
    pub name: String,
    pub upstream: Arc<Upstream>,
    pub model: String,
    /// How long a summary may take; `None` for `fold.timeout`.
    pub timeout: Option<Duration>,
    /// The environment variable that holds the API key; `None` for the upstream's key, or the client's where that is allowed.
    pub api_key_env: Option<String>,
    /// Whether a client's key may be sent to this upstream even if the client's requests go to another one.
    pub forward_key: bool,
    pub json_schema: JsonSchema,
    /// The model's window; `None` for the one in the model table.
    pub window: Option<Tokens>,
    /// The maximum number of characters of a tool output that the summarizer gets.
    pub max_tool_output: NonZeroU32,
    /// Summaries at once, of all tenants and of one.
    pub max_concurrent: NonZeroU32,
    pub max_concurrent_per_tenant: NonZeroU32,
    /// Summaries that wait for one of these places.
    pub max_queued: NonZeroU32,
    /// What its summaries may cost within any hour, where its prices are known.
    pub max_cost_usd_per_hour: Option<Ceiling>,
}

/// An amount in billionths of a USD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling(pub u64);

/// Whether to send the JSON schema of the answer to the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonSchema {
    /// Until the endpoint rejects it.
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
            json_schema: section.with_default(
                "json_schema",
                JsonSchema::Auto,
                JsonSchema::parse,
                JsonSchema::to_string,
            ),
            window: section.optional("window", value::positive_tokens),
            max_tool_output: section.count("max_tool_output", nonzero(4000)),
            max_concurrent: section.count("max_concurrent", nonzero(32)),
            max_concurrent_per_tenant: section.count("max_concurrent_per_tenant", nonzero(16)),
            max_queued: section.count("max_queued", nonzero(256)),
            max_cost_usd_per_hour: section
                .optional("max_cost_usd_per_hour", value::cost)
                .map(|usd| Ceiling((usd * 1e9).round() as u64)),
        };
        match kind? {
            "llm" => model.map(|_| Summarizer::Llm(Box::new(llm))),
            _ => Some(Summarizer::Extractive),
        }
    }

    /// How long a summary may take: the summarizer's own timeout, or `fold`.
    #[must_use]
    pub fn timeout(&self, fold: Duration) -> Duration {
        match self {
            Summarizer::Extractive => fold,
            Summarizer::Llm(llm) => llm.timeout.unwrap_or(fold),
        }
    }
}

impl JsonSchema {
    fn parse(node: &Node) -> Result<JsonSchema, InvalidValue> {
        if matches!(&node.value, Value::Text(text) if text == "auto") {
            return Ok(JsonSchema::Auto);
        }
        match value::boolean(node) {
            Ok(true) => Ok(JsonSchema::Always),
            Ok(false) => Ok(JsonSchema::Never),
            Err(_) => Err(InvalidValue::new(
                "must be `\"auto\"`, `true` or `false`",
                "remove the key for `\"auto\"`",
            )),
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
