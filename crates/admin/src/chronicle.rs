//! What this process has counted, over time.
//!
//! Every two seconds the tallies are looked at, and what has come since is kept twice: in steps of two seconds for a quarter of an hour,
//! and in steps of a minute for a day. A step in which nothing came takes no room.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_telemetry::{Tallied, Tally};
use tokio::sync::watch;

/// How often the tallies are looked at.
pub(crate) const TICK: Duration = Duration::from_secs(2);

const FINE_STEP: u64 = 2_000;
const COARSE_STEP: u64 = 60_000;
const FINE_STEPS: u64 = 450;
const COARSE_STEPS: u64 = 1_440;

/// So many routes and models are told apart in one step. There are seldom more than a few, and each of a day's steps holds them all.
const MOST_PAIRS: usize = 32;
const OTHERS: &str = "other";

/// How far back somebody looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Range {
    #[default]
    Quarter,
    Hour,
    SixHours,
    Day,
}

impl Range {
    pub(crate) const NAMES: [(&str, Range); 4] =
        [("15m", Range::Quarter), ("1h", Range::Hour), ("6h", Range::SixHours), ("24h", Range::Day)];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Range::Quarter => "15m",
            Range::Hour => "1h",
            Range::SixHours => "6h",
            Range::Day => "24h",
        }
    }

    /// The length of a step in milliseconds, and how many of them there are.
    pub(crate) fn steps(self) -> (u64, u64) {
        match self {
            Range::Quarter => (FINE_STEP, FINE_STEPS),
            Range::Hour => (COARSE_STEP, 60),
            Range::SixHours => (COARSE_STEP, 360),
            Range::Day => (COARSE_STEP, COARSE_STEPS),
        }
    }
}

/// What came in one step, by route and model.
pub(crate) type Came = BTreeMap<Arc<Pair>, Tally>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) route: String,
    pub(crate) model: String,
}

/// A step is changed while it is the last one, and whoever looks at it then keeps what it was.
type Steps = VecDeque<(u64, Arc<Came>)>;

#[derive(Debug)]
pub(crate) struct Chronicle {
    state: Mutex<State>,
    ticks: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// What the tallies said when they were last looked at.
    seen: BTreeMap<Arc<Pair>, Tally>,
    fine: Steps,
    coarse: Steps,
}

impl Chronicle {
    pub(crate) fn new() -> Chronicle {
        Chronicle { state: Mutex::default(), ticks: watch::Sender::new(0) }
    }

