/// The `gen_ai.provider.name` of an upstream, by its `host` or `host:port`. Returns `openai` for unknown hosts, because they speak its
/// protocol.
#[must_use]
pub fn provider(authority: &str) -> &'static str {
    known_provider(authority).unwrap_or("openai")
}

/// The same, or `None` for unknown hosts.
#[must_use]
pub fn known_provider(authority: &str) -> Option<&'static str> {
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
    let host = host_and_port(authority).0.to_ascii_lowercase();
    KNOWN.iter().find(|(suffix, _)| host.ends_with(suffix)).map(|(_, name)| *name)
}

/// Splits `host:port`. Returns `None` as the port if there is none.
pub(crate) fn host_and_port(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => match port.parse() {
            Ok(port) => (host.trim_start_matches('[').trim_end_matches(']'), Some(port)),
            Err(_) => (authority, None),
        },
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::{host_and_port, provider};

    #[test]
    fn the_provider_follows_from_the_host() {
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
    fn an_authority_splits_into_host_and_optional_port() {
        assert_eq!(host_and_port("api.openai.com"), ("api.openai.com", None));
        assert_eq!(host_and_port("127.0.0.1:8080"), ("127.0.0.1", Some(8080)));
        assert_eq!(host_and_port("[::1]:80"), ("::1", Some(80)));
        assert_eq!(host_and_port("[::1]"), ("[::1]", None));
    }
}
