use crate::instruments::{EDITS, Instruments};
use crate::names::{attribute, label};
use crate::tally::Counts;
use crate::{OUTCOMES, Outcome};
use opentelemetry::metrics::{BoundCounter, BoundHistogram};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use std::sync::{Arc, OnceLock};

/// What the figures of one request are told apart by: few values each, however many conversations, models and paths clients
/// come up with. Everything that a request counts is looked up once for a route and a model, and not by each request.
#[derive(Clone, Debug)]
pub struct Labels(pub(crate) Arc<Bound>);

/// The value for every model that no table names.
pub const OTHER_MODEL: &str = "other";

/// The one operation that is intercepted.
pub(crate) const CHAT: &str = "chat";

/// The instruments of one route and model.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) provider: &'static str,
    pub(crate) counts: Arc<Counts>,
    /// By route and model.
    both: [KeyValue; 2],
    /// As the conventions for generative models want it.
    conventional: [KeyValue; 3],
    requests: [BoundCounter<u64>; OUTCOMES.len()],
    pub(crate) turns: BoundCounter<u64>,
    pub(crate) tokens_in: BoundCounter<u64>,
    pub(crate) tokens_out: BoundCounter<u64>,
    pub(crate) masked_tokens: BoundCounter<u64>,
    pub(crate) summary_tokens: BoundCounter<u64>,
    pub(crate) edited: [BoundCounter<u64>; EDITS.len()],
    pub(crate) prompt_tokens: BoundCounter<u64>,
    pub(crate) cached_tokens: BoundCounter<u64>,
    pub(crate) unpriced: BoundCounter<u64>,
    pub(crate) overhead: BoundHistogram<f64>,
    pub(crate) usage: [BoundHistogram<u64>; 2],
    pub(crate) duration: BoundHistogram<f64>,
    pub(crate) first_chunk: BoundHistogram<f64>,
    /// Only of models whose prices are known: what nobody knows is no zero.
    costs: OnceLock<BoundCosts>,
}

#[derive(Debug)]
pub(crate) struct BoundCosts {
    pub(crate) estimated: BoundCounter<f64>,
    pub(crate) billed: BoundCounter<f64>,
    pub(crate) unedited: BoundCounter<f64>,
}

impl Bound {
    /// `model` must be a name out of the model table, or [`OTHER_MODEL`].
    pub(crate) fn new(
        all: &Instruments,
        counts: Arc<Counts>,
        route: &str,
        model: &str,
        provider: &'static str,
    ) -> Bound {
        let route = KeyValue::new(label::ROUTE, route.to_owned());
        let both = [route.clone(), KeyValue::new(label::MODEL, model.to_owned())];
        let conventional = [
            KeyValue::new(attribute::OPERATION, CHAT),
            KeyValue::new(attribute::PROVIDER, provider),
            KeyValue::new(attribute::REQUEST_MODEL, model.to_owned()),
        ];
        let by_route = std::slice::from_ref(&route);
        let usage = |kind| {
            let kind = KeyValue::new(attribute::TOKEN_TYPE, kind);
            all.token_usage.bind(&with(&conventional, kind))
        };
        Bound {
            provider,
            counts,
            requests: OUTCOMES
                .map(|how| all.requests.bind(&[route.clone(), KeyValue::new(label::OUTCOME, how.name())])),
            turns: all.turns.bind(&both),
            tokens_in: all.tokens_in.bind(&both),
            tokens_out: all.tokens_out.bind(&both),
            masked_tokens: all.masked_tokens.bind(&both),
            summary_tokens: all.summary_tokens.bind(&both),
            edited: EDITS.map(|edit| all.edited.bind(&[route.clone(), KeyValue::new(label::EDIT, edit)])),
            prompt_tokens: all.prompt_tokens.bind(&both),
            cached_tokens: all.cached_tokens.bind(&both),
            unpriced: all.unpriced.bind(by_route),
            overhead: all.overhead.bind(by_route),
            usage: [usage("input"), usage("output")],
            duration: all.duration.bind(&conventional),
            first_chunk: all.first_chunk.bind(&conventional),
            costs: OnceLock::new(),
            both,
            conventional,
        }
    }

    pub(crate) fn route(&self) -> &KeyValue {
        &self.both[0]
    }

    pub(crate) fn requests(&self, outcome: Outcome) -> &BoundCounter<u64> {
        &self.requests[outcome as usize]
    }

    pub(crate) fn costs(&self, all: &Instruments) -> &BoundCosts {
        self.costs.get_or_init(|| {
            let kind = |kind| all.cost.bind(&with(&self.both, KeyValue::new(label::KIND, kind)));
            BoundCosts {
                estimated: all.estimated_cost.bind(&self.both),
                billed: kind("billed"),
                unedited: kind("unedited"),
            }
        })
    }

    /// The conventional labels and one more.
    pub(crate) fn with(&self, more: KeyValue) -> Vec<KeyValue> {
        with(&self.conventional, more)
    }
}

fn with(labels: &[KeyValue], more: KeyValue) -> Vec<KeyValue> {
    labels.iter().cloned().chain([more]).collect()
}

/// Who is behind an upstream, by its `host` or `host:port`. Whoever is not known speaks OpenAI's protocol, which is all that is known of them.
#[must_use]
pub fn provider(authority: &str) -> &'static str {
    const KNOWN: [(&str, &str); 13] = [
        ("openai.azure.com", "azure.ai.openai"),
        ("services.ai.azure.com", "azure.ai.inference"),
        ("api.openai.com", "openai"),
        ("api.anthropic.com", "anthropic"),
        ("amazonaws.com", "aws.bedrock"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
        ("aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("api.mistral.ai", "mistral_ai"),
        ("api.groq.com", "groq"),
        ("api.deepseek.com", "deepseek"),
        ("api.x.ai", "x_ai"),
        ("api.perplexity.ai", "perplexity"),
        ("api.cohere.com", "cohere"),
    ];
    let host = split(authority).0.to_ascii_lowercase();
    KNOWN.iter().find(|(end, _)| host.ends_with(end)).map_or("openai", |(_, name)| name)
}

/// `host:port` in two; a port that is not there is not made up.
pub(crate) fn split(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => match port.parse() {
            Ok(port) => (host.trim_start_matches('[').trim_end_matches(']'), Some(port)),
            Err(_) => (authority, None),
        },
        _ => (authority, None),
    }
}

/// A list of texts as the value of an attribute.
pub(crate) fn texts(values: &[String]) -> Value {
    Value::Array(Array::String(values.iter().map(|value| StringValue::from(value.clone())).collect()))
}

#[cfg(test)]
mod tests {
    use super::{provider, split};

    #[test]
    fn a_provider_is_known_by_its_host() {
        for (host, name) in [
            ("api.openai.com", "openai"),
            ("Acme.OpenAI.Azure.com", "azure.ai.openai"),
            ("bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"),
            ("127.0.0.1:8000", "openai"),
            ("api.groq.com:443", "groq"),
        ] {
            assert_eq!(provider(host), name, "{host}");
        }
    }

    #[test]
    fn an_authority_is_a_host_and_perhaps_a_port() {
        assert_eq!(split("api.openai.com"), ("api.openai.com", None));
        assert_eq!(split("127.0.0.1:8080"), ("127.0.0.1", Some(8080)));
        assert_eq!(split("[::1]:80"), ("::1", Some(80)));
        assert_eq!(split("[::1]"), ("[::1]", None));
    }
}
