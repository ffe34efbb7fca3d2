//! Which policy a request gets, and which upstream.

use http::HeaderMap;
use tidegate_config::{Matcher, Route};

/// The first route that matches. `path` is canonical; `model` is absent for requests that are not read.
pub(crate) fn route<'a>(
    routes: &'a [Route],
    path: &str,
    headers: &HeaderMap,
    model: Option<&str>,
) -> Option<&'a Route> {
    routes.iter().find(|route| matches(&route.matcher, path, headers, model))
}

fn matches(matcher: &Matcher, path: &str, headers: &HeaderMap, model: Option<&str>) -> bool {
    matcher.paths.iter().any(|glob| glob.matches_ignore_case(path))
        && (matcher.models.is_empty()
            || model.is_some_and(|model| matcher.models.iter().any(|glob| glob.matches(model))))
        && matcher.headers.iter().all(|(name, glob)| {
            headers.get_all(name).iter().any(|value| value.to_str().is_ok_and(|value| glob.matches(value)))
        })
}
