use crate::Upstream;
use crate::route::known_upstream;
use crate::section::Section;
use crate::value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What writes the summaries of a fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Summarizer {
    /// Deterministic, built in, no network.
    Extractive,
    Llm {
        upstream: Arc<Upstream>,
        model: String,
    },
}

impl Summarizer {
    pub(crate) fn read(
        section: &mut Section<'_>,
        upstreams: &BTreeMap<String, Arc<Upstream>>,
        default_upstream: &Arc<Upstream>,
    ) -> Option<Summarizer> {
        let hint = "write `kind = \"llm\"` or `kind = \"extractive\"`";
        let kind = section.required("kind", hint, |node| value::one_of(node, &["llm", "extractive"]));
        let upstream = section.optional("upstream", |node| known_upstream(node, upstreams));
        if kind == Some("llm") {
            let model =
                section.required("model", "an `llm` summarizer needs the name of its model", value::text);
            let upstream = upstream.unwrap_or_else(|| Arc::clone(default_upstream));
            return Some(Summarizer::Llm { upstream, model: model? });
        }
        section.optional("model", value::text);
        kind.map(|_| Summarizer::Extractive)
    }
}
