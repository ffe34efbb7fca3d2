//! Finds routes whose edits strict chat templates refuse.

use tidegate_config::{FoldPlacement, FoldRole, Route};
use tidegate_engine::Strategy;

/// One note for each route whose summaries or markers stand where a template that wants alternating roles refuses them.
pub(super) fn notes(routes: &[&Route]) -> Vec<String> {
    routes.iter().filter_map(|route| note(route)).collect()
}

fn note(route: &Route) -> Option<String> {
    let fold = &route.context.fold;
    let has_place = fold.placement == FoldPlacement::Merge;
    let (what, settings) = match (route.context.strategy, fold.role) {
        (Strategy::Passthrough | Strategy::Masking, _) => return None,
        (Strategy::Window, _) | (_, FoldRole::User) if has_place => return None,
        (Strategy::Window, _) => ("its marker is a user message of its own", "`fold.placement = \"merge\"`"),
        (_, FoldRole::User) => {
            ("its summaries are user messages of their own", "`fold.placement = \"merge\"`")
        }
        (_, FoldRole::System) => (
            "its summaries are system messages behind the client's, and what follows may begin with an answer",
            "`fold.placement = \"merge\"` and `fold.role = \"user\"`",
        ),
    };
    Some(format!(
        "route `{}` does not fit strict chat templates (user and assistant alternate, as in Gemma's): {what}\n  hint: {settings} \
         would fit",
        route.name
    ))
}
