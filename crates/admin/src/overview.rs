//! The overview: recent request figures.

use crate::history::{History, Range, SeriesKey, StepTallies, first_step};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_telemetry::{Outcome, Tally};

/// The range and filters of an overview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverviewQuery {
    pub(crate) range: Range,
    pub(crate) route: Option<String>,
    pub(crate) model: Option<String>,
}

/// The current state of the process.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) version: &'static str,
    /// When it started counting, in milliseconds since 1970.
    pub(crate) started: u64,
    /// Whether the figures of other processes are included, as far as the store has them.
    pub(crate) shares_figures: bool,
    pub(crate) store: String,
    pub(crate) store_degraded: Option<&'static str>,
    pub(crate) records_messages: bool,
    pub(crate) draining: bool,
    pub(crate) in_flight: u64,
}

/// The JSON form of a [`Tally`]. Unknown values are null.
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
    /// Net of summarizer costs; negative if editing cost more than it saved.
    avoided_usd: Option<f64>,
    unpriced: u64,
    masked: u64,
    trimmed: u64,
    folded: u64,
    dropped: u64,
    /// Messages, each counted once: the four above count one in every request.
    left_out: u64,
    folds: u64,
    degraded: u64,
    refusals: u64,
    overhead_p50_us: Option<f64>,
    overhead_p99_us: Option<f64>,
    /// What upstreams answered with an error, broke off, or did not answer.
    errors: u64,
    rate_limited: u64,
    latency_p50_us: Option<f64>,
    latency_p99_us: Option<f64>,
    /// Requests whose plan was only observed, and what it would have done: tokens, cost, savings and refusals. Not applied.
    observed: u64,
    would_tokens_after: u64,
    would_cost_usd: Option<f64>,
    would_avoid_usd: Option<f64>,
    would_refuse: u64,
}

/// The figures of one route or model.
#[derive(Clone, Debug, Serialize)]
struct NamedFigures {
    name: String,
    #[serde(flatten)]
    figures: Figures,
}

/// The number of requests with one reason or code.
#[derive(Clone, Debug, Serialize)]
struct ReasonCount {
    name: &'static str,
    count: u64,
}

/// One step with its start time.
#[derive(Clone, Debug, Serialize)]
struct Point {
    t: u64,
    #[serde(flatten)]
    figures: Figures,
}

/// The figures of a range: in total, by route and by model.
#[derive(Clone, Debug, Serialize)]
struct RangeFigures {
    totals: Figures,
    routes: Vec<NamedFigures>,
    models: Vec<NamedFigures>,
    degraded: Vec<ReasonCount>,
    refusals: Vec<ReasonCount>,
    outcomes: Vec<ReasonCount>,
    /// Answers of upstreams by the class of their status.
    statuses: Vec<ReasonCount>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Overview {
    now: u64,
    range: &'static str,
    step: u64,
    process: Process,
    /// When the figures of other processes, or of earlier ones, changed last: 0 if there are none. Then the whole series may be another.
    others_changed: u64,
    #[serde(flatten)]
    figures: RangeFigures,
    /// One array per figure, plus `t` with the start of each step: the columns of a plot.
    series: Value,
}

/// An update to an [`Overview`]: the latest step and the new totals.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OverviewUpdate {
    now: u64,
    step: u64,
    process: Process,
    others_changed: u64,
    point: Point,
    #[serde(flatten)]
    figures: RangeFigures,
}

impl Overview {
    pub(crate) fn new(history: &History, query: &OverviewQuery, process: Process, now: u64) -> Overview {
        let (step, count) = query.range.steps();
        let steps = history.steps(query.range, now);
        let first = first_step(step, count, now);
        let by_step: BTreeMap<u64, Tally> =
            steps.iter().map(|(at, tallies)| (*at, total(tallies.iter(), query))).collect();
        let empty = Tally::default();
        let times = (0..count).map(|number| first + number * step);
        let points = times.map(|t| Point::new(t, by_step.get(&t).unwrap_or(&empty)));
        let series = columns(points);
        Overview {
            now,
            range: query.range.name(),
            step,
            process,
            others_changed: history.others_changed(),
            figures: RangeFigures::new(&steps, query),
            series,
        }
    }
}

impl OverviewUpdate {
    pub(crate) fn new(
        history: &History,
        query: &OverviewQuery,
        process: Process,
        now: u64,
    ) -> OverviewUpdate {
        let (step, _) = query.range.steps();
        let steps = history.steps(query.range, now);
        // The last step is sent again while it grows.
        let t = now - now % step;
        let newest = steps.last().filter(|(at, _)| *at >= t);
        let tally = newest.map(|(_, tallies)| total(tallies.iter(), query)).unwrap_or_default();
        OverviewUpdate {
            now,
            step,
            process,
            others_changed: history.others_changed(),
            point: Point::new(t, &tally),
            figures: RangeFigures::new(&steps, query),
        }
    }
}

