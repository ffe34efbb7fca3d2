//! The process that is killed.

use crate::open;
use crate::scenario::{LANES, Write, deleted_in, journal, key, turn};
use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tidegate_store::{Generation, Store};
use tokio::task::JoinSet;

/// Passed to the process through its environment: it runs the same test binary, in the role of the writer.
pub(crate) struct Assignment {
    directory: PathBuf,
    round: u64,
}

const DIRECTORY: &str = "TIDEGATE_CRASH_DIRECTORY";
const ROUND: &str = "TIDEGATE_CRASH_ROUND";

pub(crate) fn command_for(directory: &Path, round: u64, mut process: Command) -> Command {
    process.args(["--exact", "kills_neither_lose_acknowledged_writes_nor_tear_others", "--nocapture"]);
    process.env(DIRECTORY, directory).env(ROUND, round.to_string());
    process
}

pub(crate) fn assignment() -> Option<Assignment> {
    let directory = env::var_os(DIRECTORY)?.into();
    Some(Assignment { directory, round: env::var(ROUND).unwrap().parse().unwrap() })
}

pub(crate) fn write_until_killed(assignment: &Assignment) -> ! {
    let round = assignment.round;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stopped = runtime.block_on(async {
        let store = Arc::new(open(&assignment.directory));
        let mut lanes = JoinSet::new();
        for lane in 0..LANES {
            let store = Arc::clone(&store);
            lanes.spawn(async move {
                for old in deleted_in(round) {
                    store.delete(key(old, lane), Generation(1)).await.unwrap();
                    acknowledge(Write::Delete { round: old, lane });
                }
                for number in 0.. {
                    store.journal(key(round, lane), Generation(0), journal(number)).await.unwrap();
                    acknowledge(Write::Journal { lane, number });
                    store.count(key(round, lane), Generation(0), turn(number)).await.unwrap();
                    acknowledge(Write::Count { lane, number });
                }
            });
        }
        lanes.join_next().await
    });
    panic!("a writer stopped: {stopped:?}");
}

/// Starts with a line break, because the test harness leaves a line unfinished.
fn acknowledge(write: Write) {
    let line = match write {
        Write::Delete { round, lane } => format!("\ndelete {round} {lane} .\n"),
        Write::Journal { lane, number } => format!("\njournal {lane} {number} .\n"),
        Write::Count { lane, number } => format!("\ncount {lane} {number} .\n"),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Parses an acknowledgement. The full stop distinguishes a complete line from a truncated one.
pub(crate) fn parse(line: &str) -> Option<Write> {
    let mut words = line.split(' ');
    let (kind, one, two) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    match (kind, words.next()) {
        ("delete", Some(".")) => Some(Write::Delete { round: one, lane: two }),
        ("journal", Some(".")) => Some(Write::Journal { lane: one, number: two }),
        ("count", Some(".")) => Some(Write::Count { lane: one, number: two }),
        _ => None,
    }
}
