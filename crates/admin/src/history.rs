//! Request totals of this process over time.
//!
//! The tallies are sampled every two seconds, and each increase is kept twice: in steps of two seconds for 15
//! minutes, and in steps of one minute for a day. Steps without requests are not stored.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_telemetry::{ModelTally, Tally};
use tokio::sync::watch;

/// How often the tallies are sampled.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);

const FINE_STEP: u64 = 2_000;
const COARSE_STEP: u64 = 60_000;
const FINE_STEPS: u64 = 450;
const COARSE_STEPS: u64 = 1_440;

/// The maximum number of route and model combinations kept apart in one step; the rest are summed under
/// [`OVERFLOW_NAME`]. A day has 1,440 steps, so this bounds memory.
const MAX_SERIES_PER_STEP: usize = 32;
const OVERFLOW_NAME: &str = "other";

/// The time range of an overview.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Range {
    #[default]
    QuarterHour,
    Hour,
    SixHours,
    Day,
}

impl Range {
    pub(crate) const NAMES: [(&str, Range); 4] =
        [("15m", Range::QuarterHour), ("1h", Range::Hour), ("6h", Range::SixHours), ("24h", Range::Day)];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Range::QuarterHour => "15m",
            Range::Hour => "1h",
            Range::SixHours => "6h",
            Range::Day => "24h",
        }
    }

    /// The length of a step in milliseconds, and the number of steps.
    pub(crate) fn steps(self) -> (u64, u64) {
        match self {
            Range::QuarterHour => (FINE_STEP, FINE_STEPS),
            Range::Hour => (COARSE_STEP, 60),
            Range::SixHours => (COARSE_STEP, 360),
            Range::Day => (COARSE_STEP, COARSE_STEPS),
        }
    }
}

/// The increase within one step, by route and model.
pub(crate) type StepTallies = BTreeMap<Arc<SeriesKey>, Tally>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeriesKey {
    pub(crate) route: String,
    pub(crate) model: String,
}

/// Steps by start time, oldest first. Only the last one changes, by copy on write, so that readers keep a
/// consistent copy.
type Steps = VecDeque<(u64, Arc<StepTallies>)>;

#[derive(Debug)]
pub(crate) struct History {
    state: Mutex<HistoryState>,
    /// The time of the latest sample; 0 before the first.
    sampled_at: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct HistoryState {
    /// The totals at the previous sample.
    previous: BTreeMap<Arc<SeriesKey>, Tally>,
    fine: Steps,
    coarse: Steps,
}

impl History {
    pub(crate) fn new() -> History {
        History { state: Mutex::default(), sampled_at: watch::Sender::new(0) }
    }

    /// Returns a receiver that is notified after each sample.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.sampled_at.subscribe()
    }

    /// Adds the increase since the previous sample. `now` is in milliseconds since 1970.
    pub(crate) fn record(&self, now: u64, tallies: Vec<ModelTally>) {
        let mut state = self.state();
        for ModelTally { route, model, tally } in tallies {
            let key = Arc::new(SeriesKey { route, model });
            let increase = tally.since(state.previous.get(&key).unwrap_or(&Tally::default()));
            if increase.is_empty() {
                continue;
            }
            let HistoryState { fine, coarse, .. } = &mut *state;
            add(fine, now - now % FINE_STEP, &key, &increase);
            add(coarse, now - now % COARSE_STEP, &key, &increase);
            state.previous.insert(key, tally);
        }
        drop_before(&mut state.fine, now.saturating_sub(FINE_STEP * FINE_STEPS));
        drop_before(&mut state.coarse, now.saturating_sub(COARSE_STEP * COARSE_STEPS));
        drop(state);
        // Unlike `send`, this does not fail without subscribers.
        self.sampled_at.send_replace(now);
    }

