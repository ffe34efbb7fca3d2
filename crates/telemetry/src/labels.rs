use crate::counts::ModelCounts;
use crate::histograms::Histograms;
use crate::names::{attribute, label};
use opentelemetry::metrics::BoundHistogram;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use std::sync::Arc;

/// The route and model that a request is counted under. There are few of them, however many conversations, models and paths clients
/// come up with. The counts and histograms of a route and model are looked up once, not for each request.
#[derive(Clone, Debug)]
pub struct Labels(pub(crate) Arc<Bound>);

/// The label of every model that is not in the model table.
pub const OTHER_MODEL: &str = "other";

/// The only operation that is intercepted.
pub(crate) const CHAT: &str = "chat";

/// The counts and histograms of one route and model.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) provider: &'static str,
    pub(crate) counts: Arc<ModelCounts>,
    /// The labels that OpenTelemetry's conventions for generative models ask for.
    conventional: [KeyValue; 3],
    pub(crate) overhead: BoundHistogram<f64>,
    /// Input and output tokens.
    pub(crate) token_usage: [BoundHistogram<u64>; 2],
    pub(crate) duration: BoundHistogram<f64>,
    pub(crate) first_chunk: BoundHistogram<f64>,
}

impl Bound {
    pub(crate) fn new(histograms: &Histograms, counts: Arc<ModelCounts>, provider: &'static str) -> Bound {
        let conventional = [
            KeyValue::new(attribute::OPERATION, CHAT),
            KeyValue::new(attribute::PROVIDER, provider),
            KeyValue::new(attribute::REQUEST_MODEL, counts.model.clone()),
        ];
        let token_usage = ["input", "output"].map(|kind| {
            let kind = KeyValue::new(attribute::TOKEN_TYPE, kind);
            histograms.token_usage.bind(&with(&conventional, kind))
        });
        Bound {
            provider,
            overhead: histograms.overhead.bind(&[KeyValue::new(label::ROUTE, counts.route.clone())]),
            token_usage,
            duration: histograms.duration.bind(&conventional),
            first_chunk: histograms.first_chunk.bind(&conventional),
            counts,
            conventional,
        }
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
