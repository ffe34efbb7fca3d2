//! Finds the route of a request.

use crate::{Glob, Matcher, Route};

/// Returns the index of the first route that matches. `model` is absent for a request whose body is not read. `has_header` says
/// whether the request has a header of this name with a value that matches.
#[must_use]
pub fn matching_route(
    routes: &[Route],
    path: &str,
    model: Option<&str>,
    has_header: impl Fn(&str, &Glob) -> bool,
) -> Option<usize> {
    routes.iter().position(|route| route.matcher.matches(path, model, &has_header))
}

/// Returns the route of a request to this path without any header that a route asks for: all that is known of a saved request is its
/// body, and with it the path that its API's own SDKs call.
#[must_use]
pub fn saved_route<'a>(routes: &'a [Route], path: &str, model: Option<&str>) -> Option<&'a Route> {
    matching_route(routes, path, model, |_, _| false).map(|index| &routes[index])
}

impl Matcher {
    fn matches(&self, path: &str, model: Option<&str>, has_header: &impl Fn(&str, &Glob) -> bool) -> bool {
        self.paths.iter().any(|glob| glob.matches_ignore_case(path))
            && (self.models.is_empty()
                || model.is_some_and(|model| self.models.iter().any(|glob| glob.matches(model))))
            && self.headers.iter().all(|(name, glob)| has_header(name, glob))
    }
}
