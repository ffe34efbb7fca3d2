//! Finds routes whose policy costs more than it saves.

use crate::demo::cached_recording;
use tidegate_config::{ModelSettings, Route, Settings};
use tidegate_engine::{CacheKind, Strategy};
use tidegate_replay::{Defaults, InputLine, Kind, Policy, Regime, Setup, Stage};

/// A policy may cost this much more than raw before it is worth a warning: a cache is never used perfectly.
const TOLERANCE: f64 = 1.02;

/// The models to compare prices with if a route names none: the usual discounts on cached input, with and without a surcharge on
/// writing it.
const TYPICAL_MODELS: [&str; 2] = ["gpt-5", "claude-sonnet-4-5"];

/// In milliseconds. An agent's requests follow each other quickly.
const GAP: u64 = 10_000;

/// Replays a recorded agent run under the policy of each route, and warns of those that cost more than sending the requests
/// unedited.
pub(super) fn warnings(settings: &Settings, routes: &[&Route]) -> Vec<String> {
    routes
        .iter()
        .filter(|route| route.context.strategy != Strategy::Passthrough)
        .filter_map(|route| warning(settings, route))
        .collect()
}

/// Names the models whose price of cached input is missing.
pub(super) fn notes(settings: &Settings) -> Vec<String> {
    let is_silent = |model: &ModelSettings| {
        model.input.is_some() && model.cached_input.is_none() && model.cache != Some(CacheKind::None)
    };
    let silent = settings.models.iter().filter(|(_, model)| is_silent(model));
    let note = |name: &String| {
        format!(
            "`[models.\"{name}\"]` has no `cached_input`: masking and folding are paced as if cached input cost a tenth of `input`, so that \
             they do not cost more than they save, and costs are reported without a discount\n  hint: set `cached_input`; without a \
             discount, it is the same as `input`"
        )
    };
    silent.map(|(name, _)| note(name)).collect()
}

fn warning(settings: &Settings, route: &Route) -> Option<String> {
    let ratios = models(settings, route).into_iter().filter_map(|model| {
        let ratio = ratio(settings, &route.name, &model)?;
        Some((model, ratio))
    });
    let (model, ratio) = ratios.reduce(|worst, one| if one.1 > worst.1 { one } else { worst })?;
    (ratio > TOLERANCE).then(|| {
        format!(
            "route `{}` would cost {ratio:.2} times as much as sending requests unedited, at the prices of `{model}`: each edit makes the \
             provider read what it had cached\n  hint: set `mask.pace` and `fold.pace` to \"break_even\", or compare policies with \
             `tidegate replay`",
            route.name
        )
    })
}

/// The models that a route names, or that the configuration describes, or typical ones.
pub(super) fn models(settings: &Settings, route: &Route) -> Vec<String> {
    let is_name = |name: &&str| !name.contains('*');
    let named = route.matcher.models.iter().map(|glob| glob.as_str()).filter(is_name);
    let named: Vec<String> = named.map(str::to_owned).collect();
    if !named.is_empty() {
        return named;
    }
    let matches = |name: &&String| {
        let globs = &route.matcher.models;
        globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
    };
    let described = settings.models.keys().filter(|name| is_name(&name.as_str())).filter(matches);
    described.cloned().chain(TYPICAL_MODELS.map(str::to_owned)).collect()
}

/// The cost of the recording under the route's policy, divided by its cost unedited.
fn ratio(settings: &Settings, route: &str, model: &str) -> Option<f64> {
    let policy = Policy { kind: Kind::Route(route.to_owned()), keep: None };
    let setup = Setup {
        settings: settings.clone(),
        policies: vec![Policy::RAW, policy],
        regimes: vec![Regime::Table],
        main: 2,
        gap: GAP,
    };
    let defaults = Defaults { model: Some(model.to_owned()) };
    let recorded = InputLine::new("demo", 1, &cached_recording()).conversation(&defaults).ok()?;
    let replayed = Stage::new(&setup).replay(&recorded);
    let [raw, own] = replayed.figures.first()?.as_slice() else { return None };
    // Refused requests cost nothing, so they cannot be compared.
    (own.refused == 0).then(|| own.cost.ratio_to(&raw.cost))
}
