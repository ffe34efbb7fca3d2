//! The answer for machines. Its members are promised in `tidegate explain --help`.

use super::json::Json;
use super::{Case, Ending, figures};
use tidegate_config::strategy_name;
use tidegate_proxy::engine::{Kind, Strategy};
use tidegate_proxy::tokens::{Fit, Prices};

impl Ending {
    fn name(self) -> &'static str {
        match self {
            Ending::AsSent => "as_sent",
            Ending::Edited => "edited",
            Ending::Refused => "refused",
        }
    }
}

pub(super) fn of(case: &Case<'_>) -> Json {
    let plan = &case.assessment.decision.plan;
    Json::Object(vec![
        ("route", case.route.name.as_str().into()),
        ("upstream", case.route.upstream.name.as_str().into()),
        ("strategy", strategy_name(case.strategy).into()),
        ("observe", case.route.context.observe.into()),
        ("messages", messages(case)),
        ("budget", budget(case)),
        (
            "usage",
            Json::Object(vec![
                (
                    "messages",
                    case.assessment.chat.messages.iter().map(|one| one.tokens.0).sum::<u64>().into(),
                ),
                ("fixed", case.assessment.chat.fixed.0.into()),
                ("before", plan.before.0.into()),
                ("saved", plan.before.saturating_sub(plan.after).0.into()),
                ("after", plan.after.0.into()),
            ]),
        ),
        ("masking", if case.strategy == Strategy::Passthrough { Json::Null } else { masking(case) }),
        ("verdict", verdict(case)),
        ("model", model(case)),
    ])
}

/// What is known of a request that no route wants.
pub(super) fn without_route(model: Option<&str>, sentence: &str) -> Json {
    Json::Object(vec![
        ("route", Json::Null),
        ("upstream", "default".into()),
        (
            "verdict",
            Json::Object(vec![("ending", Ending::AsSent.name().into()), ("sentence", sentence.into())]),
        ),
        ("model", Json::Object(vec![("asked", model.into())])),
    ])
}

fn messages(case: &Case<'_>) -> Json {
    let fates = case.fates.iter().enumerate();
    let one = |(index, fate): (usize, &super::Fate)| {
        let kind = match fate.kind {
            Kind::Speech => "speech",
            Kind::Observation => "observation",
        };
        Json::Object(vec![
            ("index", index.into()),
            ("role", fate.role.into()),
            ("kind", kind.into()),
            ("tool", fate.tool.as_deref().into()),
            ("calls", fate.calls.iter().map(String::as_str).collect()),
            ("tokens", fate.tokens.0.into()),
            ("tokens_after", fate.after.0.into()),
            ("action", fate.action.name().into()),
            ("reason", fate.why.name().into()),
            ("why", figures::why(case, fate.why).into()),
        ])
    };
    fates.map(one).collect()
}

fn budget(case: &Case<'_>) -> Json {
    let budget = &case.assessment.decision.plan.budget;
    let (_, window) = figures::sources(case);
    let asked = case.outline.max_completion_tokens.or(case.outline.max_tokens);
    Json::Object(vec![
        ("window", budget.window.0.into()),
        ("window_source", if case.model.window.is_none() { "fallback" } else { window.name() }.into()),
        ("safe", budget.safe.0.into()),
        ("output", budget.output.0.into()),
        ("output_source", if asked.is_some() { "request" } else { "policy" }.into()),
        ("overhead", budget.overhead.0.into()),
        ("input", budget.input.0.into()),
    ])
}

fn masking(case: &Case<'_>) -> Json {
    let plan = &case.assessment.decision.plan;
    Json::Object(vec![
        ("keep", case.setting("mask.keep").into()),
        ("pace", case.setting("mask.pace").trim_matches('"').into()),
        ("cause", plan.cause.map(|cause| cause.name()).into()),
        ("postponed", plan.postponed.into()),
        ("note", figures::note(case.route.context.mask.policy.pace).into()),
    ])
}

fn verdict(case: &Case<'_>) -> Json {
    let plan = &case.assessment.decision.plan;
    Json::Object(vec![
        ("ending", case.ending().name().into()),
        ("masked", case.fates.iter().filter(|fate| fate.action.masks()).count().into()),
        ("untagged", case.fates.iter().filter(|fate| fate.action.untags()).count().into()),
        ("over", figures::over(plan).0.into()),
        ("left", plan.budget.input.saturating_sub(plan.after).0.into()),
        ("sentence", figures::verdict(case).into()),
    ])
}

fn model(case: &Case<'_>) -> Json {
    let model = case.model;
    let (entry, _) = figures::sources(case);
    let fit = match model.fit {
        Fit::Exact => "exact",
        Fit::Nearest => "nearest",
    };
    let prices = |Prices { input, cached_input, cache_write, output }: Prices| {
        Json::Object(vec![
            ("input", input.into()),
            ("cached_input", cached_input.into()),
            ("cache_write", cache_write.into()),
            ("output", output.into()),
        ])
    };
    Json::Object(vec![
        ("asked", case.outline.model.as_deref().into()),
        ("matched", (entry != figures::Source::Unknown).then_some(model.name.as_str()).into()),
        ("source", entry.name().into()),
        ("window", model.window.map(|window| window.0).into()),
        ("max_output", model.max_output.map(|most| most.0).into()),
        ("encoding", model.encoding.name().into()),
        ("fit", fit.into()),
        ("prices", model.prices.map(prices).into()),
        ("cache_life_s", model.caching.ttl.as_secs().into()),
    ])
}