    /// Returns the non-empty steps of a range with their start times, oldest first. They are shared, not
    /// copied.
    pub(crate) fn steps(&self, range: Range, now: u64) -> Vec<(u64, Arc<StepTallies>)> {
        let (step, count) = range.steps();
        let first = first_step(step, count, now);
        let state = self.state();
        let steps = if step == FINE_STEP { &state.fine } else { &state.coarse };
        steps.iter().filter(|(at, _)| *at >= first).cloned().collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, HistoryState> {
        // No code that holds the lock can panic between two consistent states.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of the first of `count` steps that end with the step containing `now`.
pub(crate) fn first_step(step: u64, count: u64, now: u64) -> u64 {
    (now - now % step).saturating_sub(step * count.saturating_sub(1))
}

fn add(steps: &mut Steps, at: u64, key: &Arc<SeriesKey>, increase: &Tally) {
    // If the clock was set back, the increase goes into the last step.
    if steps.back().is_none_or(|(last, _)| *last < at) {
        steps.push_back((at, Arc::default()));
    }
    let Some((_, step)) = steps.back_mut() else { return };
    let step = Arc::make_mut(step);
    let key = if step.contains_key(key) || step.len() < MAX_SERIES_PER_STEP {
        key.clone()
    } else {
        Arc::new(SeriesKey { route: OVERFLOW_NAME.to_owned(), model: OVERFLOW_NAME.to_owned() })
    };
    let sum = step.entry(key).or_default();
    *sum = sum.plus(increase);
}

fn drop_before(steps: &mut Steps, before: u64) {
    while steps.front().is_some_and(|(at, _)| *at < before) {
        steps.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallied(route: &str, model: &str, requests: u64) -> ModelTally {
        let tally = Tally { requests, ..Tally::default() };
        ModelTally { route: route.to_owned(), model: model.to_owned(), tally }
    }

    fn requests(steps: &[(u64, Arc<StepTallies>)]) -> Vec<(u64, u64)> {
        steps.iter().map(|(at, tallies)| (*at, tallies.values().map(|tally| tally.requests).sum())).collect()
    }

    /// Far from 1970, at the start of a minute.
    const START: u64 = 60_000 * 30_000_000;

    #[test]
    fn an_increase_is_stored_in_its_step_and_empty_steps_are_not() {
        let history = History::new();
        history.record(START, vec![tallied("r", "m", 0)]);
        history.record(START + 2_000, vec![tallied("r", "m", 3)]);
        history.record(START + 4_000, vec![tallied("r", "m", 3)]);
        history.record(START + 6_100, vec![tallied("r", "m", 4), tallied("r", "n", 2)]);
        let now = START + 6_500;
        assert_eq!(
            requests(&history.steps(Range::QuarterHour, now)),
            [(START + 2_000, 3), (START + 6_000, 3)]
        );
        assert_eq!(requests(&history.steps(Range::Hour, now)), [(START, 6)]);
        // Setting the clock back loses nothing.
        history.record(START, vec![tallied("r", "m", 5)]);
        assert_eq!(requests(&history.steps(Range::Hour, now)), [(START, 7)]);
    }

    #[test]
    fn old_steps_are_dropped() {
        let history = History::new();
        let day = 24 * 60 * 60_000;
        for hour in 0..30 {
            history.record(START + hour * 3_600_000, vec![tallied("r", "m", hour + 1)]);
        }
        let now = START + 29 * 3_600_000;
        assert_eq!(history.steps(Range::QuarterHour, now).len(), 1);
        let steps = history.steps(Range::Day, now);
        assert!(steps.iter().all(|(at, _)| now - at < day) && steps.len() == 24, "{}", steps.len());
        assert_eq!(history.steps(Range::SixHours, now).len(), 6);
        assert!(history.state().coarse.len() <= 25 && history.state().fine.len() == 1);
    }

    #[test]
    fn excess_series_share_one_overflow_entry() {
        let history = History::new();
        let many = (0..100).map(|number| tallied("r", &format!("m{number}"), 1)).collect();
        history.record(START, many);
        let steps = history.steps(Range::QuarterHour, START);
        assert_eq!((steps[0].1.len(), requests(&steps)), (MAX_SERIES_PER_STEP + 1, vec![(START, 100)]));
    }

    #[tokio::test]
    async fn subscribers_are_notified_of_each_sample() {
        let history = History::new();
        let mut sampled_at = history.subscribe();
        history.record(START, Vec::new());
        sampled_at.changed().await.unwrap();
        assert_eq!(*sampled_at.borrow(), START);
    }
}
