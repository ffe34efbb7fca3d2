//! The command line: output and exit codes.

use crate::support::command::{self, Output, command};
use crate::support::tidegate::Tidegate;
use insta::assert_snapshot;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;
use tokio::net::TcpListener;

async fn run(directory: &TempDir, args: &[&str]) -> Output {
    run_with(directory, args, &[]).await
}

/// Runs the command, and replaces the path of the directory by `DIR` in what it prints.
async fn run_with(directory: &TempDir, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = command(directory.path());
    let output = command::run(command.args(args).envs(env.iter().copied())).await;
    let path = directory.path().display().to_string();
    Output { code: output.code, out: output.out.replace(&path, "DIR"), err: output.err.replace(&path, "DIR") }
}

fn with_config(text: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("proxy.toml"), text).unwrap();
    directory
}

#[tokio::test]
async fn check_accepts_the_reference_configuration() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("proxy.toml");
    let output = run(&TempDir::new().unwrap(), &["check", "--config", reference.to_str().unwrap()]).await;
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert!(output.out.ends_with("proxy.toml: valid, 1 route\n"), "{}", output.out);
    assert!(output.out.contains("route `default`, upstream `default`"), "{}", output.out);
}

#[tokio::test]
async fn check_shows_where_each_value_came_from() {
    let config = "[server]\nmax_body = \"1MiB\"\n[context.mask]\nkeep = { turns = 3 }\n\
                  [[routes]]\nname = \"agents\"\n[routes.context.mask]\nkeep = { turns = 7 }\n";
    let directory = with_config(config);
    let args = ["check", "--changed", "--listen", "127.0.0.1:1234"];
    let output = run_with(&directory, &args, &[("AGENT_CONTEXT_STRATEGY", "passthrough")]).await;
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_snapshot!(output.out, @r#"
    process
     server.listen    "127.0.0.1:1234"  --listen
     server.max_body  "1MiB"            proxy.toml:2

    route `agents`, upstream `default`
     name               "agents"       proxy.toml:6
     context.strategy   "passthrough"  AGENT_CONTEXT_STRATEGY
     context.mask.keep  { turns = 7 }  proxy.toml:8

    proxy.toml: valid, 1 route
    "#);
}

#[tokio::test]
async fn check_can_show_one_route() {
    let directory = with_config("[[routes]]\nname = \"agents\"\n");
    let output = run(&directory, &["check", "--route", "agents"]).await;
    assert_eq!(output.code, Some(0));
    assert!(output.out.starts_with("route `agents`") && output.out.contains("mask.keep"), "{}", output.out);
    let output = run(&directory, &["check", "--route", "agent"]).await;
    assert_eq!(output.code, Some(1));
    assert_snapshot!(output.err, @r#"
    no such route: `agent`
      hint: the routes are agents
    "#);
}

#[tokio::test]
async fn check_reports_every_mistake_with_its_line() {
    let directory = with_config(
        "[server]\nlisen = \"127.0.0.1:1\"\nmax_body = true\n\n[context.mask]\nkeep = { turns = 0 }\n\n\
         [[routes]]\nname = \"a\"\nupstream = \"defualt\"\n\n[upstreams.b]\nurl = \"${NOT_SET_ANYWHERE}\"\n",
    );
    let output = run(&directory, &["check"]).await;
    assert_eq!((output.code, output.out.as_str()), (Some(1), ""));
    assert_snapshot!(output.err, @r#"
    proxy.toml:2: unknown key `server.lisen`
      hint: did you mean `listen`?
    proxy.toml:3: `server.max_body` is `true` but must be a size
      hint: write a number and a unit, `"32MiB"`, `"64KiB"`, `"1GB"`, or a plain number of bytes
    proxy.toml:6: `context.mask.keep` is `{ turns = 0 }` but must be at least 1
      hint: use 1 or more
    proxy.toml:10: `routes[0].upstream` is `"defualt"` but no upstream has that name
      hint: did you mean `default`?
    proxy.toml:13: `upstreams.b.url` is `"${NOT_SET_ANYWHERE}"` but the environment variable `NOT_SET_ANYWHERE` is not set
      hint: set it, or give a default: `${NOT_SET_ANYWHERE:-…}`
    "#);
}

#[tokio::test]
async fn check_reports_invalid_toml_and_a_missing_file() {
    let directory = with_config("[server\n");
    let output = run(&directory, &["check"]).await;
    assert_eq!(output.code, Some(1));
    assert_snapshot!(output.err, @r#"
    proxy.toml:1: not valid TOML at column 8: unclosed table, expected `]`
      hint: strings need quotes, and every line is `key = value` or `[section]`
    "#);
    let output = run(&directory, &["check", "--config", "missing.toml"]).await;
    assert_eq!(output.code, Some(1));
    assert_snapshot!(output.err, @r#"
    missing.toml: cannot be read: No such file or directory
      hint: check the path and its permissions; without a file the defaults apply
    "#);
}

#[tokio::test]
async fn serve_does_not_start_with_an_invalid_file() {
    let directory = with_config("[server]\nmax_body = 0\n");
    for args in [vec![], vec!["serve"]] {
        let output = run(&directory, &args).await;
        assert_eq!(output.code, Some(1));
        assert!(output.err.contains("proxy.toml:2") && output.err.contains("hint:"), "{}", output.err);
    }
}

#[tokio::test]
async fn init_writes_a_valid_file_and_overwrites_none() {
    let directory = TempDir::new().unwrap();
    let output = run(&directory, &["init"]).await;
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), "wrote proxy.toml\nnext: tidegate check --config proxy.toml\n")
    );
    let output = run(&directory, &["check", "--changed"]).await;
    assert_eq!(output.code, Some(0), "{}", output.err);

    fs::write(directory.path().join("proxy.toml"), "# mine\n").unwrap();
    let output = run(&directory, &["init"]).await;
    assert_eq!(output.code, Some(1));
    assert_snapshot!(output.err, @r#"
    `proxy.toml` already exists
      hint: choose another file, or overwrite it with --force
    "#);
    let kept = || fs::read_to_string(directory.path().join("proxy.toml")).unwrap();
    assert_eq!(kept(), "# mine\n");
    assert_eq!(run(&directory, &["init", "--force"]).await.code, Some(0));
    assert_ne!(kept(), "# mine\n");
    assert_eq!(run(&directory, &["init", "other.toml"]).await.code, Some(0));
    assert_eq!(fs::read_to_string(directory.path().join("other.toml")).unwrap(), kept());
}

#[tokio::test]
async fn help_names_every_flag_and_its_variable() {
    let directory = TempDir::new().unwrap();
    let config = [
        "--config",
        "--listen",
        "--admin",
        "--upstream",
        "--store",
        "TIDEGATE_CONFIG",
        "TIDEGATE_LISTEN",
        "TIDEGATE_UPSTREAM",
    ];
    let cases: [(&[&str], &[&str]); 5] = [
        (&["--help"], &["serve", "check", "init", "completions", "Examples:", "base_url"]),
        (&["serve", "--help"], &[&config[..], &["SIGHUP", "SIGTERM"]].concat()),
        (&["check", "--help"], &[&config[..], &["--changed", "--route"]].concat()),
        (&["init", "--help"], &["--force", "[default: proxy.toml]"]),
        (&["completions", "--help"], &["bash", "zsh", "fish"]),
    ];
    for (args, words) in cases {
        let output = run(&directory, args).await;
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
        for word in words {
            assert!(output.out.contains(word), "{args:?} does not mention {word}:\n{}", output.out);
        }
    }
}

#[tokio::test]
async fn help_does_not_show_values_from_the_environment() {
    let output =
        run_with(&TempDir::new().unwrap(), &["--help"], &[("TIDEGATE_STORE", "redis://:hunter2@r")]).await;
    assert!(!output.out.contains("hunter2"));
}

#[tokio::test]
async fn completions_contain_the_commands_and_flags() {
    let directory = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&directory, &["completions", shell]).await;
        assert_eq!(output.code, Some(0));
        assert!(output.out.contains("check") && output.out.contains("upstream"), "{shell}");
    }
    assert_eq!(run(&directory, &["completions", "csh"]).await.code, Some(2));
}

#[tokio::test]
async fn a_mistyped_command_or_flag_is_a_usage_error() {
    let directory = TempDir::new().unwrap();
    for args in [["serv"], ["--lisen=x"]] {
        let output = run(&directory, &args).await;
        assert_eq!(output.code, Some(2));
        assert!(output.err.contains("similar"), "{}", output.err);
    }
}

#[tokio::test]
async fn a_port_in_use_gives_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = TempDir::new().unwrap();
    for (listen, admin, flag) in
        [(address.as_str(), "127.0.0.1:0", "--listen"), ("127.0.0.1:0", &address, "--admin")]
    {
        let output = run(&directory, &["serve", "--listen", listen, "--admin", admin]).await;
        assert_eq!(output.code, Some(1));
        let expected = [&address, "another process is listening there", flag];
        assert!(expected.iter().all(|word| output.err.contains(*word)), "{}", output.err);
    }
}

