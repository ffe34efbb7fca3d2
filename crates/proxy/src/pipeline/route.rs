//! Finds the policy and the upstream of a request.

use crate::pipeline::receive::Purpose;
use crate::reply::refusal::Refusal;
use http::HeaderMap;
use tidegate_config::{Context, Route, matching_route, strategy_from_name};
use tidegate_context::promises;
use tidegate_engine::Strategy;
use tidegate_telemetry::names::header;

/// Returns the index of the first route that matches. `path` is canonical; `model` is absent for requests that are not read.
pub(crate) fn route(routes: &[Route], path: &str, headers: &HeaderMap, model: Option<&str>) -> Option<usize> {
    matching_route(routes, path, model, |name, glob| {
        headers.get_all(name).iter().any(|value| value.to_str().is_ok_and(|value| glob.matches(value)))
    })
}

/// Whether a conversation of this route may only cost so much.
pub(crate) fn limits_cost(route: &Route) -> bool {
    route.context.limits.max_cost_usd.is_some() && !route.context.observe
}

/// Whether a request to this path that cannot be read might be one for this route.
pub(crate) fn may_match(route: &Route, path: &str) -> bool {
    route.matcher.paths.iter().any(|glob| glob.matches_ignore_case(path))
}

/// What a body sent to this path is read for, as far as path and headers can tell.
pub(crate) fn purpose(routes: &[Route], path: &str, headers: &HeaderMap) -> Purpose {
    let edits = |context: &Context| {
        context.strategy != Strategy::Passthrough
            || (context.allow_headers.strategy && headers.contains_key(header::STRATEGY))
    };
    let is_read = |route: &Route| edits(&route.context) || promises(&route.context);
    match routes.iter().any(|route| is_read(route) && may_match(route, path)) {
        true => Purpose::Edit,
        false => Purpose::Forward,
    }
}

/// Returns the strategy of a request: the route's, unless the client asks for another and the route allows that.
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
    let named = std::str::from_utf8(value).ok().and_then(strategy_from_name);
    named.ok_or(Refusal::Strategy { known: "passthrough, masking, summarization, hybrid, window" })
}
