//! Runs `tidegate replay`.

use crate::support::command::{Output, blocking_command};
use serde_json::Value;
use tempfile::TempDir;

/// Runs `tidegate replay runs.jsonl` on these lines, with `config` as `proxy.toml` if there is one.
pub(crate) fn replay(config: Option<&str>, lines: &[String], args: &[&str]) -> Output {
    replay_in(&TempDir::new().unwrap(), config, lines, args)
}

/// The same in this directory.
pub(crate) fn replay_in(
    directory: &TempDir,
    config: Option<&str>,
    lines: &[String],
    args: &[&str],
) -> Output {
    std::fs::write(directory.path().join("runs.jsonl"), lines.join("\n")).unwrap();
    if let Some(config) = config {
        std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
    }
    let mut command = blocking_command(directory.path());
    command.args(["replay", "runs.jsonl"]).args(args).output().unwrap().into()
}

/// The same with `--json`. Panics if the command fails.
pub(crate) fn figures(config: Option<&str>, lines: &[String], args: &[&str]) -> Value {
    let output = replay(config, lines, &[args, &["--json"]].concat());
    assert_eq!(output.code, Some(0), "{}", output.err);
    serde_json::from_str(&output.out).unwrap()
}

/// The figures of a policy at a price.
pub(crate) fn policy<'a>(figures: &'a Value, price: usize, name: &str) -> &'a Value {
    let policies = figures["prices"][price]["policies"].as_array().unwrap();
    policies
        .iter()
        .find(|policy| policy["policy"] == name)
        .unwrap_or_else(|| panic!("no {name} in {figures}"))
}