#[tokio::test]
async fn a_public_admin_address_needs_a_token() {
    let directory = TempDir::new().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
    for env in [&[][..], &[("TIDEGATE_ADMIN_TOKEN", "")]] {
        let output = run_with(&directory, &args, env).await;
        assert_eq!(output.code, Some(1));
        assert!(
            output.err.contains("TIDEGATE_ADMIN_TOKEN") && output.err.contains("hint:"),
            "{}",
            output.err
        );
    }
}

#[tokio::test]
async fn an_unset_api_key_variable_is_named() {
    let directory = with_config("[upstreams.default]\napi_key_env = \"NOT_SET_ANYWHERE\"\n");
    let output = run(&directory, &["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).await;
    assert_eq!(output.code, Some(1));
    assert!(
        output.err.contains("upstreams.default.api_key_env") && output.err.contains("NOT_SET_ANYWHERE"),
        "{}",
        output.err
    );
}

#[tokio::test]
async fn variables_and_flags_can_replace_a_file() {
    let directory = TempDir::new().unwrap();
    let env = [("TIDEGATE_LISTEN", "127.0.0.1:7001"), ("TIDEGATE_UPSTREAM", "http://model.test/v1")];
    let output = run_with(&directory, &["check", "--changed", "--upstream", "http://other.test"], &env).await;
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert_snapshot!(output.out, @r#"
    process
     server.listen          "127.0.0.1:7001"     TIDEGATE_LISTEN
     upstreams.default.url  "http://other.test"  --upstream

    route `default`, upstream `default`
      only defaults

    built-in defaults: valid, 1 route
    "#);
}

#[tokio::test]
async fn commands_have_only_the_flags_that_mean_something_to_them() {
    let directory = TempDir::new().unwrap();
    for (args, absent) in [
        (&["explain", "--help"][..], &["--listen", "--admin", "--upstream", "--store"][..]),
        (&["replay", "--help"], &["--listen", "--admin", "--upstream", "--store"]),
        (&["conversations", "list", "--help"], &["--listen", "--upstream"]),
        (&["health", "--help"], &["--listen", "--upstream", "--store"]),
    ] {
        let output = run(&directory, args).await;
        assert_eq!(output.code, Some(0));
        assert!(output.out.contains("--config"), "{args:?}");
        for flag in absent {
            assert!(!output.out.contains(&format!("{flag} <")), "{args:?} has {flag}:\n{}", output.out);
        }
    }
}

#[tokio::test]
async fn health_asks_the_running_process() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let (directory, admin) = (TempDir::new().unwrap(), tidegate.admin.to_string());
    for (args, answer) in
        [(&["health", "--admin", &admin][..], "ok\n"), (&["health", "--ready", "--admin", &admin], "ready\n")]
    {
        let output = run(&directory, args).await;
        assert_eq!((output.code, output.out.as_str(), output.err.as_str()), (Some(0), answer, ""));
    }
    let by_variable = run_with(&directory, &["health"], &[("TIDEGATE_ADMIN", &admin)]).await;
    assert_eq!(by_variable.code, Some(0));
    let configured = with_config(&format!("[admin]\nlisten = \"{admin}\"\n"));
    assert_eq!(run(&configured, &["health"]).await.code, Some(0));
    // The file may be invalid while the process still runs with what it had read before.
    let invalid = with_config("nonsense = 1\n");
    assert_eq!(run(&invalid, &["health", "--admin", &admin]).await.code, Some(0));
    tidegate.stop().await;
    let gone = run(&directory, &["health", "--admin", &admin]).await;
    assert_eq!((gone.code, gone.out.as_str()), (Some(1), ""));
    assert!(gone.err.starts_with(&format!("no process answers on {admin}: ")), "{}", gone.err);
}

#[tokio::test]
async fn a_port_in_use_is_reported_with_the_reason_before_the_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output =
        run(&TempDir::new().unwrap(), &["serve", "--listen", &address, "--admin", "127.0.0.1:0"]).await;
    let lines: Vec<&str> = output.err.lines().collect();
    assert!(
        lines[0].starts_with(&format!("cannot listen on {address}: Address already in use")),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("  hint: ") && !lines[1].contains("os error"), "{lines:?}");
}
