//! No profile and no shipped configuration costs more than raw without a warning of `check`.

use crate::support::command::{self, command};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What cached input costs, as a share of the input price.
const PRICES: [&str; 4] = ["1", "0.5", "0.25", "0.1"];

const ENVIRONMENT: [(&str, &str); 3] =
    [("REDIS_PASSWORD", "secret"), ("TIDEGATE_ADMIN_TOKEN", "token"), ("OPENAI_API_KEY", "key")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The configurations in `deploy/`, by name.
fn shipped() -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(root().join("deploy").join(path)).unwrap();
    let mut all: Vec<(String, String)> =
        ["proxy.toml", "image.toml"].map(|name| (name.to_owned(), read(name))).to_vec();
    let sidecar = read("kubernetes/sidecar.yaml");
    all.push(("sidecar.yaml".to_owned(), block(&sidecar, "proxy.toml: |\n", "    ")));
    let values = read("helm/tidegate/values.yaml");
    all.push(("values.yaml".to_owned(), block(&values, "\nconfig: |\n", "  ")));
    all
}

/// A block of text in a YAML file, without its indent.
fn block(yaml: &str, start: &str, indent: &str) -> String {
    let text = yaml.split_once(start).unwrap().1;
    let lines = text.lines().take_while(|line| line.is_empty() || line.starts_with(indent));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
    lines.join("\n")
}

#[tokio::test]
async fn nothing_that_ships_costs_more_than_raw_without_a_warning() {
    let profiles = ["budgeted-chat", "agent", "story", "assistant", "rolling-memory", "coding-agent"];
    let profiles = profiles.map(|name| (name.to_owned(), format!("[context]\nprofile = \"{name}\"\n")));
    let configs = profiles.into_iter().chain(shipped()).chain([("defaults".to_owned(), String::new())]);
    for (name, config) in configs {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("proxy.toml"), &config).unwrap();
        let run = async |args: &[&str]| {
            let mut command = command(directory.path());
            let output = command::run(command.args(args).envs(ENVIRONMENT)).await;
            assert_eq!(output.code, Some(0), "{name}: {}", output.err);
            output.out
        };
        let warns = run(&["check"]).await.contains("times as much as sending requests unedited");
        let recording = root().join("crates/cli/demo/run.jsonl");
        let mut args = vec![
            "replay",
            recording.to_str().unwrap(),
            "--config",
            "proxy.toml",
            "--json",
            "--model",
            "gpt-5",
        ];
        for price in PRICES {
            args.extend(["--price", price]);
        }
        let report: Value = serde_json::from_str(&run(&args).await).unwrap();
        for (price, regime) in PRICES.iter().zip(report["prices"].as_array().unwrap()) {
            let policies = regime["policies"].as_array().unwrap();
            for policy in
                policies.iter().filter(|policy| policy["policy"].as_str().unwrap().starts_with("route:"))
            {
                let ratio = policy["ratio_to_raw"].as_f64().unwrap();
                assert!(ratio <= 1.02 || warns, "{name} at ×{price}: {ratio:.2} times raw, and no warning");
            }
        }
    }
}
