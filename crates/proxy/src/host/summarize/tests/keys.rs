//! Which key is sent to the summarizer. Variables set by Cargo serve as keys.

use super::*;
use crate::host::summarize::key::{KeyError, authorization};
use crate::transport::upstream::Prepared;

/// Returns the key that the upstream receives for a caller with the key `caller`, whose own requests go to `default`.
async fn key(upstream: &MockUpstream, config: &str, model: &str) -> Option<String> {
    let url = upstream.url();
    let fixture = Fixture::new(&format!(
        "{config}\nkind = \"llm\"\nmodel = \"{model}\"\n[upstreams.default]\nurl = \"{url}/a\"\n[upstreams.other]\nurl = \"{url}/b\"\n"
    ));
    let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, "Bearer caller".parse().unwrap())]);
    let caller = CallerKey::of(&headers, &fixture.snapshot.settings.upstreams["default"]);
    assert!(!format!("{caller:?}").contains("Bearer"));
    fixture.summarize_for(material(), &caller, TIMEOUT).await.unwrap();
    upstream.next_request().await.header("authorization").map(str::to_owned)
}

#[tokio::test]
async fn a_callers_key_is_only_sent_to_its_own_upstream_unless_forwarding_is_allowed() {
    let upstream = MockUpstream::start().await;
    upstream.answer(valid_answer("Use redb"));
    let section = "[summarizers.small]\nupstream =";
    let home = key(&upstream, &format!("{section} \"default\""), "home").await;
    assert_eq!(home.as_deref(), Some("Bearer caller"));
    assert_eq!(key(&upstream, &format!("{section} \"other\""), "away").await, None);
    let allowed = key(&upstream, &format!("{section} \"other\"\nforward_key = true"), "told").await;
    assert_eq!(allowed.as_deref(), Some("Bearer caller"));
    let paths: Vec<String> = upstream.requests().iter().map(|request| request.target.clone()).collect();
    assert_eq!(paths, ["/a/v1/chat/completions", "/b/v1/chat/completions", "/b/v1/chat/completions"]);
}

#[tokio::test]
async fn the_summarizers_key_takes_precedence_over_the_upstreams_and_the_callers() {
    let upstream = MockUpstream::start().await;
    upstream.answer(valid_answer("Use redb"));
    let url = upstream.url();
    for (own, expected) in [
        ("api_key_env = \"CARGO_PKG_NAME\"\nforward_key = true", env!("CARGO_PKG_NAME")),
        ("forward_key = true", env!("CARGO_PKG_VERSION")),
    ] {
        let fixture = Fixture::new(&format!(
            "[upstreams.default]\nurl = \"{url}\"\napi_key_env = \"CARGO_PKG_VERSION\"\n\
             [summarizers.small]\nkind = \"llm\"\nmodel = \"keyed\"\n{own}\n"
        ));
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, "Bearer caller".parse().unwrap())]);
        let caller = CallerKey::of(&headers, &fixture.snapshot.settings.upstreams["default"]);
        fixture.summarize_for(material(), &caller, TIMEOUT).await.unwrap();
        let sent = upstream.next_request().await;
        assert_eq!(sent.headers_named("authorization"), [format!("Bearer {expected}")]);
    }
}

#[test]
fn a_missing_key_of_the_summarizer_is_an_error() {
    let config = "[summarizers.small]\nkind = \"llm\"\nmodel = \"m\"\napi_key_env = \"TIDEGATE_TEST_IS_NOT_SET\"\nforward_key = true\n";
    let settings = load(ConfigSource::new("proxy.toml", config), &Flags::default(), &|_| None).unwrap();
    let Summarizer::Llm(llm) = &settings.summarizers["small"] else { panic!("it is an llm") };
    let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, "Bearer caller".parse().unwrap())]);
    let caller = CallerKey::of(&headers, &llm.upstream);
    let chosen = authorization(llm, &Prepared::new(&llm.upstream).unwrap(), &caller);
    let variable = "TIDEGATE_TEST_IS_NOT_SET".to_owned();
    assert_eq!(chosen, Err(KeyError::Missing { summarizer: "small".to_owned(), variable }));
}
