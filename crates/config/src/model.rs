use crate::section::Section;
use crate::tree::Node;
use crate::value::{self, InvalidValue};
use std::time::Duration;
use tidegate_engine::{CacheKind, Tokens};

/// What the operator sets for a model. Absent values come from the built-in table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSettings {
    pub window: Option<Tokens>,
    pub max_output: Option<Tokens>,
    pub encoding: Option<String>,
    /// In USD per million tokens, like all prices.
    pub input: Option<f64>,
    pub cached_input: Option<f64>,
    pub cache_write: Option<f64>,
    pub output: Option<f64>,
    /// What the provider caches of a request.
    pub cache: Option<CacheKind>,
    /// How long the provider caches a prefix that no request uses.
    pub cache_ttl: Option<Duration>,
}

const ENCODINGS: [&str; 6] =
    ["o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "r50k_base", "estimate"];

impl ModelSettings {
    pub(crate) fn read(section: &mut Section<'_>) -> ModelSettings {
        ModelSettings {
            window: section.optional("window", value::positive_tokens),
            max_output: section.optional("max_output", value::positive_tokens),
            encoding: section.optional("encoding", |node| value::one_of(node, &ENCODINGS).map(str::to_owned)),
            input: section.optional("input", value::price),
            cached_input: section.optional("cached_input", value::price),
            cache_write: section.optional("cache_write", value::price),
            output: section.optional("output", value::price),
            cache: section.optional("cache", cache_kind),
            cache_ttl: section.optional("cache_ttl", value::duration),
        }
    }
}

fn cache_kind(node: &Node) -> Result<CacheKind, InvalidValue> {
    let name = value::one_of(node, &CacheKind::ALL.map(CacheKind::name))?;
    Ok(CacheKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_default())
}
