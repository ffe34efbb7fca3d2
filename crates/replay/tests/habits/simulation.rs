//! Clients with every habit against the model of a provider's cache.

use std::ops::Range;
use tidegate_config::{Flags, Settings, Source, load};
use tidegate_replay::{Policy, Recorded, Regime, Setup, Stage};
use tidegate_testkit::{Breakpoints, Habit, Trajectory};

/// Cached input at these multiples of the input price; the last also with dearer writes.
pub(crate) const PRICES: [&str; 5] = ["1", "0.5", "0.25", "0.1", "0.1/1.25"];

/// What is billed: whose cache, which settings, and which strategies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Study {
    pub(crate) model: &'static str,
    pub(crate) breakpoints: Breakpoints,
    pub(crate) settings: &'static str,
    /// The first is the client that goes direct.
    pub(crate) policies: &'static [&'static str],
    /// Whether a run is left out in which one message alone is too long for the budget.
    pub(crate) may_refuse: bool,
}

/// Every strategy at its defaults, where the budget forces nothing.
pub(crate) const AT_DEFAULTS: Study = Study {
    model: "gpt-4.1",
    breakpoints: Breakpoints::AsTheHabit,
    settings: "",
    policies: &["raw", "masking", "summarization", "hybrid", "window"],
    may_refuse: false,
};

/// The same where only what stands before the client's breakpoints is cached.
pub(crate) const EXPLICIT: Study = Study {
    model: "claude-sonnet-4-5",
    breakpoints: Breakpoints::Newest,
    settings: "[models.\"claude-*\"]\nwindow = 1_000_000\n",
    ..AT_DEFAULTS
};

/// Summaries are due all the time, and made when they pay.
pub(crate) const FOLDS: Study = Study {
    settings: "[context.fold]\nwhen = { tokens = 6_000 }\npace = \"break_even\"\n",
    policies: &["raw", "summarization", "hybrid"],
    ..AT_DEFAULTS
};

/// No request may be longer than this.
pub(crate) const MOST: u64 = 8_000;

/// Windows that have to be cut.
pub(crate) const WINDOWS: Study = Study {
    settings: "[context.budget]\nmax_input = 8_000\n",
    policies: &["raw", "window"],
    may_refuse: true,
    ..AT_DEFAULTS
};

/// Which runs, and how long they are.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// One run each.
    pub(crate) seeds: Range<u64>,
    pub(crate) turns: (usize, usize),
    /// The mean length of a tool output in tokens.
    pub(crate) output: f64,
}

/// What the runs of one habit cost under one policy at one price, in dollars: models may differ in price.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bill {
    /// Of each run, direct and through Tidegate.
    pub(crate) runs: Vec<(f64, f64)>,
    /// The requests of all runs that were forwarded edited.
    pub(crate) edited: u64,
    /// Those that changed a prefix that the provider may have cached, more often than the client going direct does.
    pub(crate) moves: u64,
    pub(crate) summaries: u64,
    /// The tokens of the longest request.
    pub(crate) peak: u64,
}

impl Bill {
    /// The mean over the runs of what was billed, relative to going direct.
    pub(crate) fn mean(&self) -> f64 {
        self.runs.iter().map(|(direct, billed)| billed / direct).sum::<f64>() / self.runs.len() as f64
    }

    /// The most that a run was billed, relative to going direct.
    pub(crate) fn worst(&self) -> f64 {
        self.runs.iter().map(|(direct, billed)| billed / direct).fold(0.0, f64::max)
    }

    /// What all runs saved together.
    pub(crate) fn saved(&self) -> f64 {
        self.runs.iter().map(|(direct, billed)| direct - billed).sum()
    }
}

/// The bills of one habit, by price and then by policy. The first policy is the client that goes direct.
pub(crate) fn bills(study: &Study, habit: Habit, scale: &Scale) -> Vec<Vec<Bill>> {
    let setup = setup(study);
    let mut stage = Stage::new(&setup);
    let mut bills = vec![vec![Bill::default(); study.policies.len()]; PRICES.len()];
    for seed in scale.seeds.clone() {
        let run = Trajectory { model: study.model.to_owned(), ..trajectory(seed, scale) };
        let bodies = habit.requests_with(&run, seed, study.breakpoints).into_iter().map(Into::into).collect();
        let replayed = stage.replay(&Recorded::from_bodies(format!("{habit:?}-{seed}"), bodies));
        if study.may_refuse && replayed.figures.iter().flatten().any(|figures| figures.refused > 0) {
            continue;
        }
        for (bills, figures) in bills.iter_mut().zip(&replayed.figures) {
            let (direct, moves) = (figures[0].cost.usd, figures[0].moves);
            for (bill, figures) in bills.iter_mut().zip(figures) {
                let failed = (figures.unanswered(), figures.unreadable, figures.cost.unpriced);
                assert_eq!(failed, (0, 0, 0), "{habit:?} {seed}");
                bill.runs.push((direct, figures.cost.usd));
                bill.edited += figures.edited;
                bill.moves += figures.moves.saturating_sub(moves);
                bill.summaries += figures.summaries;
                bill.peak = bill.peak.max(figures.peak);
            }
        }
    }
    bills
}

/// Lengths are spread evenly. Every other run is a chat with a question every few turns.
fn trajectory(seed: u64, scale: &Scale) -> Trajectory {
    let (shortest, longest) = scale.turns;
    let share = (seed as f64 * 0.618_034).fract();
    let turns = shortest + (share * (longest - shortest + 1) as f64) as usize;
    let question_every = if seed.is_multiple_of(2) { 3 } else { 0 };
    Trajectory { turns, output: scale.output, system: 1_100, question_every, ..Trajectory::default() }
}

fn setup(study: &Study) -> Setup {
    let source = Source::new("proxy.toml", study.settings);
    let settings: Settings = load(source, &Flags::default(), &|_| None).unwrap();
    let policies: Vec<Policy> = study.policies.iter().map(|name| name.parse().unwrap()).collect();
    let regimes: Vec<Regime> = PRICES.iter().map(|price| price.parse().unwrap()).collect();
    Setup { settings, main: policies.len(), policies, regimes, gap: 20_000 }
}
