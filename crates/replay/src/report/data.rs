//! The data for the plots.

use crate::comparison::{Comparison, ConversationDetail, RequestTotals};
use crate::figures::Turn;
use crate::run::Setup;
use serde_json::{Value, json};

pub(super) fn of(setup: &Setup, comparison: &Comparison) -> Value {
    let policies = setup.policies.iter().map(|policy| {
        let without = crate::Policy { keep: None, ..policy.clone() };
        json!({ "name": policy.to_string(), "kind": without.to_string(), "keep": policy.keep })
    });
    json!({
        "main": setup.main,
        "policies": policies.collect::<Vec<Value>>(),
        "prices": (0..setup.regimes.len()).map(|regime| price(setup, comparison, regime)).collect::<Vec<Value>>(),
        "conversations": comparison.most_expensive.iter().map(|detail| conversation(setup, detail)).collect::<Vec<Value>>(),
    })
}

fn price(setup: &Setup, comparison: &Comparison, regime: usize) -> Value {
    let totals = &comparison.totals[regime];
    let is_priced = totals.iter().all(|figures| figures.cost.unpriced == 0);
    let points = |totals: &Vec<RequestTotals>| {
        let mut cost = 0.0;
        let points = totals.iter().map(|total| {
            cost += if is_priced { total.cost.usd } else { total.cost.units };
            let mean = if total.requests == 0 { 0.0 } else { total.sent as f64 / total.requests as f64 };
            json!([mean.round(), rounded(cost)])
        });
        points.collect::<Vec<Value>>()
    };
    json!({
        "unit": if is_priced { "$" } else { "" },
        "ratios": totals.iter().map(|figures| rounded(figures.cost.ratio_to(&totals[0].cost))).collect::<Vec<f64>>(),
        "by_request": comparison.by_request[regime].iter().take(setup.main).map(points).collect::<Vec<_>>(),
    })
}

/// Rounds to the digits that a plot can show.
fn rounded(number: f64) -> f64 {
    let scale = 10f64.powi(5 - number.abs().max(1e-9).log10().ceil() as i32);
    (number * scale).round() / scale
}

fn conversation(setup: &Setup, detail: &ConversationDetail) -> Value {
    let turn = |turn: &Turn| {
        let fate = &turn.fate;
        let mark = if turn.is_refused { 2 } else { u8::from(turn.billed.is_moved) };
        // The placeholders themselves count as sent.
        let placeholders = turn.billed.tokens().saturating_sub(fate.kept + fate.own);
        json!([
            fate.kept + placeholders,
            fate.own,
            fate.masked.saturating_sub(placeholders),
            fate.trimmed,
            fate.folded,
            fate.dropped,
            mark
        ])
    };
    let turns =
        detail.turns.iter().take(setup.main).map(|turns| turns.iter().map(turn).collect::<Vec<Value>>());
    json!({ "id": detail.id, "turns": turns.collect::<Vec<_>>() })
}