impl Point {
    fn new(t: u64, tally: &Tally) -> Point {
        Point { t, figures: Figures::new(tally) }
    }
}

impl RangeFigures {
    fn new(steps: &[(u64, Arc<StepTallies>)], query: &OverviewQuery) -> RangeFigures {
        let mut series: BTreeMap<&Arc<SeriesKey>, Tally> = BTreeMap::new();
        for (key, tally) in steps.iter().flat_map(|(_, tallies)| tallies.iter()) {
            let sum = series.entry(key).or_default();
            *sum = sum.plus(tally);
        }
        let totals = total(series.iter().map(|(key, tally)| (*key, tally)), query);
        // The route table ignores the route filter and the model table the model filter, so that each still
        // lists every choice.
        let by_route = OverviewQuery { route: None, ..query.clone() };
        let by_model = OverviewQuery { model: None, ..query.clone() };
        let counts = |by_reason: &BTreeMap<&'static str, u64>| {
            by_reason.iter().map(|(name, count)| ReasonCount { name, count: *count }).collect()
        };
        RangeFigures {
            routes: grouped(&series, &by_route, |key| &key.route),
            models: grouped(&series, &by_model, |key| &key.model),
            degraded: counts(&totals.degraded),
            refusals: counts(&totals.refusals),
            outcomes: counts(&totals.outcomes),
            statuses: counts(&totals.statuses),
            totals: Figures::new(&totals),
        }
    }
}

fn grouped(
    series: &BTreeMap<&Arc<SeriesKey>, Tally>,
    query: &OverviewQuery,
    name: fn(&SeriesKey) -> &String,
) -> Vec<NamedFigures> {
    let mut sums: BTreeMap<&String, Tally> = BTreeMap::new();
    for (key, tally) in series.iter().filter(|(key, _)| query.matches(key)) {
        let sum = sums.entry(name(key)).or_default();
        *sum = sum.plus(tally);
    }
    sums.into_iter()
        .map(|(name, tally)| NamedFigures { name: name.clone(), figures: Figures::new(&tally) })
        .collect()
}

fn total<'a>(tallies: impl Iterator<Item = (&'a Arc<SeriesKey>, &'a Tally)>, query: &OverviewQuery) -> Tally {
    tallies.filter(|(key, _)| query.matches(key)).fold(Tally::default(), |sum, (_, tally)| sum.plus(tally))
}

impl OverviewQuery {
    fn matches(&self, key: &SeriesKey) -> bool {
        let is = |wanted: &Option<String>, name: &String| wanted.as_ref().is_none_or(|wanted| wanted == name);
        is(&self.route, &key.route) && is(&self.model, &key.model)
    }
}

fn errors(tally: &Tally) -> u64 {
    let of = |outcome: Outcome| tally.outcomes.get(outcome.name()).copied().unwrap_or(0);
    of(Outcome::UpstreamError) + of(Outcome::UpstreamBroke)
}

impl Figures {
    fn new(tally: &Tally) -> Figures {
        let costs = tally.costs();
        let summarizer_cost_usd = tally.summarizer_cost();
        let (observed_billed, observed_planned) = tally.observed_costs();
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
            trimmed: tally.trimmed,
            folded: tally.folded,
            dropped: tally.dropped,
            left_out: tally.newly_left_out,
            folds: tally.folds,
            degraded: tally.degraded.values().sum(),
            refusals: tally.refusals.values().sum(),
            overhead_p50_us: tally.overhead_us(0.5).map(f64::round),
            overhead_p99_us: tally.overhead_us(0.99).map(f64::round),
            errors: errors(tally),
            rate_limited: tally.rate_limited,
            observed: tally.observed,
            would_tokens_after: tally.tokens_after - tally.observed_before.min(tally.tokens_after)
                + tally.observed_after,
            would_cost_usd: costs.map(|(billed, _)| billed - observed_billed + observed_planned),
            would_avoid_usd: costs.map(|_| observed_billed - observed_planned),
            would_refuse: tally.observed_refusals,
            latency_p50_us: tally.latency_us(0.5).map(f64::round),
            latency_p99_us: tally.latency_us(0.99).map(f64::round),
        }
    }
}

/// Transposes points into one array per member.
fn columns(points: impl Iterator<Item = Point>) -> Value {
    let mut columns: Map<String, Value> = Map::new();
    for point in points {
        // A `Point` always serializes to an object.
        let Ok(Value::Object(point)) = serde_json::to_value(point) else { continue };
        for (name, value) in point {
            if let Value::Array(column) = columns.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                column.push(value);
            }
        }
    }
    Value::Object(columns)
}
