//! What the plots are drawn from.

use crate::comparison::{Comparison, Detailed, Sum};
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
        "conversations": comparison.dearest.iter().map(|one| conversation(setup, one)).collect::<Vec<Value>>(),
    })
}

fn price(setup: &Setup, comparison: &Comparison, regime: usize) -> Value {
    let totals = &comparison.totals[regime];
    let is_priced = totals.iter().all(|figures| figures.cost.unpriced == 0);
    let course = |sums: &Vec<Sum>| {
        let mut cost = 0.0;
        let points = sums.iter().map(|sum| {
            cost += if is_priced { sum.cost.usd } else { sum.cost.units };
            let mean = if sum.requests == 0 { 0.0 } else { sum.sent as f64 / sum.requests as f64 };
            json!([mean.round(), rounded(cost)])
        });
        points.collect::<Vec<Value>>()
    };
    json!({
        "unit": if is_priced { "$" } else { "" },
        "ratios": totals.iter().map(|one| rounded(one.cost.ratio_to(&totals[0].cost))).collect::<Vec<f64>>(),
        "course": comparison.course[regime].iter().take(setup.main).map(course).collect::<Vec<_>>(),
    })
}

/// As many digits as a plot can show.
fn rounded(number: f64) -> f64 {
    let scale = 10f64.powi(5 - number.abs().max(1e-9).log10().ceil() as i32);
    (number * scale).round() / scale
}

fn conversation(setup: &Setup, one: &Detailed) -> Value {
    let turn = |turn: &Turn| {
        let fate = &turn.fate;
        let mark = if turn.is_refused { 2 } else { u8::from(turn.billed.is_moved) };
        // What the placeholders themselves cost is in what was sent.
        let placeholders = turn.billed.tokens().saturating_sub(fate.kept + fate.own);
        json!([
            fate.kept + placeholders,
            fate.own,
            fate.masked.saturating_sub(placeholders),
            fate.folded,
            fate.dropped,
            mark
        ])
    };
    let turns = one.turns.iter().take(setup.main).map(|turns| turns.iter().map(turn).collect::<Vec<Value>>());
    json!({ "id": one.id, "turns": turns.collect::<Vec<_>>() })
}
