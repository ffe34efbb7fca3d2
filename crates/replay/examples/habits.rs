//! Prints what clients with every habit are billed, relative to going direct.
//!
//! `cargo run --release -p tidegate-replay --example habits [RUNS [SEED [TABLE]]]`: this many runs, the first with this seed; all tables, or
//! one of `defaults`, `explicit`, `folds` and `windows`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tables for the documentation")]

#[path = "../tests/habits/simulation.rs"]
#[allow(dead_code, reason = "some figures are only checked")]
mod simulation;

use simulation::{AT_DEFAULTS, Bill, EXPLICIT, FOLDS, PRICES, Scale, Study, WINDOWS, bills};
use tidegate_testkit::Habit;

fn main() {
    let number =
        |at: usize, default| std::env::args().nth(at).map_or(default, |number| number.parse().unwrap());
    let (runs, first) = (number(1, 100), number(2, 1));
    let table = std::env::args().nth(3);
    let scale = Scale { seeds: first..first + runs, turns: (20, 150), output: 600.0 };
    let prints = |name: &str, title: &str| {
        let is_wanted = table.as_deref().is_none_or(|table| table == name);
        if is_wanted {
            println!("{title}:\n");
        }
        is_wanted
    };
    if prints("defaults", "Masking at its defaults, and what it saves, of what it saves the verbatim client")
    {
        by_price(&Study { policies: &["raw", "masking"], ..AT_DEFAULTS }, &scale);
    }
    if prints("explicit", "The same before explicit breakpoints") {
        by_price(&Study { policies: &["raw", "masking"], ..EXPLICIT }, &scale);
    }
    // Fewer tokens: no single message may fill a window.
    let scale = Scale { output: 200.0, ..scale };
    if prints("folds", "Summaries from 6,000 tokens on") {
        by_price(&Study { policies: &["raw", "summarization"], ..FOLDS }, &scale);
    }
    if prints("windows", "Windows of 8,000 tokens") {
        windows(&scale);
    }
}

/// One row for each habit, and one column for each price.
fn by_price(study: &Study, scale: &Scale) {
    println!("| habit | ×{} | saves, of verbatim |", PRICES.join(" | ×"));
    println!("| --- |{}", " --- |".repeat(PRICES.len() + 1));
    let saved = |bills: &[Vec<Bill>]| -> Vec<f64> { bills.iter().map(|bills| bills[1].saved()).collect() };
    let verbatim = saved(&bills(study, Habit::Verbatim, scale));
    for habit in Habit::ALL {
        let bills = bills(study, habit, scale);
        let cell = |bills: &Vec<Bill>| format!("{:.3} ({:.2})", bills[1].mean(), bills[1].worst());
        let cells: Vec<String> = bills.iter().map(cell).collect();
        let shares = saved(&bills).into_iter().zip(&verbatim).map(|(saved, verbatim)| saved / verbatim);
        let least = 100.0 * shares.fold(f64::INFINITY, f64::min);
        println!("| {} | {} | {least:.0} % |", habit.name(), cells.join(" | "));
    }
}

fn windows(scale: &Scale) {
    println!("| habit | requests cut | prefix changed | billed, ×{} |", PRICES.join(" | ×"));
    println!("| --- |{}", " --- |".repeat(PRICES.len() + 2));
    for habit in Habit::ALL {
        let bills = bills(&WINDOWS, habit, scale);
        let window = &bills[0][1];
        let cells: Vec<String> = bills.iter().map(|bills| format!("{:.3}", bills[1].mean())).collect();
        println!("| {} | {} | {} | {} |", habit.name(), window.edited, window.moves, cells.join(" | "));
    }
}
