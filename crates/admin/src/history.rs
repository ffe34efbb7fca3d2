//! Request totals over time.
//!
//! The tallies are sampled every two seconds, and each increase is kept twice: in steps of two seconds for 15
//! minutes, and in steps of one minute for a day. Steps without requests are not stored.
//!
//! Other processes, and earlier ones, have told the store what they counted in each minute (`shared_history.rs`).
//! That is added here, in steps of two seconds by spreading it over the minute.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_telemetry::{ModelTally, Tally};
use tokio::sync::watch;

/// How often the tallies are sampled.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);

const FINE_STEP: u64 = 2_000;
pub(crate) const COARSE_STEP: u64 = 60_000;
const FINE_STEPS: u64 = 450;
pub(crate) const COARSE_STEPS: u64 = 1_440;

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
    /// What other processes have counted, by minute.
    others: BTreeMap<u64, Arc<StepTallies>>,
    /// When `others` changed last; 0 if it is empty.
    others_changed: u64,
    /// The minutes that have changed and that the store does not have.
    unsaved: BTreeSet<u64>,
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
            let minute = add(coarse, now - now % COARSE_STEP, &key, &increase);
            state.previous.insert(key, tally);
            state.unsaved.insert(minute);
        }
        drop_before(&mut state.fine, now.saturating_sub(FINE_STEP * FINE_STEPS));
        let first = now.saturating_sub(COARSE_STEP * COARSE_STEPS);
        drop_before(&mut state.coarse, first);
        state.unsaved = state.unsaved.split_off(&first);
        state.others = state.others.split_off(&first);
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
        let own = if step == FINE_STEP { &state.fine } else { &state.coarse };
        let mut steps: BTreeMap<u64, Arc<StepTallies>> =
            own.iter().filter(|(at, _)| *at >= first).cloned().collect();
        let minutes = state.others.range(first.saturating_sub(COARSE_STEP - step)..=now);
        for (minute, tallies) in minutes {
            if step == COARSE_STEP {
                merge(&mut steps, *minute, tallies);
                continue;
            }
            // Nothing of the minute that is under way lies in the future.
            let parts = (now - minute) / step + 1;
            let parts = parts.min(COARSE_STEP / step);
            for number in 0..parts {
                let at = minute + number * step;
                if at >= first {
                    let part =
                        |(key, tally): (&Arc<SeriesKey>, &Tally)| (key.clone(), tally.part(number, parts));
                    let part: StepTallies =
                        tallies.iter().map(part).filter(|(_, part)| !part.is_empty()).collect();
                    merge(&mut steps, at, &Arc::new(part));
                }
            }
        }
        steps.into_iter().collect()
    }

    /// Replaces what other processes have counted in a minute.
    pub(crate) fn adopt(&self, minute: u64, now: u64, tallies: Vec<ModelTally>) {
        let mut step = StepTallies::new();
        for ModelTally { route, model, tally } in tallies {
            add_to(&mut step, &Arc::new(SeriesKey { route, model }), &tally);
        }
        let mut state = self.state();
        if state.others.get(&minute).is_none_or(|known| **known != step) {
            state.others.insert(minute, Arc::new(step));
            state.others_changed = now;
        }
    }

    /// When what other processes have counted changed last; 0 if there is nothing.
    pub(crate) fn others_changed(&self) -> u64 {
        self.state().others_changed
    }

    /// Takes the minutes that the store does not have, the oldest first, and what this process has counted in them.
    pub(crate) fn take_unsaved(&self) -> Vec<(u64, Vec<ModelTally>)> {
        let mut state = self.state();
        let minutes = std::mem::take(&mut state.unsaved);
        let tallies = |minute: u64| {
            let (_, step) = state.coarse.iter().find(|(at, _)| *at == minute)?;
            let one = |(key, tally): (&Arc<SeriesKey>, &Tally)| ModelTally {
                route: key.route.clone(),
                model: key.model.clone(),
                tally: tally.clone(),
            };
            Some((minute, step.iter().map(one).collect()))
        };
        minutes.into_iter().filter_map(tallies).collect()
    }

    /// The store could not take these minutes.
    pub(crate) fn keep_unsaved(&self, minutes: impl IntoIterator<Item = u64>) {
        self.state().unsaved.extend(minutes);
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

/// Returns the step that the increase went into.
fn add(steps: &mut Steps, at: u64, key: &Arc<SeriesKey>, increase: &Tally) -> u64 {
    // If the clock was set back, the increase goes into the last step.
    if steps.back().is_none_or(|(last, _)| *last < at) {
        steps.push_back((at, Arc::default()));
    }
    let Some((at, step)) = steps.back_mut() else { return at };
    add_to(Arc::make_mut(step), key, increase);
    *at
}

fn merge(steps: &mut BTreeMap<u64, Arc<StepTallies>>, at: u64, tallies: &Arc<StepTallies>) {
    match steps.get_mut(&at) {
        Some(step) => {
            let step = Arc::make_mut(step);
            tallies.iter().for_each(|(key, tally)| add_to(step, key, tally));
        }
        None if tallies.is_empty() => {}
        None => drop(steps.insert(at, tallies.clone())),
    }
}

fn add_to(step: &mut StepTallies, key: &Arc<SeriesKey>, increase: &Tally) {
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
    fn a_minute_of_others_is_spread_over_its_seconds() {
        let history = History::new();
        history.record(START + 61_000, vec![tallied("r", "m", 1)]);
        let now = START + 69_000;
        history.adopt(START, now, vec![tallied("r", "m", 60), tallied("r", "n", 30)]);
        history.adopt(START + 60_000, now, vec![tallied("r", "m", 5)]);
        let steps = history.steps(Range::QuarterHour, now);
        let spread = requests(&steps);
        assert_eq!((spread.len(), &spread[..2]), (35, &[(START, 3), (START + 2_000, 3)][..]));
        assert_eq!(
            &spread[30..32],
            &[(START + 60_000, 2), (START + 62_000, 1)],
            "with what was counted here"
        );
        let sum =
            |steps: &[(u64, Arc<StepTallies>)]| requests(steps).iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(sum(&steps), 96);
        assert_eq!(requests(&history.steps(Range::Day, now)), [(START, 90), (START + 60_000, 6)]);
        // It is replaced as a whole, and dropped after a day.
        history.adopt(START, now, vec![tallied("r", "m", 61)]);
        assert_eq!(requests(&history.steps(Range::Day, now)), [(START, 61), (START + 60_000, 6)]);
        assert_eq!(sum(&history.steps(Range::QuarterHour, START + 15 * 60_000 - 2_000)), 67);
        assert!(sum(&history.steps(Range::QuarterHour, START + 15 * 60_000 + 30_000)) < 67);
        history.record(START + 24 * 60 * 60_000 + 1, vec![]);
        assert_eq!(requests(&history.steps(Range::Day, now)), [(START + 60_000, 6)]);
    }

    #[test]
    fn what_the_store_could_not_take_is_written_later() {
        let history = History::new();
        history.record(START, vec![tallied("r", "m", 1)]);
        history.record(START + 60_000, vec![tallied("r", "m", 3)]);
        let minutes = || -> Vec<(u64, u64)> {
            let requests = |tallies: &[ModelTally]| tallies.iter().map(|one| one.tally.requests).sum();
            history.take_unsaved().iter().map(|(minute, tallies)| (*minute, requests(tallies))).collect()
        };
        assert_eq!(minutes(), [(START, 1), (START + 60_000, 2)]);
        assert_eq!(minutes(), []);
        history.keep_unsaved([START]);
        history.record(START + 61_000, vec![tallied("r", "m", 4)]);
        assert_eq!(minutes(), [(START, 1), (START + 60_000, 3)]);
        history.keep_unsaved([START, START + 60_000]);
        history.record(START + 24 * 60 * 60_000 + 1, vec![]);
        assert_eq!(minutes(), [(START + 60_000, 3)], "a day later");
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
