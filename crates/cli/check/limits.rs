//! Finds limits that cannot hold.

use super::cost::models;
use tidegate_config::{Route, Settings};
use tidegate_context::model_table;

/// One warning for each route that limits the cost of models whose prices nobody knows: their requests count as free.
pub(super) fn warnings(settings: &Settings, routes: &[&Route]) -> Vec<String> {
    let table = model_table(&settings.models);
    let warning = |route: &&Route| {
        route.context.limits.max_cost_usd?;
        let is_free = |model: &String| table.lookup(model).prices.is_none();
        let free: Vec<String> = models(settings, route).into_iter().filter(is_free).collect();
        (!free.is_empty()).then(|| {
            format!(
                "route `{}` limits the cost of a conversation, but no price is known of `{}`, so its requests count as free\n  hint: set \
                 `input` and `output` in `[models.\"{}\"]`",
                route.name,
                free.join("`, `"),
                free[0]
            )
        })
    };
    routes.iter().filter_map(warning).collect()
}
