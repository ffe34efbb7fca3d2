//! `tidegate check` refuses what `serve` refuses, and warns of what costs money or does nothing. `tidegate init` writes a short file.

use crate::support::command::{self, Output, command};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;

async fn check(config: &str, args: &[&str], env: &[(&str, &str)]) -> Output {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("proxy.toml"), config).unwrap();
    run(&directory, &[&["check"][..], args].concat(), env).await
}

async fn run(directory: &TempDir, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = command(directory.path());
    command::run(command.args(args).envs(env.iter().copied())).await
}

#[tokio::test]
async fn check_refuses_what_serve_refuses() {
    let key = "[upstreams.default]\nurl = \"http://127.0.0.1:1\"\napi_key_env = \"NO_SUCH_KEY\"\n";
    let output = check(key, &[], &[]).await;
    assert_eq!(output.code, Some(1), "{}", output.out);
    assert!(output.err.contains("NO_SUCH_KEY"), "{}", output.err);
    assert!(!output.out.contains(": valid"), "{}", output.out);
    assert_eq!(check(key, &[], &[("NO_SUCH_KEY", "k")]).await.code, Some(0));

    let public = "[admin]\nlisten = \"0.0.0.0:9090\"\n";
    let output = check(public, &[], &[]).await;
    assert_eq!(output.code, Some(1), "{}", output.out);
    assert!(output.err.contains("TIDEGATE_ADMIN_TOKEN"), "{}", output.err);
    assert_eq!(check(public, &[], &[("TIDEGATE_ADMIN_TOKEN", "t")]).await.code, Some(0));
}

#[tokio::test]
async fn a_profile_that_changes_nothing_is_a_warning() {
    let reference = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("proxy.toml")).unwrap();
    let shadowed = reference.replace("# profile = \"agent\"", "profile = \"agent\"");
    assert_ne!(shadowed, reference);
    // The one key of the profile that the reference leaves out.
    let shadowed = format!("{shadowed}\n[context.limits]\nplateau_window = 6\n");
    let output = check(&shadowed, &[], &[]).await;
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(
        output.out.contains("warning: ") && output.out.contains("every key of that profile"),
        "{}",
        output.out
    );
    let output =
        check("[context]\nprofile = \"agent\"\n[context.mask]\nkeep = { turns = 3 }\n", &[], &[]).await;
    assert!(!output.out.contains("warning: "), "{}", output.out);
}

#[tokio::test]
async fn a_pace_that_loses_money_is_a_warning_with_the_figure() {
    let eager = "[context.mask]\npace = \"every_turn\"\n";
    let output = check(eager, &[], &[]).await;
    assert_eq!(output.code, Some(0), "{}", output.err);
    let warning = output.out.lines().find(|line| line.starts_with("warning: route `default` would cost"));
    let warning = warning.unwrap_or_else(|| panic!("{}", output.out));
    let times: f64 = warning.split(' ').nth(5).unwrap().parse().unwrap();
    assert!((1.5..6.0).contains(&times), "{warning}");
    // Where cached input has no discount, masking at every turn saves.
    let dear = format!(
        "{eager}[models.\"plain\"]\nwindow = 200000\ninput = 1.0\noutput = 2.0\n[[routes]]\nname = \"r\"\nmatch = {{ models = \"plain\" }}\n"
    );
    for config in [dear.as_str(), "", "[context]\nprofile = \"agent\"\n"] {
        let output = check(config, &[], &[]).await;
        assert!(!output.out.contains("warning: "), "{config}\n{}", output.out);
    }
}

#[tokio::test]
async fn live_connects_to_everything() {
    let upstream = MockUpstream::start().await;
    let config = format!("[upstreams.default]\nurl = \"{}\"\n[store]\nurl = \"memory:\"\n", upstream.url());
    let output = check(&config, &["--live"], &[]).await;
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{}", output.out);
    assert!(
        output.out.contains("upstream `default`") && output.out.contains("store memory:"),
        "{}",
        output.out
    );
    // Nobody listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "{config}[upstreams.other]\nurl = \"http://{gone}\"\n[telemetry]\nendpoint = \"http://{gone}\"\n"
    );
    let output = check(&config, &["--live"], &[]).await;
    assert_eq!(output.code, Some(1), "{}", output.out);
    assert!(
        output.out.contains("upstream `other`") && output.out.contains("cannot connect"),
        "{}",
        output.out
    );
    assert!(output.err.contains("2 of 4 connections failed"), "{}", output.err);
}

#[tokio::test]
async fn a_profile_that_is_uncommented_in_the_starter_file_takes_effect() {
    let directory = TempDir::new().unwrap();
    assert_eq!(run(&directory, &["init"], &[]).await.code, Some(0));
    let path = directory.path().join("proxy.toml");
    let starter = fs::read_to_string(&path).unwrap();
    assert!(starter.lines().count() < 60, "short");
    fs::write(&path, starter.replace("# profile = \"agent\"", "profile = \"agent\"")).unwrap();
    let output = run(&directory, &["check", "--changed"], &[]).await;
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(output.out.contains("profile agent") && !output.out.contains("warning"), "{}", output.out);
    assert_eq!(run(&directory, &["init", "--full", "all.toml"], &[]).await.code, Some(0));
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("proxy.toml");
    let full = fs::read_to_string(directory.path().join("all.toml")).unwrap();
    assert_eq!(full, fs::read_to_string(reference).unwrap());
}
