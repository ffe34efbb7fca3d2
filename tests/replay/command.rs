//! Running `tidegate replay`.

use serde_json::Value;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What a command answered, and the directory that it ran in.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) directory: TempDir,
}

/// Runs `tidegate replay runs.jsonl` on these lines, beside a `proxy.toml` with `config` if there is one.
pub(crate) fn replay(config: Option<&str>, lines: &[String], args: &[&str]) -> Said {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("runs.jsonl"), lines.join("\n")).unwrap();
    if let Some(config) = config {
        std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["TIDEGATE_", "AGENT_CONTEXT_", "CONTEXT_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.current_dir(directory.path()).args(["replay", "runs.jsonl"]).args(args).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    Said { code: output.status.code(), out, err, directory }
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
