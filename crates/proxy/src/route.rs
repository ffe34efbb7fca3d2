//! Which policy a request gets, and which upstream.

use crate::reply::Refusal;
use http::HeaderMap;
use tidegate_config::{Context, Matcher, Route, strategy_named};
use tidegate_engine::Strategy;
use tidegate_telemetry::names::header;

/// The index of the first route that matches. `path` is canonical; `model` is absent for requests that are not read.
pub(crate) fn route(routes: &[Route], path: &str, headers: &HeaderMap, model: Option<&str>) -> Option<usize> {
    routes.iter().position(|route| matches(&route.matcher, path, headers, model))
}

/// The route of a chat completion that comes to OpenAI's own path with no header that a route asks for: the one that
/// `tidegate explain` shows, for all it knows of a request is its body.
#[must_use]
pub fn chat_route<'a>(routes: &'a [Route], model: Option<&str>) -> Option<&'a Route> {
    route(routes, "/v1/chat/completions", &HeaderMap::new(), model).map(|index| &routes[index])
}

/// The strategy for one request: the route's, unless the client asks for another and the route lets it.
pub(crate) fn strategy(context: &Context, headers: &HeaderMap) -> Result<Strategy, Refusal> {
    let asked = |name, allowed: bool| headers.get(name).filter(|_| allowed).map(|value| value.as_bytes());
    if let Some(value) = asked(header::BYPASS, context.allow_headers.bypass)
        && !matches!(value, b"" | b"0" | b"false")
    {
        return Ok(Strategy::Passthrough);
    }
    let Some(value) = asked(header::STRATEGY, context.allow_headers.strategy) else {
        return Ok(context.strategy);
    };
    let named = std::str::from_utf8(value).ok().and_then(strategy_named);
    named.ok_or(Refusal::Strategy { known: "passthrough, masking, summarization, hybrid, window" })
}

fn matches(matcher: &Matcher, path: &str, headers: &HeaderMap, model: Option<&str>) -> bool {
    matcher.paths.iter().any(|glob| glob.matches_ignore_case(path))
        && (matcher.models.is_empty()
            || model.is_some_and(|model| matcher.models.iter().any(|glob| glob.matches(model))))
        && matcher.headers.iter().all(|(name, glob)| {
            headers.get_all(name).iter().any(|value| value.to_str().is_ok_and(|value| glob.matches(value)))
        })
}
