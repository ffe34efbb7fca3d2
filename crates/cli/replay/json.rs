//! The JSON output.

use super::ReplayResult;
use serde_json::{Value, json};
use tidegate_replay::{ConversationFigures, Figures, Need, Policy, Setup};

pub(super) fn of(result: &ReplayResult<'_>) -> Value {
    let ReplayResult { setup, comparison, notes, .. } = result;
    let requests = comparison.totals.first().and_then(|totals| totals.first()).map_or(0, |raw| raw.requests);
    json!({
        "conversations": comparison.conversations.len(),
        "requests": requests,
        "untimed": comparison.untimed,
        "gap_s": setup.gap as f64 / 1e3,
        "models": comparison.models,
        "notes": notes,
        "prices": (0..setup.regimes.len()).map(|regime| price(result, regime)).collect::<Vec<Value>>(),
        "need": result.needs.as_ref().map(|needs| need(setup, needs)),
        "each": comparison.conversations.iter().map(|conversation| each(result, conversation)).collect::<Vec<Value>>(),
    })
}

fn need(setup: &Setup, needs: &[Need]) -> Vec<Value> {
    let one = |(policy, need): (&Policy, &Need)| {
        json!({
            "policy": policy.to_string(),
            "answers": need.answers,
            "needed": need.needed,
            "by_chance": need.by_chance,
            "share": need.share(),
            "chance": need.chance(),
            "conversations": need.conversations,
            "conversations_in_need": need.conversations_in_need,
        })
    };
    setup.policies.iter().zip(needs).map(one).collect()
}

fn price(result: &ReplayResult<'_>, regime: usize) -> Value {
    let ReplayResult { setup, comparison, .. } = result;
    let raw = &comparison.totals[regime][0];
    let policy = |(index, figures): (usize, &Figures)| {
        let worst = comparison.worst(regime, index);
        json!({
            "policy": setup.policies[index].to_string(),
            "requests": figures.requests,
            "tokens_before": figures.before,
            "tokens_sent": figures.sent,
            "tokens_cached": figures.cached,
            "cached_share": figures.cached_share(),
            "cost_usd": figures.cost.known_usd(),
            "cost_units": figures.cost.units,
            "ratio_to_raw": figures.cost.ratio_to(&raw.cost),
            "worst": worst.map(|(id, ratio)| json!({ "id": id, "ratio_to_raw": ratio })),
            "refused": figures.refused,
            "over_window": figures.over,
            "unreadable": figures.unreadable,
            "edited": figures.edited,
            "moves": figures.moves,
            "summaries": figures.summaries,
            "peak_tokens": figures.peak,
        })
    };
    let policies: Vec<Value> = comparison.totals[regime].iter().enumerate().map(policy).collect();
    let mut price = json!({ "price": setup.regimes[regime].to_string(), "policies": policies });
    if let Some(recommendations) = &result.recommendations {
        price["recommended"] = recommendations[regime].as_ref().map_or(Value::Null, |best| {
            let policy = setup.policies[best.policy].to_string();
            json!({ "policy": policy, "ratio_to_raw": best.ratio, "snippet": best.snippet })
        });
    }
    price
}

fn each(result: &ReplayResult<'_>, conversation: &ConversationFigures) -> Value {
    let policy = |(index, figures): (usize, &Figures)| {
        json!({
            "policy": result.setup.policies[index].to_string(),
            "cost_usd": figures.cost.known_usd(),
            "cost_units": figures.cost.units,
            "tokens_sent": figures.sent,
            "refused": figures.refused,
        })
    };
    let price = |figures: &Vec<Figures>| figures.iter().enumerate().map(policy).collect::<Vec<Value>>();
    json!({ "id": conversation.id, "prices": conversation.figures.iter().map(price).collect::<Vec<_>>() })
}
