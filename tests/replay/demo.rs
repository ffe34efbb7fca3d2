//! `tidegate demo` needs nothing but the binary.

use super::command::{figures, policy};
use crate::support::client::admin;
use crate::support::command::{command, run};
use crate::support::within;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};

async fn demo(args: &[&str]) -> String {
    let directory = TempDir::new().unwrap();
    let mut command = command(directory.path());
    let output = run(command.arg("demo").args(args)).await;
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it left files behind");
    output.out
}

/// The tokens of each turn, before and after the edits.
fn turns(shown: &str) -> Vec<(u64, u64)> {
    let number = |text: &str| text.replace(',', "").parse::<u64>().ok();
    let turn = |line: &str| {
        let mut words = line.split_whitespace();
        number(words.next()?)?;
        Some((number(words.next()?)?, number(words.next()?)?))
    };
    shown.lines().filter_map(turn).filter(|(asked, forwarded)| asked >= forwarded).collect()
}

#[tokio::test]
async fn every_turn_is_printed_and_the_sums_match_a_replay() {
    let shown = demo(&["--exit"]).await;
    let turns = turns(&shown);
    assert!(turns.len() > 30, "{shown}");
    assert!(turns.iter().any(|(asked, forwarded)| forwarded < asked), "{shown}");
    assert!(shown.contains(" masked ") && shown.contains("cargo test"), "{shown}");
    let recording = demo(&["--recording"]).await;
    let found = figures(None, &[recording.trim().to_owned()], &[]);
    assert_eq!(found["requests"], turns.len());
    let own = policy(&found, 0, "masking:break_even");
    let sum: u64 = turns.iter().map(|turn| turn.1).sum();
    assert_eq!(own["tokens_sent"], sum, "{shown}");
    for policy in [own, policy(&found, 0, "raw")] {
        let cost = format!("${:.4}", policy["cost_usd"].as_f64().unwrap());
        assert!(shown.lines().last().unwrap().contains(&cost), "{cost} is not in: {shown}");
    }
}

#[tokio::test]
async fn the_demo_speaks_every_api() {
    for dialect in ["messages", "responses"] {
        let shown = demo(&["--exit", "--dialect", dialect]).await;
        let turns = turns(&shown);
        assert!(turns.len() > 30 && shown.contains(" masked ") && shown.contains("cargo test"), "{shown}");
        let recording = demo(&["--recording", "--dialect", dialect]).await;
        let found = figures(None, &[recording.trim().to_owned()], &[]);
        assert_eq!(found["requests"], turns.len(), "{dialect}");
        let sum: u64 = turns.iter().map(|turn| turn.1).sum();
        assert_eq!(policy(&found, 0, "masking:break_even")["tokens_sent"], sum, "{dialect}: {shown}");
    }
}

#[tokio::test]
async fn the_demo_serves_its_admin_api_until_interrupted() {
    let directory = TempDir::new().unwrap();
    let mut command = command(directory.path());
    // The shell finds the program, so it is called by its name.
    let found = Path::new(env!("CARGO_BIN_EXE_tidegate")).parent().unwrap();
    let command = command.args(["demo", "--strategy", "hybrid"]).env("PATH", found);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown: Vec<String> = Vec::new();
    while !shown.last().is_some_and(|line| line.contains("what would have been saved")) {
        shown.push(within("a line of the demo", lines.next_line()).await.unwrap().expect("it ended"));
    }
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:#?}");
    assert!(shown.iter().any(|line| line == "  tidegate serve --observe"), "{shown:#?}");
    let dashboard = shown.iter().find_map(|line| line.trim_start().strip_prefix("dashboard")).unwrap();
    let url = dashboard.split_whitespace().next().unwrap();
    let address: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
    let page: Value = admin(address, "/api/conversations/demo").await.json();
    assert_eq!(page["conversation"]["strategy"], "hybrid", "{page}");
    assert!(page["conversation"]["requests"].as_u64() > Some(30), "{page}");
    assert!(page["conversation"]["cached_tokens"].as_u64() > Some(100_000), "{page}");
    let id = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    assert!(within("the demo ends", child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn every_line_fits_80_columns_and_edits_are_explained() {
    for strategy in ["masking", "hybrid", "summarization", "passthrough"] {
        let shown = demo(&["--exit", "--strategy", strategy]).await;
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{strategy}: {line}");
        }
        assert!(!shown.contains('\u{1b}'), "colours belong on a terminal");
    }
    let shown = demo(&["--exit"]).await;
    for words in
        ["cost so far", "unchanged", " 6 masked now", " 6 masked still", "why: keeping them has cost as much"]
    {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
}
