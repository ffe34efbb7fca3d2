//! `tidegate check` refuses what `serve` refuses, and warns of what costs money or does nothing. `tidegate init` writes a short file.

use crate::support::command::{self, Output, command};
use crate::support::tidegate::Tidegate;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tidegate_testkit::{Answer, Listen, MockUpstream, Recording};

async fn check(config: &str, args: &[&str], env: &[(&str, &str)]) -> Output {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("proxy.toml"), config).unwrap();
    run(&directory, &[&["check"][..], args].concat(), env).await
}

async fn run(directory: &TempDir, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = command(directory.path());
    command::run(command.args(args).envs(env.iter().copied())).await
}

/// An upstream that needs no settings but its address, whatever the other suites speak to.
async fn plain_upstream() -> MockUpstream {
    MockUpstream::bind(([127, 0, 0, 1], 0).into(), Listen::Http1, Recording::On).await
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

/// Whatever the file names must be there. Each of these ends `serve`, too.
#[tokio::test]
async fn check_refuses_files_and_stores_that_cannot_be_used() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("text"), "neither a certificate nor a directory").unwrap();
    for (config, named) in [
        ("[server.tls]\ncert = \"missing.pem\"\nkey = \"missing.pem\"\n", "missing.pem"),
        ("[server.tls]\ncert = \"text\"\nkey = \"text\"\n", "no certificate"),
        ("[upstreams.default]\nurl = \"https://x.example\"\nca = \"missing.pem\"\n", "missing.pem"),
        ("[store]\nurl = \"embedded:text\"\n", "not a directory"),
        ("[store]\nurl = \"embedded:text/below\"\n", "not a directory"),
        ("[store]\nurl = \"redis://127.0.0.1:1/no-number\"\n", "store.url"),
        ("[store]\nurl = \"rediss://127.0.0.1:1?ca=missing.pem\"\n", "missing.pem"),
    ] {
        fs::write(directory.path().join("proxy.toml"), config).unwrap();
        let output = run(&directory, &["check"], &[]).await;
        assert_eq!(output.code, Some(1), "{config}{}", output.out);
        assert!(output.err.contains(named) && !output.out.contains(": valid"), "{config}{}", output.err);
        let anywhere = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let served = run(&directory, &anywhere, &[]).await;
        assert_eq!(served.code, Some(1), "{config}{}", served.err);
    }
    let elsewhere = "[store]\nurl = \"embedded:a/b/c\"\n";
    fs::write(directory.path().join("proxy.toml"), elsewhere).unwrap();
    assert_eq!(run(&directory, &["check"], &[]).await.code, Some(0));
    assert!(!directory.path().join("a").exists(), "checking creates nothing");
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
async fn a_cost_limit_without_prices_is_a_warning() {
    let limited = "[context.limits]\nmax_cost_usd = 1.0\n[[routes]]\nname = \"own\"\nmatch = { models = [\"gpt-5\", \"my-own\"] }\n";
    let output = check(limited, &[], &[]).await;
    assert_eq!(output.code, Some(0), "{}", output.err);
    let warning = "warning: route `own` limits the cost of a conversation, but no price is known of `my-own`";
    assert!(output.out.contains(warning), "{}", output.out);
    let priced = format!("{limited}[models.my-own]\ninput = 1.0\noutput = 2.0\n");
    for config in [priced.as_str(), "[context.limits]\nmax_cost_usd = 1.0\n"] {
        let output = check(config, &[], &[]).await;
        assert!(!output.out.contains("limits the cost"), "{config}\n{}", output.out);
    }
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

/// Each document names the place of its summary or its marker, or none.
#[tokio::test]
async fn routes_that_strict_templates_refuse_are_noted() {
    let noted = async |config: String| {
        let output = check(&config, &[], &[]).await;
        assert_eq!(output.code, Some(0), "{}", output.err);
        output.out.contains("note: route `default` does not fit strict chat templates")
    };
    for (profile, wanted) in [
        ("agent", false),
        ("assistant", true),
        ("budgeted-chat", true),
        ("rolling-memory", true),
        ("story", true),
    ] {
        assert_eq!(noted(format!("[context]\nprofile = \"{profile}\"\n")).await, wanted, "{profile}");
    }
    for strategy in ["passthrough", "masking", "summarization", "hybrid", "window"] {
        let config = |fold: &str| format!("[context]\nstrategy = \"{strategy}\"\n[context.fold]\n{fold}");
        assert!(!noted(config("")).await, "{strategy}");
        let inserts = !matches!(strategy, "passthrough" | "masking");
        assert_eq!(noted(config("placement = \"message\"\n")).await, inserts, "{strategy}");
        let summarizes = inserts && strategy != "window";
        assert_eq!(noted(config("role = \"system\"\n")).await, summarizes, "{strategy}");
    }
    let output = check("[context]\nprofile = \"story\"\n", &[], &[]).await;
    assert!(output.out.contains("hint: `fold.placement = \"merge\"` would fit"), "{}", output.out);
}

#[tokio::test]
async fn live_connects_to_everything() {
    let upstream = plain_upstream().await;
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

/// Whoever asks why a deployment does not work has it running.
#[tokio::test]
async fn live_works_beside_a_process_with_the_same_store() {
    let upstream = plain_upstream().await;
    let config =
        format!("[upstreams.default]\nurl = \"{}\"\n[store]\nurl = \"embedded:here\"\n", upstream.url());
    let tidegate = Tidegate::start(&config, &upstream).await;
    let directory = tidegate.config_file().parent().unwrap().to_owned();
    let output = command::run(command(&directory).args(["check", "--live"])).await;
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{}", output.out);
    assert!(output.out.contains("store embedded:here: in use by a running process"), "{}", output.out);
}

/// An open port is not yet an upstream: what fails then is TLS.
#[tokio::test]
async fn live_speaks_tls_and_http_to_upstreams() {
    let upstream = MockUpstream::bind(([127, 0, 0, 1], 0).into(), Listen::Tls, Recording::On).await;
    upstream.answer(Answer::json(401, "{}"));
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("ca.pem"), upstream.ca_pem()).unwrap();
    let config = |more: &str| {
        let url = upstream.url();
        format!("[upstreams.default]\nurl = \"{url}\"\n{more}[store]\nurl = \"memory:\"\n")
    };
    fs::write(directory.path().join("proxy.toml"), config("ca = \"ca.pem\"\n")).unwrap();
    let output = run(&directory, &["check", "--live"], &[]).await;
    assert_eq!(output.code, Some(0), "{}{}", output.out, output.err);
    assert!(output.out.contains(": reachable, answers 401 Unauthorized"), "{}", output.out);
    assert_eq!(upstream.requests()[0].path(), "/v1/models");

    let output = check(&config(""), &["--live"], &[]).await;
    assert_eq!(output.code, Some(1), "{}", output.out);
    assert!(output.out.contains("certificate"), "{}", output.out);
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

#[tokio::test]
async fn check_notes_a_missing_price_of_cached_input() {
    let note = "note: `[models.\"mine\"]` has no `cached_input`";
    let mine = "[models.mine]\ninput = 1.0\noutput = 2.0\n";
    let output = check(mine, &[], &[]).await;
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(output.out.contains(note), "{}", output.out);
    for known in ["cached_input = 1.0\n", "cached_input = 0.1\n", "cache = \"none\"\n"] {
        let output = check(&format!("{mine}{known}"), &[], &[]).await;
        assert!(output.code == Some(0) && !output.out.contains("cached_input`;"), "{known}{}", output.out);
        assert!(!output.out.contains(note), "{known}{}", output.out);
    }
}
