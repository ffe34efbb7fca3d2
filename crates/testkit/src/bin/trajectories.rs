//! Generates agent runs for `tidegate replay`, one conversation per line.

#![allow(clippy::print_stdout, reason = "the runs on standard output are this program's purpose")]

use std::io::{BufWriter, Write};
use tidegate_testkit::Trajectory;
use tidegate_testkit::flags::Flags;

const USAGE: &str = "\
Generates agent runs for `tidegate replay`, one conversation per line.

Usage: trajectories [--FLAG VALUE]...

  --runs N            conversations [20]
  --turns N           turns of each [60]
  --output N          mean tokens of a tool output [1500]
  --spread X          standard deviation of the logarithm of that length [1]
  --system N          tokens of the instructions [2000]
  --question-every N  turns between user messages; 0 for only the first [0]
  --model NAME        the model that they name [gpt-4o]";

fn main() -> std::io::Result<()> {
    let mut flags = Flags::from_env(USAGE);
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
