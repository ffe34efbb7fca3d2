//! Never worse, whatever a client does to its history from request to request.
//!
//! These are a few runs of each habit. `cargo run --release -p tidegate-replay --example habits` prints the tables in the README.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod simulation;

use simulation::{AT_DEFAULTS, Bill, EXPLICIT, FOLDS, MOST, PRICES, Scale, Study, WINDOWS, bills};
use tidegate_testkit::Habit;

/// Other runs than those in the tables.
const SCALE: Scale = Scale { seeds: 7_001..7_005, turns: (20, 80), output: 200.0 };

/// The mean and the worst bill, relative to the same client going direct.
const MEAN: f64 = 1.03;
const WORST: f64 = 1.20;

/// The mean where the client shortens its history soon after a summary was paid for.
const CUT_MEAN: f64 = 1.05;

/// How much of a verbatim client's saving a client saves that leaves its prefix alone. What is folded depends on where a request ends, too.
const MASKED_SHARE: f64 = 0.97;
const FOLDED_SHARE: f64 = 0.9;

/// What is wrong with a bill.
type Faults = Vec<String>;

/// Checks the bills of each habit at each price, beside those of the verbatim client.
fn study(study: &Study, check: impl Fn(Habit, &[Bill], &[Bill]) -> Faults) {
    let verbatim = bills(study, Habit::Verbatim, &SCALE);
    let mut faults = Vec::new();
    for habit in Habit::ALL {
        for (price, (bills, verbatim)) in bills(study, habit, &SCALE).iter().zip(&verbatim).enumerate() {
            let found = check(habit, bills, verbatim).into_iter();
            faults.extend(found.map(|fault| format!("{}, ×{}: {fault}", habit.name(), PRICES[price])));
        }
    }
    assert!(faults.is_empty(), "{}: {faults:#?}", study.model);
}

/// No strategy costs more than going direct, and those that would have to make room edit nothing.
fn faults_at_defaults(habit: Habit, bills: &[Bill], verbatim: &[Bill]) -> Faults {
    let [_, masking, summarization, hybrid, window] = bills else { unreachable!("five policies") };
    assert!(verbatim[1].edited > 0, "nothing is masked");
    assert_eq!(hybrid.runs, masking.runs, "{habit:?}");
    for idle in [summarization, window] {
        assert_eq!((idle.edited, idle.mean(), idle.worst()), (0, 1.0, 1.0), "{habit:?}");
    }
    let mut faults = faults(masking, MEAN);
    if habit.leaves_prefix_alone() {
        faults.extend(missing_share(masking, &verbatim[1], MASKED_SHARE));
    }
    faults
}

fn faults(bill: &Bill, mean: f64) -> Faults {
    let mut faults = Vec::new();
    if bill.mean() > mean {
        faults.push(format!("{:.3} on average", bill.mean()));
    }
    if bill.worst() > WORST {
        faults.push(format!("{:.3} at worst", bill.worst()));
    }
    faults
}

/// Where a verbatim client saves nothing, there is no saving to share.
fn missing_share(bill: &Bill, verbatim: &Bill, share: f64) -> Option<String> {
    let (saved, wanted) = (bill.saved(), share * verbatim.saved());
    (verbatim.saved() > 0.0 && saved < wanted).then(|| format!("saved {saved:.4} instead of {wanted:.4}"))
}

#[test]
fn no_habit_makes_any_strategy_cost_more_than_going_direct() {
    study(&AT_DEFAULTS, faults_at_defaults);
}

#[test]
fn nor_where_only_what_stands_before_breakpoints_is_cached() {
    study(&EXPLICIT, faults_at_defaults);
}

#[test]
fn summaries_are_made_where_they_pay() {
    study(&FOLDS, |habit, bills, verbatim| {
        assert!(verbatim[1..].iter().all(|verbatim| verbatim.summaries > 0), "no summaries");
        let mut found = Vec::new();
        for (bill, verbatim) in bills[1..].iter().zip(&verbatim[1..]) {
            let is_cut = matches!(habit, Habit::Truncation | Habit::Compaction);
            found.extend(faults(bill, if is_cut { CUT_MEAN } else { MEAN }));
            if habit.leaves_prefix_alone() {
                found.extend(missing_share(bill, verbatim, FOLDED_SHARE));
            }
        }
        found
    });
}

#[test]
fn a_window_that_is_cut_stays_as_it_is_for_many_requests() {
    study(&WINDOWS, |_, bills, verbatim| {
        let [_, window] = bills else { unreachable!("two policies") };
        assert!(verbatim[1].edited > 50, "only {} requests are cut", verbatim[1].edited);
        assert!(window.peak <= MOST, "{} tokens", window.peak);
        // A client that keeps its history short is cut a few times only.
        let is_stable = 3 * window.moves <= window.edited.max(20);
        Vec::from_iter((!is_stable).then(|| format!("{} of {} are cut anew", window.moves, window.edited)))
    });
}
