//! What this process has done lately, as one page of figures.

use crate::chronicle::{Came, Chronicle, Pair, Range, first_step};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_telemetry::Tally;

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) range: Range,
    pub(crate) route: Option<String>,
    pub(crate) model: Option<String>,
}

/// What is true of the process now.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) version: &'static str,
    /// When it began to count.
    pub(crate) started: u64,
    pub(crate) store: String,
    pub(crate) store_degraded: Option<&'static str>,
    pub(crate) records_messages: bool,
    pub(crate) draining: bool,
}

/// What requests add up to, as it is told. Null is what nobody knows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    requests: u64,
    tokens_before: u64,
    tokens_after: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
    cost_usd: Option<f64>,
    unedited_cost_usd: Option<f64>,
    summarizer_cost_usd: f64,
    /// Net of summarizers; less than nothing where editing has cost.
    avoided_usd: Option<f64>,
    unpriced: u64,
    masked: u64,
    folded: u64,
    dropped: u64,
    folds: u64,
    degraded: u64,
    refusals: u64,
    overhead_p50_us: Option<f64>,
    overhead_p99_us: Option<f64>,
}

/// Figures with a name: of a route, or of a model.
#[derive(Clone, Debug, Serialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    figures: Figures,
}

/// How often something happened.
#[derive(Clone, Debug, Serialize)]
struct Counted {
    name: &'static str,
    count: u64,
}

/// One step, with when it began.
#[derive(Clone, Debug, Serialize)]
struct Point {
    t: u64,
    #[serde(flatten)]
    figures: Figures,
}

/// The figures of a range: all together, by route, by model.
#[derive(Clone, Debug, Serialize)]
struct Sums {
    totals: Figures,
    routes: Vec<Named>,
    models: Vec<Named>,
    degraded: Vec<Counted>,
    refusals: Vec<Counted>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Overview {
    now: u64,
    range: &'static str,
    step: u64,
    process: Process,
    #[serde(flatten)]
    sums: Sums,
    /// One list a figure, and `t` with when each step began: what a plot is made of.
    series: Value,
}

/// What has changed since the last one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tick {
    now: u64,
    step: u64,
    process: Process,
    point: Point,
    #[serde(flatten)]
    sums: Sums,
}

impl Overview {
    pub(crate) fn of(chronicle: &Chronicle, view: &View, process: Process, now: u64) -> Overview {
        let (step, count) = view.range.steps();
        let steps = chronicle.steps(view.range, now);
        let first = first_step(step, count, now);
        let came: BTreeMap<u64, Tally> =
            steps.iter().map(|(at, came)| (*at, total(came.iter(), view))).collect();
        let nothing = Tally::default();
        let times = (0..count).map(|number| first + number * step);
        let points = times.map(|t| Point::of(t, came.get(&t).unwrap_or(&nothing)));
        let series = columns(points);
        Overview { now, range: view.range.name(), step, process, sums: Sums::of(&steps, view), series }
    }
}

impl Tick {
    pub(crate) fn of(chronicle: &Chronicle, view: &View, process: Process, now: u64) -> Tick {
        let (step, _) = view.range.steps();
        let steps = chronicle.steps(view.range, now);
        // The last step is told again while it grows.
        let t = now - now % step;
        let newest = steps.last().filter(|(at, _)| *at >= t);
        let tally = newest.map(|(_, came)| total(came.iter(), view)).unwrap_or_default();
        Tick { now, step, process, point: Point::of(t, &tally), sums: Sums::of(&steps, view) }
    }
}

impl Point {
    fn of(t: u64, tally: &Tally) -> Point {
        Point { t, figures: Figures::of(tally) }
    }
}

impl Sums {
    fn of(steps: &[(u64, Arc<Came>)], view: &View) -> Sums {
        let mut pairs: BTreeMap<&Arc<Pair>, Tally> = BTreeMap::new();
        for (pair, tally) in steps.iter().flat_map(|(_, came)| came.iter()) {
            let sum = pairs.entry(pair).or_default();
            *sum = sum.plus(tally);
        }
        let totals = total(pairs.iter().map(|(pair, tally)| (*pair, tally)), view);
        // A route is chosen among all routes, and a model among all models: each table shows what the other filter leaves.
        let by_route = View { route: None, ..view.clone() };
        let by_model = View { model: None, ..view.clone() };
        let counted = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(name, count)| Counted { name, count: *count }).collect()
        };
        Sums {
            routes: named(&pairs, &by_route, |pair| &pair.route),
            models: named(&pairs, &by_model, |pair| &pair.model),
            degraded: counted(&totals.degraded),
            refusals: counted(&totals.refusals),
            totals: Figures::of(&totals),
        }
    }
}

fn named(pairs: &BTreeMap<&Arc<Pair>, Tally>, view: &View, name: fn(&Pair) -> &String) -> Vec<Named> {
    let mut sums: BTreeMap<&String, Tally> = BTreeMap::new();
    for (pair, tally) in pairs.iter().filter(|(pair, _)| view.shows(pair)) {
        let sum = sums.entry(name(pair)).or_default();
        *sum = sum.plus(tally);
    }
    sums.into_iter().map(|(name, tally)| Named { name: name.clone(), figures: Figures::of(&tally) }).collect()
}

fn total<'a>(came: impl Iterator<Item = (&'a Arc<Pair>, &'a Tally)>, view: &View) -> Tally {
    came.filter(|(pair, _)| view.shows(pair)).fold(Tally::default(), |sum, (_, tally)| sum.plus(tally))
}

impl View {
    fn shows(&self, pair: &Pair) -> bool {
        let is = |wanted: &Option<String>, name: &String| wanted.as_ref().is_none_or(|wanted| wanted == name);
        is(&self.route, &pair.route) && is(&self.model, &pair.model)
    }
}

impl Figures {
    fn of(tally: &Tally) -> Figures {
        let costs = tally.costs();
        let summarizer_cost_usd = tally.summarizer_cost();
        Figures {
            requests: tally.requests,
            tokens_before: tally.tokens_before,
            tokens_after: tally.tokens_after,
            prompt_tokens: tally.prompt_tokens,
            cached_tokens: tally.cached_tokens,
            completion_tokens: tally.completion_tokens,
            cost_usd: costs.map(|(billed, _)| billed),
            unedited_cost_usd: costs.map(|(_, unedited)| unedited),
            summarizer_cost_usd,
            avoided_usd: costs.map(|(billed, unedited)| unedited - billed - summarizer_cost_usd),
            unpriced: tally.unpriced,
            masked: tally.masked,
            folded: tally.folded,
            dropped: tally.dropped,
            folds: tally.folds,
            degraded: tally.degraded.values().sum(),
            refusals: tally.refusals.values().sum(),
            overhead_p50_us: tally.overhead_us(0.5).map(f64::round),
            overhead_p99_us: tally.overhead_us(0.99).map(f64::round),
        }
    }
}

/// Points turned by a quarter: a list for each member.
fn columns(points: impl Iterator<Item = Point>) -> Value {
    let mut columns: Map<String, Value> = Map::new();
    for point in points {
        // A point is numbers and nulls under names: it is an object.
        let Ok(Value::Object(point)) = serde_json::to_value(point) else { continue };
        for (name, value) in point {
            if let Value::Array(column) = columns.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                column.push(value);
            }
        }
    }
    Value::Object(columns)
}
