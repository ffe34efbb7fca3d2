//! Running `tidegate replay`.

use crate::support::command::{Output, blocking_command};
use serde_json::Value;
use tempfile::TempDir;

/// Runs `tidegate replay runs.jsonl` on these lines, beside a `proxy.toml` with `config` if there is one.
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

/// The same with `--json`, which must succeed.
pub(crate) fn figures(config: Option<&str>, lines: &[String], args: &[&str]) -> Value {
    let said = replay(config, lines, &[args, &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// The figures of one policy at one price.
pub(crate) fn policy<'a>(figures: &'a Value, price: usize, name: &str) -> &'a Value {
    let policies = figures["prices"][price]["policies"].as_array().unwrap();
    policies
        .iter()
        .find(|policy| policy["policy"] == name)
        .unwrap_or_else(|| panic!("no {name} in {figures}"))
}
