//! Agent runs for `tidegate replay`, one conversation a line.
//!
//! `trajectories [--runs 20] [--turns 60] [--output 1500] [--spread 1] [--system 2000] [--question-every 0] [--model gpt-4o]`

#![allow(clippy::print_stdout, reason = "the output is what it is for")]

use std::io::{BufWriter, Write};
use tidegate_testkit::Trajectory;
use tidegate_testkit::flags::Flags;

fn main() -> std::io::Result<()> {
    let mut flags = Flags::from_env();
    let usual = Trajectory::default();
    let runs: u64 = flags.value("runs").unwrap_or(20);
    let shape = Trajectory {
        model: flags.value("model").unwrap_or(usual.model),
        turns: flags.value("turns").unwrap_or(usual.turns),
        output: flags.value("output").unwrap_or(usual.output),
        spread: flags.value("spread").unwrap_or(usual.spread),
        system: flags.value("system").unwrap_or(usual.system),
        question_every: flags.value("question-every").unwrap_or(usual.question_every),
    };
    flags.finish();
    let mut out = BufWriter::new(std::io::stdout().lock());
    for run in 1..=runs {
        writeln!(out, "{}", shape.line(run))?;
    }
    out.flush()
}
