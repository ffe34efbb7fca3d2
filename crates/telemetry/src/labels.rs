use crate::names::{attribute, label};
use opentelemetry::{Array, KeyValue, StringValue, Value};

/// What the figures of one request are told apart by: few values each, however many conversations, models and paths clients
/// come up with.
#[derive(Clone, Debug)]
pub struct Labels {
    /// By route and model.
    pub(crate) both: [KeyValue; 2],
    /// As the conventions for generative models want it.
    pub(crate) conventional: [KeyValue; 3],
}

/// The value for every model that no table names.
pub const OTHER_MODEL: &str = "other";

/// The one operation that is intercepted.
pub(crate) const CHAT: &str = "chat";

impl Labels {
    /// `model` must be a name out of the model table, or [`OTHER_MODEL`].
    #[must_use]
    pub fn new(route: &str, model: &str, provider: &'static str) -> Labels {
        Labels {
            both: [
                KeyValue::new(label::ROUTE, route.to_owned()),
                KeyValue::new(label::MODEL, model.to_owned()),
            ],
            conventional: [
                KeyValue::new(attribute::OPERATION, CHAT),
                KeyValue::new(attribute::PROVIDER, provider),
                KeyValue::new(attribute::REQUEST_MODEL, model.to_owned()),
            ],
        }
    }

    /// The conventional ones and one more.
    pub(crate) fn with(&self, more: KeyValue) -> Vec<KeyValue> {
        self.conventional.iter().cloned().chain([more]).collect()
    }

    pub(crate) fn route(&self) -> &[KeyValue] {
        &self.both[..1]
    }
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
