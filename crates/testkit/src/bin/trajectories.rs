//! Generates agent runs for `tidegate replay`, one conversation per line.
//!
//! `trajectories [--runs 20] [--turns 60] [--output 1500] [--spread 1] [--system 2000] [--question-every 0] [--model gpt-4o]`

#![allow(clippy::print_stdout, reason = "the runs on standard output are this program's purpose")]

use std::io::{BufWriter, Write};
use tidegate_testkit::Trajectory;
use tidegate_testkit::flags::Flags;

fn main() -> std::io::Result<()> {
    let mut flags = Flags::from_env();
    let default = Trajectory::default();
    let runs: u64 = flags.value("runs").unwrap_or(20);
    let shape = Trajectory {
        model: flags.value("model").unwrap_or(default.model),
        turns: flags.value("turns").unwrap_or(default.turns),
        output: flags.value("output").unwrap_or(default.output),
        spread: flags.value("spread").unwrap_or(default.spread),
        system: flags.value("system").unwrap_or(default.system),
        question_every: flags.value("question-every").unwrap_or(default.question_every),
    };
    flags.finish();
    let mut out = BufWriter::new(std::io::stdout().lock());
    for run in 1..=runs {
        writeln!(out, "{}", shape.line(run))?;
    }
    out.flush()
}
