//! Kills the embedded store at random moments, repeatedly on the same directory. After each kill, everything acknowledged must be
//! there, and nothing may be torn.
//!
//! The killed processes are this test, started again: [`writer`] writes and acknowledges, [`verdict`] checks the result.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod scenario;
mod verdict;
mod writer;

use scenario::Random;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};
use tidegate_store::EmbeddedStore;
use verdict::{Acknowledged, Verdict};

const ROUNDS: u64 = 200;

/// Set to the seed of a failed run to repeat its choices. At which point of a write the kill happens remains random.
const SEED: &str = "TIDEGATE_CRASH_SEED";

#[test]
fn kills_neither_lose_acknowledged_writes_nor_tear_others() {
    if let Some(assignment) = writer::assignment() {
        writer::write_until_killed(&assignment);
    }
    let seed = env::var(SEED).map_or_else(|_| seed_from_clock(), |seed| seed.parse().unwrap());
    writeln!(std::io::stderr(), "{SEED}={seed}").unwrap();
    let mut random = Random(seed);
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("data");
    let copy = parent.path().join("copy");
    let mut verdict = Verdict::default();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let seen = run_until_killed(&directory, round, &mut random);
        acknowledged += seen.len();
        // Every other time only a copy is checked, so that the next writer finds the file exactly as the kill left it.
        if round % 2 == 0 {
            verdict.check(&directory, round, &seen);
        } else {
            copy_files(&directory, &copy);
            verdict.check(&copy, round, &seen);
        }
    }
    verdict.check_all(&directory, ROUNDS);
    assert!(acknowledged > 1_000, "only {acknowledged} writes were acknowledged: this run is not conclusive");
}

/// Starts a writer, kills it at a random moment, and returns what it had acknowledged by then.
fn run_until_killed(directory: &Path, round: u64, random: &mut Random) -> Acknowledged {
    let mut child = writer::command_for(directory, round, Command::new(env::current_exe().unwrap()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (arrived, arrivals) = mpsc::channel();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        lines.lines().map_while(Result::ok).filter_map(|line| writer::parse(&line)).for_each(|write| {
            // The receiver is gone once the process is killed.
            let _ = arrived.send(write);
        });
    });
    let mut seen = Vec::new();
    // One in five processes is killed by time alone, mostly while it creates or opens the file.
    let (writes, time) = match random.below(5) {
        0 => (u64::MAX, Duration::from_micros(random.below(60_000))),
        _ => (random.below(70), Duration::from_secs(10)),
    };
    let deadline = Instant::now() + time;
    while (seen.len() as u64) < writes {
        match arrivals.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(write) => seen.push(write),
            Err(_) => break,
        }
    }
    // Acknowledgements follow a commit immediately. A random delay moves the kill anywhere into the next one.
    let pause = Duration::from_micros(random.below(3_000));
    while let Ok(write) = arrivals.recv_timeout(pause) {
        seen.push(write);
        if random.below(4) == 0 {
            break;
        }
    }
    assert!(child.try_wait().unwrap().is_none(), "round {round}: the writer exited by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    seen.extend(arrivals.try_iter());
    assert!(writes == u64::MAX || seen.len() as u64 >= writes, "round {round}: the writer is stuck");
    seen
}

fn copy_files(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    // A writer that was killed early has not even created the directory.
    for file in fs::read_dir(from).into_iter().flatten() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn seed_from_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

fn open(directory: &Path) -> EmbeddedStore {
    EmbeddedStore::open(directory, Duration::from_secs(3600)).unwrap()
}
