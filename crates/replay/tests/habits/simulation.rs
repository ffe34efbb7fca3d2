//! Clients with every habit against the model of a provider's cache, at defaults, where the budget forces nothing.

use std::ops::Range;
use tidegate_config::{Flags, Settings, Source, load};
use tidegate_replay::{Policy, Recorded, Regime, Setup, Stage};
use tidegate_testkit::{Habit, Trajectory};

/// Cached input at these multiples of the input price; the last also with dearer writes.
pub(crate) const PRICES: [&str; 5] = ["1", "0.5", "0.25", "0.1", "0.1/1.25"];

/// Every strategy at its defaults. The first is the client that goes direct.
pub(crate) const POLICIES: [&str; 5] = ["raw", "masking", "summarization", "hybrid", "window"];

/// Which runs, and how long they are.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// One run each.
    pub(crate) seeds: Range<u64>,
    pub(crate) turns: (usize, usize),
    /// The mean length of a tool output in tokens.
    pub(crate) output: f64,
}

/// What the runs of one habit cost under one policy at one price, in tokens at the plain input price.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bill {
    /// Of each run, direct and through Tidegate.
    pub(crate) runs: Vec<(f64, f64)>,
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
pub(crate) fn bills(habit: Habit, scale: &Scale) -> Vec<Vec<Bill>> {
    let setup = setup();
    let mut stage = Stage::new(&setup);
    let mut bills = vec![vec![Bill::default(); POLICIES.len()]; PRICES.len()];
    for seed in scale.seeds.clone() {
        let bodies = habit.requests(&trajectory(seed, scale), seed).into_iter().map(Into::into).collect();
        let replayed = stage.replay(&Recorded::from_bodies(format!("{habit:?}-{seed}"), bodies));
        for (price, figures) in replayed.figures.iter().enumerate() {
            let direct = figures[0].cost.units;
            for (policy, figures) in figures.iter().enumerate() {
                assert_eq!((figures.unanswered(), figures.unreadable), (0, 0), "{habit:?} {seed}");
                bills[price][policy].runs.push((direct, figures.cost.units));
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
    let model = "gpt-4.1".to_owned();
    Trajectory { model, turns, output: scale.output, system: 1_100, question_every, ..Trajectory::default() }
}

fn setup() -> Setup {
    let settings: Settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
    let policies: Vec<Policy> = POLICIES.iter().map(|name| name.parse().unwrap()).collect();
    let regimes: Vec<Regime> = PRICES.iter().map(|price| price.parse().unwrap()).collect();
    Setup { settings, main: policies.len(), policies, regimes, gap: 20_000 }
}
