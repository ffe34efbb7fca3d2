//! Error messages that any key can cause.

use super::{environment, errors};
use crate::{ConfigError, Flags, Source, load};
use insta::assert_snapshot;

#[test]
fn unknown_keys() {
    assert_snapshot!(errors(r#"[server]
lisen = "127.0.0.1:1"
[context.fold]
frobnicate = 1"#), @r#"
    proxy.toml:2: unknown key `server.lisen`
      hint: did you mean `listen`?
    proxy.toml:4: unknown key `context.fold.frobnicate`
      hint: expected one of: when, keep, pace, mode, max_tokens, timeout, role, placement, summarizer, complete, pin_task
    "#);
}

#[test]
fn unknown_sections() {
    assert_snapshot!(errors(r#"[contxt]
strategy = "masking""#), @r#"
    proxy.toml:1: unknown key `contxt`
      hint: did you mean `context`?
    "#);
}

#[test]
fn wrong_types() {
    assert_snapshot!(errors(
        r#"[log]
access = "yes"
[server]
max_body = [1]
drain_timeout = 30
workers = 1979-05-27
[context.budget]
fallback_window = "8k"
safety_ratio = true
[admin]
listen = 9090"#
    ), @r#"
    proxy.toml:2: `log.access` is `"yes"` but must be `true` or `false`
      hint: write it without quotes
    proxy.toml:4: `server.max_body` is `[1]` but must be a size
      hint: write a number and a unit, `"32MiB"`, `"64KiB"`, `"1GB"`, or a plain number of bytes
    proxy.toml:5: `server.drain_timeout` is `30` but must be a duration
      hint: write a number and a unit: `"250ms"`, `"5s"`, `"10m"`, `"1h"`, `"7d"`
    proxy.toml:6: `server.workers` is `1979-05-27` but must be a whole number
      hint: write it without quotes and without a unit, for example `2048`
    proxy.toml:8: `context.budget.fallback_window` is `"8k"` but must be a whole number
      hint: write it without quotes and without a unit, for example `2048`
    proxy.toml:9: `context.budget.safety_ratio` is `true` but must be a number
      hint: write it without quotes, for example `0.7`
    proxy.toml:11: `admin.listen` is `9090` but must be a string
      hint: put it in quotes: `"…"`
    "#);
}

#[test]
fn values_in_place_of_sections() {
    assert_snapshot!(errors(r#"context = 3
routes = 1
models = "gpt""#), @r#"
    proxy.toml:1: `context` is `3` but must be a section
      hint: write `[context]` and put its keys on the lines below
    proxy.toml:2: `routes` is `1` but must be a list of sections
      hint: write `[[routes]]`
    proxy.toml:3: `models` is `"gpt"` but must be a section
      hint: write `[models]` and put its keys on the lines below
    "#);
}

#[test]
fn invalid_toml() {
    assert_snapshot!(errors(r#"[server]
max_body = 32MiB"#), @r#"
    proxy.toml:2: not valid TOML at column 12: string values must be quoted, expected literal string
      hint: strings need quotes, and every line is `key = value` or `[section]`
    "#);
    assert_snapshot!(errors(r#"[server]
listen = "127.0.0.1:1"
listen = "127.0.0.1:2""#), @r#"
    proxy.toml:3: not valid TOML at column 1: duplicate key
      hint: remove one of the two
    "#);
    assert_snapshot!(errors("[server\n"), @r#"
    proxy.toml:1: not valid TOML at column 8: unclosed table, expected `]`
      hint: strings need quotes, and every line is `key = value` or `[section]`
    "#);
}

#[test]
fn unset_variables() {
    assert_snapshot!(errors(r#"[store]
url = "redis://:${REDIS_PASSWORD}@cache""#), @r#"
    proxy.toml:2: `store.url` is `"redis://***@cache"` but the environment variable `REDIS_PASSWORD` is not set
      hint: set it, or give a default: `${REDIS_PASSWORD:-…}`
    "#);
}

#[test]
fn errors_come_in_the_order_of_the_file() {
    assert_snapshot!(errors(
        r#"[upstreams.other]
connect_timeout = "5 s"

[log]
level = "verbose"

[context]
strategy = "maskng"

[admin]
listen = "127.0.0.1:8080""#
    ), @r#"
    proxy.toml:1: `upstreams.other.url` is missing
      hint: write the address of the upstream, for example `url = "https://api.openai.com"`
    proxy.toml:2: `upstreams.other.connect_timeout` is `"5 s"` but must be a duration
      hint: write a number and a unit: `"250ms"`, `"5s"`, `"10m"`, `"1h"`, `"7d"`
    proxy.toml:5: `log.level` is `"verbose"` but must be one of `error`, `warn`, `info`, `debug`, `trace`
      hint: use one of these values
    proxy.toml:8: `context.strategy` is `"maskng"` but must be one of `passthrough`, `masking`, `summarization`, `hybrid`, `window`
      hint: did you mean `masking`?
    proxy.toml:11: `admin.listen` is `"127.0.0.1:8080"` but `server.listen` and `admin.listen` cannot share a port
      hint: give the admin listener its own port, for example 9090
    "#);
}

#[test]
fn invalid_environment_variables_and_flags() {
    let env = environment(&[
        ("AGENT_CONTEXT_STRATEGY", "Masking"),
        ("AGENT_CONTEXT_MASKING_WINDOW", "0"),
        ("AGENT_CONTEXT_RESERVED", "lots"),
        ("AGENT_CONTEXT_MAX_TURNS", "0"),
        ("TIDEGATE_OBSERVE", "yes"),
    ]);
    let flags = Flags { listen: Some(("here".into(), "--listen")), ..Flags::default() };
    assert_snapshot!(load(Source::none(), &flags, &env).unwrap_err(), @r#"
    TIDEGATE_OBSERVE: `context.observe` is `yes` but must be `true` or `false`
      hint: for example, `true`
    AGENT_CONTEXT_RESERVED: `context.budget.output_reserve` is `lots` but must be a whole number
      hint: for example, `10`
    --listen: `server.listen` is `"here"` but must be an IP address and a port
      hint: for example, `127.0.0.1:8080`, or `0.0.0.0:8080` for every interface
    AGENT_CONTEXT_STRATEGY: `context.strategy` is `"Masking"` but must be one of `passthrough`, `masking`, `summarization`, `hybrid`, `window`
      hint: did you mean `masking`?
    AGENT_CONTEXT_MASKING_WINDOW: `context.mask.keep` is `{ turns = 0 }` but must be at least 1
      hint: use 1 or more
    AGENT_CONTEXT_MAX_TURNS: `context.limits.max_turns` is `0` but must be at least 1
      hint: use 1 or more
    "#);
}

#[test]
fn no_error_shows_a_secret() {
    let env = environment(&[("SECRET", "hunter2(")]);
    let text = "[store]\nurl = \"${SECRET}\"\non_failure = \"${SECRET}\"\nttl = \"${SECRET}\"\nraw = \"${SECRET}\"\n\
        [server]\nlisten = \"${SECRET}\"\nmax_body = \"${SECRET}\"\nworkers = \"${SECRET}\"\n\
        [context.observations]\nuser_pattern = \"${SECRET}\"\n[context.mask]\nkeep = { turns = \"${SECRET}\" }\n\
        [context]\nallow_headers = [\"${SECRET}\"]\n[conversation]\nheader = \"${SECRET}\"\n\
        [upstreams.default]\nurl = \"http://${SECRET}@x\"\napi_key_env = \"${SECRET}\"\n\
        [upstreams.x]\nurl = \"http://hunter2:hunter2@x\"\napi_key_env = \"sk-hunter2\"\n\
        [[routes]]\nname = \"${SECRET}\"\nupstream = \"${SECRET}\"\nmatch = { path = \"${SECRET}\" }\n";
    let errors = load(Source::new("proxy.toml", text), &Flags::default(), &env).unwrap_err();
    assert_eq!(errors.iter().count(), 18, "{errors}");
    assert!(!errors.to_string().contains("hunter2"), "{errors}");
}

#[test]
fn an_unset_variable_inside_a_value_is_one_error() {
    let text = "[context.mask]\nkeep = { turns = \"${NONE}\" }\nexclude_tools = [\"a\", \"${NONE}\"]\n\
        [[routes]]\nmatch = { headers = { x-a = \"${NONE}\" } }\n";
    assert_eq!(errors(text).iter().count(), 3, "{}", errors(text));
}

#[test]
fn one_mistake_in_the_shared_policy_is_one_error() {
    let text = "[context]\nstrategy = \"none\"\n[[routes]]\nname = \"a\"\n[[routes]]\nname = \"b\"\n\
        [routes.context]\nstrategy = \"masking\"\n";
    assert_eq!(errors(text).iter().count(), 1);
}

#[test]
fn a_mistake_is_reported_even_if_the_environment_overrides_it() {
    let env = environment(&[("AGENT_CONTEXT_SUMMARY_TURNS", "5"), ("AGENT_CONTEXT_MASKING_WINDOW", "5")]);
    let text = "[[routes]]\n[routes.context]\nmask = 3\nfold = { when = 4 }\n";
    let errors = load(Source::new("proxy.toml", text), &Flags::default(), &env).unwrap_err();
    assert_eq!(errors.iter().count(), 2, "{errors}");
}

#[test]
fn a_missing_file_is_unreadable() {
    let errors = Source::read("no/such/proxy.toml").unwrap_err();
    assert!(
        matches!(errors.iter().next(), Some(ConfigError::Unreadable { file, .. }) if file == "no/such/proxy.toml")
    );
}
