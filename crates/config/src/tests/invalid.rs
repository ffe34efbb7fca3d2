//! Values that have the right type but are invalid.

use super::{errors, loaded, unset};
use crate::{Flags, Source, load};
use insta::assert_snapshot;

#[test]
fn values_out_of_range() {
    assert_snapshot!(errors(
        r#"[[routes]]
name = "a"
match = { models = "gpt-*" }
[[routes]]
name = "b"
[routes.context.mask]
keep = { turns = 0 }
[routes.context.budget]
safety_ratio = 1.5
max_context_ratio = nan
max_input = -1"#
    ), @r#"
    proxy.toml:7: `routes[1].context.mask.keep` is `{ turns = 0 }` but must be at least 1
      hint: use 1 or more
    proxy.toml:9: `routes[1].context.budget.safety_ratio` is `1.5` but must be more than 0 and at most 1
      hint: write 70 % as `0.70`
    proxy.toml:10: `routes[1].context.budget.max_context_ratio` is `nan` but must be a number
      hint: write it without quotes, for example `0.7`
    proxy.toml:11: `routes[1].context.budget.max_input` is `-1` but must be at least 1
      hint: use 1 or more
    "#);
}

#[test]
fn invalid_policies() {
    assert_snapshot!(errors(
        r#"[context.mask]
keep = { turns = 3, messages = 4 }
pace = { batch = 0 }
[context.fold]
when = {}
keep = { days = 3 }
[context.prune]
when = { budget_ratio = 0 }
[context.window]
head_ratio = 0.5
head_min = 30"#
    ), @r#"
    proxy.toml:2: `context.mask.keep` is `{ turns = 3, messages = 4 }` but must set exactly one of `turns`, `user_turns`, `messages`, `tokens`, `ratio`
      hint: for example, `{ turns = 10 }`
    proxy.toml:3: `context.mask.pace` is `{ batch = 0 }` but must be at least 1
      hint: use 1 or more
    proxy.toml:5: `context.fold.when` is `{}` but must set at least one of `budget_ratio`, `tokens`, `messages`, `turns`, `user_turns`
      hint: for example, `{ budget_ratio = 0.70, user_turns = 8 }`
    proxy.toml:6: `context.fold.keep` is `{ days = 3 }` but must set exactly one of `turns`, `user_turns`, `messages`, `tokens`, `ratio`
      hint: for example, `{ turns = 10 }`
    proxy.toml:8: `context.prune.when` is `{ budget_ratio = 0 }` but must be more than 0 and at most 1
      hint: write 70 % as `0.70`
    proxy.toml:10: `context.window.head_ratio` is `0.5` but `head_ratio` and `tail_ratio` must not add up to more than 1
      hint: lower one of them
    proxy.toml:11: `context.window.head_min` is `30` but `head_min` must not exceed `head_max`
      hint: lower `head_min` or raise `head_max`
    "#);
}

#[test]
fn numbers_out_of_range() {
    assert_snapshot!(errors(
        r#"[server]
max_body = "9999GiB"
max_header = 1024
header_timeout = "0s"
body_timeout = "99999999d"
workers = 0
[models.m]
window = 99999999999999999999999999999999999999999999
input = -1.0
encoding = "o200k""#
    ), @r#"
    proxy.toml:2: `server.max_body` is `"9999GiB"` but must be at most `"4GiB"`
      hint: write a number and a unit, `"32MiB"`, `"64KiB"`, `"1GB"`, or a plain number of bytes
    proxy.toml:3: `server.max_header` is `1024` but must be at least `"8KiB"`
      hint: write a number and a unit, `"32MiB"`, `"64KiB"`, `"1GB"`, or a plain number of bytes
    proxy.toml:4: `server.header_timeout` is `"0s"` but must be longer than zero
      hint: write a number and a unit: `"250ms"`, `"5s"`, `"10m"`, `"1h"`, `"7d"`
    proxy.toml:5: `server.body_timeout` is `"99999999d"` but must be at most ten years
      hint: write a number and a unit: `"250ms"`, `"5s"`, `"10m"`, `"1h"`, `"7d"`
    proxy.toml:6: `server.workers` is `0` but must be at least 1
      hint: use 1 or more
    proxy.toml:8: `models.m.window` is `99999999999999999999999999999999999999999999` but must be at most 1000000000
      hint: check the number of digits
    proxy.toml:9: `models.m.input` is `-1.0` but must be between 0 and 1000000
      hint: prices are in USD per million tokens
    proxy.toml:10: `models.m.encoding` is `"o200k"` but must be one of `o200k_base`, `o200k_harmony`, `cl100k_base`, `p50k_base`, `r50k_base`, `estimate`
      hint: did you mean `o200k_base`?
    "#);
}

#[test]
fn unknown_upstreams() {
    assert_snapshot!(errors(
        r#"[upstreams.azure]
url = "https://example.openai.azure.com"
[[routes]]
upstream = "azur"
[[routes]]
upstream = "elsewhere"
[summarizers.small]
kind = "llm"
model = "m"
upstream = "defualt""#
    ), @r#"
    proxy.toml:4: `routes[0].upstream` is `"azur"` but no upstream has that name
      hint: did you mean `azure`?
    proxy.toml:6: `routes[1].upstream` is `"elsewhere"` but no upstream has that name
      hint: add a section `[upstreams.NAME]` with its `url`
    proxy.toml:10: `summarizers.small.upstream` is `"defualt"` but no upstream has that name
      hint: did you mean `default`?
    "#);
}

#[test]
fn invalid_summarizers() {
    assert_snapshot!(errors(
        r#"[summarizers.small]
kind = "llm"
json_schema = "yes"
window = 0
max_tool_output = "4k"
api_key_env = "sk-123 456"
forward-key = true"#
    ), @r#"
    proxy.toml:1: `summarizers.small.model` is missing
      hint: an `llm` summarizer needs the name of its model
    proxy.toml:3: `summarizers.small.json_schema` is `"yes"` but must be `"auto"`, `true` or `false`
      hint: remove the key for `"auto"`
    proxy.toml:4: `summarizers.small.window` is `0` but must be at least 1
      hint: use 1 or more
    proxy.toml:5: `summarizers.small.max_tool_output` is `"4k"` but must be a whole number
      hint: write it without quotes and without a unit, for example `2048`
    proxy.toml:6: `summarizers.small.api_key_env` is `***` but must be the name of an environment variable
      hint: write the name of the variable, for example `OPENAI_API_KEY`, and not the secret itself
    proxy.toml:7: unknown key `summarizers.small.forward-key`
      hint: did you mean `forward_key`?
    "#);
}

#[test]
fn invalid_profiles_blocks_and_archives() {
    assert_snapshot!(errors(
        r#"[context]
profile = "agents"
[context.blocks]
memory_max = 0
history_max = 100
total_max = 99
min_recent_messages = 0
[archive]
url = "mysql://me:secret@db/x""#
    ), @r#"
    proxy.toml:2: `context.profile` is `"agents"` but must be one of `budgeted-chat`, `agent`, `story`, `assistant`, `rolling-memory`, `coding-agent`
      hint: did you mean `agent`?
    proxy.toml:4: `context.blocks.memory_max` is `0` but must be at least 1
      hint: use 1 or more
    proxy.toml:6: `context.blocks.total_max` is `99` but must be at least `history_max`
      hint: the history is part of the total
    proxy.toml:7: `context.blocks.min_recent_messages` is `0` but must be at least 1
      hint: use 1 or more
    proxy.toml:9: `archive.url` is `"mysql://***@db/x"` but must be the URL of a PostgreSQL database
      hint: for example, `postgres://tidegate@db.example.com/tidegate?sslmode=require`
    "#);
}

#[test]
fn invalid_trims_and_hints() {
    assert_snapshot!(errors(
        r#"[context.trim]
after = { turns = 0 }
min_tokens = 300
keep_tokens = 300
enable = false
[context.mask]
hint = { ids = 60 }"#
    ), @r#"
    proxy.toml:2: `context.trim.after` is `{ turns = 0 }` but must be at least 1
      hint: use 1 or more
    proxy.toml:4: `context.trim.keep_tokens` is `300` but `keep_tokens` must be at least 80 and less than `min_tokens`
      hint: for example, `keep_tokens = 400` and `min_tokens = 1500`
    proxy.toml:5: unknown key `context.trim.enable`
      hint: did you mean `enabled`?
    proxy.toml:7: `context.mask.hint` is `{ ids = 60 }` but must be `{ identifiers = n }` with n from 0 to 1000
      hint: for example, `{ identifiers = 60 }`, or 0 for none
    "#);
}

#[test]
fn a_proxy_history_without_stored_messages() {
    assert_snapshot!(errors(
        r#"[store]
raw = false
[context]
history = "proxy""#
    ), @r#"
    proxy.toml:2: `store.raw` is `false` but must be `true` because a route has `history = "proxy"`
      hint: the history is rebuilt from the messages in the store
    "#);
}

#[test]
fn invalid_routes_and_names() {
    assert_snapshot!(errors(
        r#"[[routes]]
name = "Big Route"
[[routes]]
name = "route-3"
match = { path = "v1/x", models = [], headers = { "x y" = "z" } }
[[routes]]
name = "route-3""#
    ), @r#"
    proxy.toml:2: `routes[0].name` is `"Big Route"` but must consist of lowercase letters, digits and dashes
      hint: for example, `name = "agents"`
    proxy.toml:5: `routes[1].match.path` is `"v1/x"` but must begin with `/`
      hint: write only the path, for example `/v1/chat/completions`
    proxy.toml:5: `routes[1].match.models` is `[]` but must not be empty
      hint: remove the key to use the default
    proxy.toml:5: `routes[1].match.headers."x y"` is `"z"` but its key must be a header name
      hint: for example, `{ x-team = "search" }`
    proxy.toml:7: `routes[2].name` is `"route-3"` but must be unique, and an earlier route has this name
      hint: choose another one; it appears in headers and metrics
    "#);
    assert_snapshot!(errors(r#"[[routes]]
name = "route-2"
[[routes]]"#), @r#"
    proxy.toml:3: `routes[1].name` is missing
      hint: its default name, `route-2`, is taken by an earlier route
    "#);
}

#[test]
fn invalid_urls_and_addresses() {
    assert_snapshot!(errors(
        r#"[server]
listen = "8080"
[store]
url = "redis+sentinel://h1,h2"
[upstreams.a]
url = "ftp://x"
[upstreams.b]
url = "https://me:secret@host"
[upstreams.c]
url = "https://host/?a=b"
[upstreams.d]
url = "http://host:0"
[upstreams.e]
[conversation]
header = "x y"
[server.tls]
cert = "a.pem""#
    ), @r#"
    proxy.toml:2: `server.listen` is `"8080"` but must be an IP address and a port
      hint: for example, `127.0.0.1:8080`, or `0.0.0.0:8080` for every interface
    proxy.toml:4: `store.url` is `"redis+sentinel://h1,h2"` but must end with the name of the master
      hint: write `redis+sentinel://h1,h2,h3/master`
    proxy.toml:6: `upstreams.a.url` is `"ftp://x"` but must begin with `http://` or `https://`
      hint: for example, `https://api.openai.com`
    proxy.toml:8: `upstreams.b.url` is `"https://***@host"` but must not contain a user name or password
      hint: put the key in an environment variable, and its name in `api_key_env`
    proxy.toml:10: `upstreams.c.url` is `"https://host/?a=b"` but must not have a query or a fragment
      hint: remove everything after the path
    proxy.toml:12: `upstreams.d.url` is `"http://host:0"` but must be a URL with a valid host
      hint: write a host, an optional port and an optional path: `http://127.0.0.1:8000/base`
    proxy.toml:13: `upstreams.e.url` is missing
      hint: write the address of the upstream, for example `url = "https://api.openai.com"`
    proxy.toml:15: `conversation.header` is `"x y"` but must be a header name
      hint: use letters, digits and dashes, for example `x-conversation-id`
    proxy.toml:16: `server.tls.key` is missing
      hint: TLS needs both `cert` and `key`, as PEM files
    "#);
}

#[test]
fn invalid_patterns() {
    let text = "[context.observations]\nuser_pattern = '^(Observation'\n";
    assert_snapshot!(errors(text), @r#"
    proxy.toml:2: `context.observations.user_pattern` is `'^(Observation'` but must be a regular expression: unclosed group
      hint: use single quotes to keep backslashes as they are: `'^Observation:'`
    "#);
}

#[test]
fn a_total_smaller_than_the_history() {
    let text = "[context.blocks]\nhistory_max = 10\ntotal_max = 9\n";
    let message = "proxy.toml:3: `context.blocks.total_max` is `9` but must be at least `history_max`";
    assert!(errors(text).iter().any(|error| error.to_string() == message), "{}", errors(text));
}

#[test]
fn listeners_may_not_share_a_port_unless_it_is_ephemeral() {
    loaded("[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n");
    loaded("[server]\nlisten = \"127.0.0.1:7000\"\n[admin]\nlisten = \"127.0.0.2:7000\"\n");
    errors("[server]\nlisten = \"0.0.0.0:9090\"\n");
    let flags = Flags { admin: Some(("localhost:8080".into(), "TIDEGATE_ADMIN")), ..Flags::default() };
    let errors = load(Source::none(), &flags, &unset).unwrap_err();
    assert_snapshot!(errors, @r#"
    TIDEGATE_ADMIN: `admin.listen` is `"localhost:8080"` but `server.listen` and `admin.listen` cannot share a port
      hint: give the admin listener its own port, for example 9090
    "#);
}
