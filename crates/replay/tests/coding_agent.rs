//! The cost of the profile `coding-agent` on generated agent runs, at every price of cached input: never more than a little above that of
//! unedited requests, and below that of masking alone where results are long.
//!
//! `cargo test -p tidegate-replay --test coding_agent -- --nocapture` prints the table in the documentation.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use bytes::Bytes;
use serde_json::json;
use tidegate_config::{Flags, Source, load};
use tidegate_replay::{Figures, Policy, Recorded, Setup, Stage};
use tidegate_testkit::Trajectory;

const PRICES: [&str; 8] = ["1", "0.5", "0.25", "0.1", "1/1.25", "0.5/1.25", "0.25/1.25", "0.1/1.25"];
const POLICIES: [&str; 4] = ["raw", "masking:break_even", "masking+trim", "coding-agent"];
const MASKING: usize = 1;
const CODING_AGENT: usize = 3;

/// The mean length of a result in tokens, and the lengths of the runs in turns.
const SHAPES: [(f64, [usize; 4]); 3] =
    [(150.0, [6, 12, 24, 40]), (700.0, [6, 12, 24, 40]), (2_000.0, [4, 8, 16, 30])];

const SEEDS: u64 = 3;

fn recorded(run: &Trajectory, seed: u64) -> Recorded {
    let messages = run.messages(seed);
    let requests = (1..messages.len()).filter(|&end| messages[end]["role"] == "assistant");
    let body =
        |end: usize| Bytes::from(json!({ "model": run.model, "messages": &messages[..end] }).to_string());
    Recorded::from_bodies(format!("{}-{seed}", run.turns), requests.map(body).collect())
}

/// The figures of all runs of one shape, by price and policy.
fn replay(setup: &Setup, output: f64, lengths: &[usize]) -> Vec<Vec<Vec<Figures>>> {
    let mut stage = Stage::new(setup);
    let mut all = Vec::new();
    for &turns in lengths {
        let run = Trajectory { turns, output, ..Trajectory::default() };
        all.extend((0..SEEDS).map(|seed| stage.replay(&recorded(&run, seed)).figures));
    }
    all
}

#[test]
fn it_costs_little_more_than_nothing_and_less_than_masking() {
    let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
    let policies: Vec<Policy> = POLICIES.iter().map(|name| name.parse().unwrap()).collect();
    let regimes = PRICES.iter().map(|price| price.parse().unwrap()).collect();
    let setup = Setup { settings, main: policies.len(), policies, regimes, gap: 30_000 };
    for (output, lengths) in SHAPES {
        let runs = replay(&setup, output, &lengths);
        println!("results of {output} tokens in the mean");
        for (price, name) in PRICES.iter().enumerate() {
            let units = |policy: usize| -> f64 { runs.iter().map(|run| run[price][policy].cost.units).sum() };
            let ratios: Vec<f64> = (1..POLICIES.len()).map(|policy| units(policy) / units(0)).collect();
            let ratio =
                |run: &Vec<Vec<Figures>>| run[price][CODING_AGENT].cost.units / run[price][0].cost.units;
            let worst = runs.iter().map(ratio).fold(0.0, f64::max);
            println!("  ×{name:<10} {ratios:.3?}, worst {worst:.3}");
            let (masking, own) = (ratios[MASKING - 1], ratios[CODING_AGENT - 1]);
            assert!(own <= 1.02, "{output} at {name}: {own}");
            assert!(worst <= 1.20, "{output} at {name}: {worst} in one run");
            // Some results are above 1,500 tokens in all but the first shape.
            assert!(output < 500.0 || own < masking, "{output} at {name}: {own}, masking {masking}");
        }
    }
}
