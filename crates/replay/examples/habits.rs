//! Prints what clients with every habit are billed under every strategy, relative to going direct.
//!
//! `cargo run --release -p tidegate-replay --example habits [RUNS [SEED]]`: this many runs, the first with this seed.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a table for the documentation")]

#[path = "../tests/habits/simulation.rs"]
mod simulation;

use simulation::{POLICIES, PRICES, Scale, bills};
use tidegate_testkit::Habit;

fn main() {
    let number =
        |at: usize, default| std::env::args().nth(at).map_or(default, |number| number.parse().unwrap());
    let (runs, first) = (number(1, 100), number(2, 1));
    let scale = Scale { seeds: first..first + runs, turns: (20, 150), output: 600.0 };
    println!("| habit | cached input | {} | masking saves, of verbatim |", POLICIES[1..].join(" | "));
    println!("| --- | --- |{}", " --- |".repeat(POLICIES.len()));
    let verbatim = bills(Habit::Verbatim, &scale);
    for habit in Habit::ALL {
        for ((price, bills), verbatim) in PRICES.iter().zip(bills(habit, &scale)).zip(&verbatim) {
            let cell = |bill: &simulation::Bill| format!("{:.3} ({:.2})", bill.mean(), bill.worst());
            let cells: Vec<String> = bills[1..].iter().map(cell).collect();
            let share = 100.0 * bills[1].saved() / verbatim[1].saved();
            println!("| {} | ×{price} | {} | {share:.0} % |", habit.name(), cells.join(" | "));
        }
    }
}
