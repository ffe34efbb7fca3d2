//! Never worse, whatever a client does to its history from request to request.
//!
//! These are a few runs of each habit. `cargo run --release -p tidegate-replay --example habits` prints the table in the README.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod simulation;

use simulation::{Bill, POLICIES, PRICES, Scale, bills};
use tidegate_testkit::Habit;

/// Other runs than those in the table.
const SCALE: Scale = Scale { seeds: 7_001..7_005, turns: (20, 80), output: 200.0 };

/// The mean and the worst bill, relative to the same client going direct.
const MEAN: f64 = 1.03;
const WORST: f64 = 1.20;

/// How much of a verbatim client's saving a client saves that leaves its prefix alone.
const SHARE: f64 = 0.97;

#[test]
fn no_habit_makes_any_strategy_cost_more_than_going_direct() {
    let verbatim = bills(Habit::Verbatim, &SCALE);
    for habit in Habit::ALL {
        let bills = bills(habit, &SCALE);
        for (price, (bills, verbatim)) in bills.iter().zip(&verbatim).enumerate() {
            for (policy, (bill, verbatim)) in bills.iter().zip(verbatim).enumerate() {
                let what = format!("{}, ×{}, {}", habit.name(), PRICES[price], POLICIES[policy]);
                check(&what, bill, habit.leaves_prefix_alone().then_some(verbatim));
            }
        }
    }
}

fn check(what: &str, bill: &Bill, verbatim: Option<&Bill>) {
    assert!(bill.mean() <= MEAN, "{what}: {:.3} on average", bill.mean());
    assert!(bill.worst() <= WORST, "{what}: {:.3} at worst", bill.worst());
    // Where a verbatim client saves nothing, there is no saving to share.
    if let Some(verbatim) = verbatim.filter(|verbatim| verbatim.saved() > 0.0) {
        let (saved, wanted) = (bill.saved(), SHARE * verbatim.saved());
        assert!(saved >= wanted, "{what}: saved {saved:.0}, a verbatim client {wanted:.0}");
    }
}