    /// Who waits for it learns when there is something new.
    pub(crate) fn ticks(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    /// Keeps what has come since the last time. `now` is milliseconds since 1970.
    pub(crate) fn note(&self, now: u64, tallies: Vec<Tallied>) {
        let mut state = self.state();
        for Tallied { route, model, tally } in tallies {
            let pair = Arc::new(Pair { route, model });
            let came = tally.since(state.seen.get(&pair).unwrap_or(&Tally::default()));
            if came.is_empty() {
                continue;
            }
            let State { fine, coarse, .. } = &mut *state;
            add(fine, now - now % FINE_STEP, &pair, &came);
            add(coarse, now - now % COARSE_STEP, &pair, &came);
            state.seen.insert(pair, tally);
        }
        forget(&mut state.fine, now.saturating_sub(FINE_STEP * FINE_STEPS));
        forget(&mut state.coarse, now.saturating_sub(COARSE_STEP * COARSE_STEPS));
        drop(state);
        // Nobody may be listening.
        self.ticks.send_replace(now);
    }

    /// The steps of a range that something came in, each with when it began, the oldest first. They are shared, not copied.
    pub(crate) fn steps(&self, range: Range, now: u64) -> Vec<(u64, Arc<Came>)> {
        let (step, count) = range.steps();
        let first = first_step(step, count, now);
        let state = self.state();
        let steps = if step == FINE_STEP { &state.fine } else { &state.coarse };
        steps.iter().filter(|(at, _)| *at >= first).cloned().collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing between two consistent states can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the first of so many steps began, of which the last one is the one that is now.
pub(crate) fn first_step(step: u64, count: u64, now: u64) -> u64 {
    (now - now % step).saturating_sub(step * count.saturating_sub(1))
}

fn add(steps: &mut Steps, at: u64, pair: &Arc<Pair>, came: &Tally) {
    // A clock that was set back adds to the last step.
    if steps.back().is_none_or(|(last, _)| *last < at) {
        steps.push_back((at, Arc::default()));
    }
    let Some((_, step)) = steps.back_mut() else { return };
    let step = Arc::make_mut(step);
    let pair = if step.contains_key(pair) || step.len() < MOST_PAIRS {
        pair.clone()
    } else {
        Arc::new(Pair { route: OTHERS.to_owned(), model: OTHERS.to_owned() })
    };
    let sum = step.entry(pair).or_default();
    *sum = sum.plus(came);
}

fn forget(steps: &mut Steps, before: u64) {
    while steps.front().is_some_and(|(at, _)| *at < before) {
        steps.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallied(route: &str, model: &str, requests: u64) -> Tallied {
        let tally = Tally { requests, ..Tally::default() };
        Tallied { route: route.to_owned(), model: model.to_owned(), tally }
    }

    fn requests(steps: &[(u64, Arc<Came>)]) -> Vec<(u64, u64)> {
        steps.iter().map(|(at, came)| (*at, came.values().map(|tally| tally.requests).sum())).collect()
    }

    /// Far from 1970, and where a minute begins.
    const START: u64 = 60_000 * 30_000_000;

    #[test]
    fn what_came_is_kept_in_its_step_and_nothing_else_is() {
        let chronicle = Chronicle::new();
        chronicle.note(START, vec![tallied("r", "m", 0)]);
        chronicle.note(START + 2_000, vec![tallied("r", "m", 3)]);
        chronicle.note(START + 4_000, vec![tallied("r", "m", 3)]);
        chronicle.note(START + 6_100, vec![tallied("r", "m", 4), tallied("r", "n", 2)]);
        let now = START + 6_500;
        assert_eq!(requests(&chronicle.steps(Range::Quarter, now)), [(START + 2_000, 3), (START + 6_000, 3)]);
        assert_eq!(requests(&chronicle.steps(Range::Hour, now)), [(START, 6)]);
        // A clock that goes back loses nothing.
        chronicle.note(START, vec![tallied("r", "m", 5)]);
        assert_eq!(requests(&chronicle.steps(Range::Hour, now)), [(START, 7)]);
    }

    #[test]
    fn what_is_too_old_is_forgotten() {
        let chronicle = Chronicle::new();
        let day = 24 * 60 * 60_000;
        for hour in 0..30 {
            chronicle.note(START + hour * 3_600_000, vec![tallied("r", "m", hour + 1)]);
        }
        let now = START + 29 * 3_600_000;
        assert_eq!(chronicle.steps(Range::Quarter, now).len(), 1);
        let steps = chronicle.steps(Range::Day, now);
        assert!(steps.iter().all(|(at, _)| now - at < day) && steps.len() == 24, "{}", steps.len());
        assert_eq!(chronicle.steps(Range::SixHours, now).len(), 6);
        assert!(chronicle.state().coarse.len() <= 25 && chronicle.state().fine.len() == 1);
    }

    #[test]
    fn more_models_than_anybody_uses_share_one_row() {
        let chronicle = Chronicle::new();
        let many = (0..100).map(|number| tallied("r", &format!("m{number}"), 1)).collect();
        chronicle.note(START, many);
        let steps = chronicle.steps(Range::Quarter, START);
        assert_eq!((steps[0].1.len(), requests(&steps)), (MOST_PAIRS + 1, vec![(START, 100)]));
    }

    #[tokio::test]
    async fn who_listens_is_told() {
        let chronicle = Chronicle::new();
        let mut ticks = chronicle.ticks();
        chronicle.note(START, Vec::new());
        ticks.changed().await.unwrap();
        assert_eq!(*ticks.borrow(), START);
    }
}
