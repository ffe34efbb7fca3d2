//! `tidegate explain`: what it says of a saved request, and with which exit code.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use insta::assert_snapshot;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What a command answered.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Keeps the last turn and masks everything before it at once.
const ONE_TURN: &str = "[context.mask]\nkeep = { turns = 1 }\n";

/// Runs `tidegate explain` on `body` in `request.json`, beside a `proxy.toml` with `config`.
fn explain(config: &str, body: &str, args: &[&str]) -> Said {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("request.json"), body).unwrap();
    run(&directory, config, "", &[&["request.json"], args].concat())
}

fn run(directory: &TempDir, config: &str, input: &str, args: &[&str]) -> Said {
    std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["TIDEGATE_", "AGENT_CONTEXT_", "CONTEXT_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.current_dir(directory.path()).arg("explain").args(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that fails early does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn call(id: &str, tool: &str) -> Value {
    let function = json!({"name": tool, "arguments": "{}"});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn result(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

fn request(messages: &[Value]) -> String {
    json!({"model": "gpt-4o-2024-08-06", "messages": messages}).to_string()
}

/// An agent that has used two tools, and one of them twice.
fn agent() -> String {
    let output = "one line of output\n".repeat(40);
    request(&[
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "Why does the build fail?"}),
        call("a", "read_file"),
        result("a", &output),
        call("b", "list"),
        result("b", "src"),
        call("c", "read_file"),
        result("c", &output),
    ])
}

#[test]
fn the_table_says_what_happens_to_each_message_and_why() {
    let said = explain(ONE_TURN, &agent(), &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_snapshot!(said.out, @r#"
    request.json: route `default`, to default, strategy masking

     #  role       kind                   tokens  action  why
     0  system                                 7  keep    instruction
     1  user                                  10  keep    not an observation
     2  assistant  calls read_file            10  keep    not an observation
     3  tool       result of read_file  204 → 20  mask    older than mask.keep = { turns = 1 }
     4  assistant  calls list                  9  keep    not an observation
     5  tool       result of list              5  keep    placeholder would not be shorter
     6  assistant  calls read_file            10  keep    not an observation
     7  tool       result of read_file       204  keep    unresolved end

    budget
        window                128,000  built-in table, entry `gpt-4o`
        safe                  128,000  safety_ratio 1 of the window
     -  output reserve          2,048  ratio 0.2 of safe, at most cap 2,048, at least min 0
     -  overhead reserve        6,400  ratio 0.05 of the window, at least min 1,024, plus fixed 0
     =  input budget          119,552

        messages                  459
     +  tools, format, reply        3
     =  used before               462
     -  saved                     184  1 message masked
     =  used after                278  0.2 % of the input budget

    masking
     mask.keep  { turns = 1 }
     mask.pace  "break_even"
     cause      free: the provider has nothing of it in its cache, or bills it alike, so it costs nothing
     no earlier request is known: the cache counts as cold and masking as free; in a running conversation it waits until keeping the observations has cost as much as masking them

    model
     asked for   gpt-4o-2024-08-06
     matched     built-in entry `gpt-4o`
     encoding    o200k_base, exact
     prices      $2.50 input, $1.25 cached, $2.50 written to the cache, $10.00 output, per million
     cache life  10m

    verdict: fits: forwarded with 1 message masked, 119,274 of 119,552 input tokens left
    "#);
}

#[test]
fn the_object_for_machines_says_the_same() {
    let said = explain(ONE_TURN, &agent(), &["--json"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let object: Value = serde_json::from_str(&said.out).unwrap();
    let members: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    let promised = [
        "budget", "masking", "messages", "model", "observe", "route", "strategy", "upstream", "usage",
        "verdict",
    ];
    assert_eq!(members, promised);
    assert_eq!(object["messages"].as_array().unwrap().len(), 8);
    let parts = json!([object["messages"][3], object["budget"], object["usage"], object["masking"]]);
    assert_snapshot!(serde_json::to_string_pretty(&parts).unwrap(), @r#"
    [
      {
        "action": "mask",
        "calls": [],
        "index": 3,
        "kind": "observation",
        "reason": "outside_window",
        "role": "tool",
        "tokens": 204,
        "tokens_after": 20,
        "tool": "read_file",
        "why": "older than mask.keep = { turns = 1 }"
      },
      {
        "input": 119552,
        "output": 2048,
        "output_source": "policy",
        "overhead": 6400,
        "safe": 128000,
        "window": 128000,
        "window_source": "table"
      },
      {
        "after": 278,
        "before": 462,
        "fixed": 3,
        "messages": 459,
        "saved": 184
      },
      {
        "cause": "free",
        "keep": "{ turns = 1 }",
        "note": "no earlier request is known: the cache counts as cold and masking as free; in a running conversation it waits until keeping the observations has cost as much as masking them",
        "pace": "break_even",
        "postponed": 0
      }
    ]
    "#);
    let parts = json!([object["verdict"], object["model"]]);
    assert_snapshot!(serde_json::to_string_pretty(&parts).unwrap(), @r#"
    [
      {
        "ending": "edited",
        "left": 119274,
        "masked": 1,
        "over": 0,
        "sentence": "fits: forwarded with 1 message masked, 119,274 of 119,552 input tokens left",
        "untagged": 0
      },
      {
        "asked": "gpt-4o-2024-08-06",
        "cache_life_s": 600,
        "encoding": "o200k_base",
        "fit": "exact",
        "matched": "gpt-4o",
        "max_output": 16384,
        "prices": {
          "cache_write": null,
          "cached_input": 1.25,
          "input": 2.5,
          "output": 10.0
        },
        "source": "table",
        "window": 128000
      }
    ]
    "#);
}

#[test]
fn the_diff_shows_the_changed_messages_alone() {
    let tagged =
        json!({"role": "user", "observation": {"type": "tool_output"}, "name": "shell", "content": "ok"});
    let body = request(&[
        json!({"role": "user", "content": "Go on."}),
        call("a", "read_file"),
        result("a", &"one line of output\n".repeat(40)),
        json!({"role": "assistant", "content": "Done."}),
        tagged,
    ]);
    let said = explain(ONE_TURN, &body, &["--diff"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_snapshot!(said.out, @r#"
    --- messages[2] as sent, 204 tokens
    +++ messages[2] as forwarded, 20 tokens
    @@ -1,5 +1,5 @@
     {
    -  "content": "one line of output\none line of output\none line of output\none li … 696 characters … e line of output\none line of output\n",
    +  "content": "[OMITTED_OBSERVATION: too old; available in memory store]",
       "role": "tool",
       "tool_call_id": "a"
     }
    --- messages[4] as sent, 7 tokens
    +++ messages[4] as forwarded, 7 tokens
    @@ -1,8 +1,5 @@
     {
       "content": "ok",
       "name": "shell",
    -  "observation": {
    -    "type": "tool_output"
    -  },
       "role": "user"
     }
    "#);
}

#[test]
fn the_rewritten_request_is_the_client_s_own_but_for_the_edits() {
    let output = "one line of output. ".repeat(40);
    let body = |content: &str| {
        format!(
            "{{ \"seed\": 1e2, \"messages\": [{{\"role\":\"user\",\"content\":\"x\"}},\n{{\"role\":\"assistant\",\
             \"content\":\"\\u0061\"}}, {{\"content\":\"{content}\", \"role\":\"tool\",\"tool_call_id\":\"c\"}}, \
             {{\"role\":\"assistant\",\"content\":\"b\"}}]}}\n"
        )
    };
    let said = explain(ONE_TURN, &body(&output), &["--rewritten"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_eq!(said.out, body("[OMITTED_OBSERVATION: too old; available in memory store]"));
}

#[test]
fn what_would_not_change_is_said_beside_the_views_that_show_changes() {
    let body = request(&[json!({"role": "user", "content": "Hello"})]);
    let said = explain("", &body, &["--diff"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""));
    assert_snapshot!(said.err, @"request.json: fits: forwarded byte for byte as sent, 119,544 of 119,552 input tokens left");
    let said = explain("", &body, &["--rewritten"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), body.as_str()));
}

#[test]
fn a_request_that_does_not_fit_is_refused_with_a_code_of_its_own() {
    let config = &format!("{ONE_TURN}[models.\"gpt-4o\"]\nwindow = 1500\n");
    let said = explain(config, &agent(), &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(3), ""));
    let verdict = said.out.find("verdict: ").unwrap();
    assert_snapshot!(said.out[verdict..], @r#"
    verdict: refused with 422 context_budget_exceeded: it needs 278 input tokens even masked, and 176 may be used
      hint: it is 102 tokens over: send less, ask for a shorter answer (`max_tokens`), keep less unmasked (`context.mask.keep`), or use a model with a larger window
    "#);
    assert!(said.out.contains("models.\"gpt-4o\".window"), "{}", said.out);
    for view in ["--diff", "--rewritten"] {
        let said = explain(config, &agent(), &[view]);
        assert_eq!((said.code, said.out.as_str()), (Some(3), ""));
        assert!(said.err.contains("context_budget_exceeded"), "{}", said.err);
    }
    let said = explain(config, &agent(), &["--json"]);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &object["verdict"]["ending"]), (Some(3), &json!("refused")));
}

/// The reasons of all messages, one a line.
fn reasons(config: &str, body: &str, args: &[&str]) -> String {
    let said = explain(config, body, &[&["--json"], args].concat());
    let object: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
    let one = |message: &Value| {
        let [role, action, reason, why] =
            ["role", "action", "reason", "why"].map(|key| message[key].as_str().unwrap());
        format!("{role}: {action}, {reason}: {why}\n")
    };
    object["messages"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn every_reason_to_keep_a_message_is_named() {
    let long = "one line of output\n".repeat(40);
    let tag = json!({"type": "tool_output"});
    let body = request(&[
        json!({"role": "developer", "content": long}),
        json!({"role": "assistant", "content": long, "observation": tag}),
        json!({"role": "tool", "tool_call_id": "x", "content": null}),
        json!({"role": "function", "name": "read_secret", "content": long}),
        result("y", "ok"),
        result("z", &long),
        json!({"role": "user", "content": "and", "observation": tag}),
        call("a", "list"),
        result("a", &long),
        call("b", "list"),
        result("b", &long),
    ]);
    let keep_two = "[context.mask]\nkeep = { turns = 2 }\nexclude_tools = [\"*_secret\"]\n";
    assert_snapshot!(reasons(keep_two, &body, &[]), @r#"
    developer: keep, instruction: instruction
    assistant: untag, assistant: an assistant's own words are never masked
    tool: keep, no_content: no content to mask
    function: keep, excluded_tool: tool is excluded by mask.exclude_tools
    tool: keep, not_shorter: placeholder would not be shorter
    tool: mask, outside_window: older than mask.keep = { turns = 2 }
    user: untag, not_shorter: placeholder would not be shorter
    assistant: keep, not_an_observation: not an observation
    tool: keep, inside_window: inside mask.keep = { turns = 2 }
    assistant: keep, not_an_observation: not an observation
    tool: keep, unresolved_end: unresolved end
    "#);
    let batch = "[context.mask]\nkeep = { turns = 1 }\npace = { batch = 5 }\n";
    assert_snapshot!(reasons(batch, &agent(), &[]), @r#"
    system: keep, instruction: instruction
    user: keep, not_an_observation: not an observation
    assistant: keep, not_an_observation: not an observation
    tool: keep, postponed: postponed: 1 of a batch of 5 outside the window
    assistant: keep, not_an_observation: not an observation
    tool: keep, not_shorter: placeholder would not be shorter
    assistant: keep, not_an_observation: not an observation
    tool: keep, unresolved_end: unresolved end
    "#);
    let observe = "[context]\nobserve = true\n[context.mask]\nkeep = { turns = 1 }\n";
    assert_snapshot!(reasons(observe, &agent(), &[]), @r#"
    system: keep, instruction: instruction
    user: keep, not_an_observation: not an observation
    assistant: keep, not_an_observation: not an observation
    tool: keep, observe: observe = true, else masked: older than mask.keep = { turns = 1 }
    assistant: keep, not_an_observation: not an observation
    tool: keep, not_shorter: placeholder would not be shorter
    assistant: keep, not_an_observation: not an observation
    tool: keep, unresolved_end: unresolved end
    "#);
}

#[test]
fn another_strategy_can_be_tried() {
    let said = explain(ONE_TURN, &agent(), &["--strategy", "passthrough"]);
    assert_eq!(said.code, Some(0));
    assert!(said.out.contains("strategy is passthrough") && !said.out.contains("mask.keep"), "{}", said.out);
    assert!(said.out.contains("verdict: forwarded byte for byte as sent: `passthrough`"), "{}", said.out);
    let said = explain(ONE_TURN, &agent(), &["--strategy", "hybrid"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("the strategies are passthrough, masking"), "{}", said.err);
}

#[test]
fn the_route_is_the_proxy_s_or_the_one_asked_for() {
    let config = "[[routes]]\nname = \"claude\"\nmatch = { models = [\"claude-*\"] }\n\
                  [[routes]]\nname = \"team\"\nmatch = { headers = { x-team = \"a\" } }\n";
    let body = request(&[json!({"role": "user", "content": "Hello"})]);
    let said = explain(config, &body, &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_snapshot!(said.out, @r#"
    request.json: no route matches a request for the model `gpt-4o-2024-08-06`: it would be forwarded to `default`, byte for byte as sent
      hint: a route that asks for headers is tried with --route; the routes are claude, team
    "#);
    let said = explain(config, &body, &["--json"]);
    assert_snapshot!(said.out, @r#"
    {
      "model": {
        "asked": "gpt-4o-2024-08-06"
      },
      "route": null,
      "upstream": "default",
      "verdict": {
        "ending": "as_sent",
        "sentence": "no route matches a request for the model `gpt-4o-2024-08-06`: it would be forwarded to `default`, byte for byte as sent"
      }
    }
    "#);
    let said = explain(config, &body, &["--rewritten"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), body.as_str()));

    let said = explain(config, &body, &["--route", "team"]);
    assert!(
        said.out.starts_with("request.json: route `team`, to default, strategy masking\n"),
        "{}",
        said.out
    );
    let said = explain(config, &body.replace("gpt-4o-2024-08-06", "claude-x"), &[]);
    assert!(said.out.starts_with("request.json: route `claude`"), "{}", said.out);
    let said = explain(config, &body, &["--route", "teams"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert_snapshot!(said.err, @r#"
    there is no route `teams`
      hint: the routes are claude, team
    "#);
}

#[test]
fn standard_input_is_a_file_too() {
    let directory = TempDir::new().unwrap();
    let body = json!({"model": "my-own", "max_tokens": 100, "messages": []}).to_string();
    let said = run(&directory, "", &body, &["-"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(said.out.starts_with("standard input: route `default`"), "{}", said.out);
    for words in ["budget.fallback_window", "the request's max_tokens", "describe it in `[models]`"] {
        assert!(said.out.contains(words), "{words}:\n{}", said.out);
    }
}

#[test]
fn what_is_no_request_is_an_error_that_says_where() {
    let error = |body: &str| {
        let said = explain("", body, &[]);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{body}");
        said.err
    };
    assert_snapshot!(error("{\"model\": \"m\", \"input\": []}"), @r#"
    request.json: not the body of a chat completion: the body has no `messages`
      hint: one looks like {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}; the proxy would forward this one as it came
    "#);
    assert_snapshot!(error("{\"messages\": [\n  {\"role\": \"user\", \"content\": tru}\n]}"), @r#"
    request.json: not the body of a chat completion: the body is not valid JSON at byte 45 (line 2, column 31)
      hint: one looks like {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}; the proxy would forward this one as it came
    "#);
    assert!(error("").contains("not a JSON object"));
    assert!(error("[]").contains("not a JSON object"));
    assert!(error("{\"messages\": {}}").contains("`messages` is not an array"));

    let said = explain("", "{\"messages\": [], \"messages\": []}", &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(3), ""));
    assert_snapshot!(said.err, @r#"
    request.json: would be refused with 400 ambiguous_request: `messages` occurs twice
      hint: send it once
    "#);
    let said = explain("[server]\nmax_body = \"1KiB\"\n", &agent(), &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(3), ""));
    assert_snapshot!(said.err, @"request.json: would be refused with 413 request_too_large: it has 2,264 bytes, and `server.max_body` is 1,024");
    let said = run(&TempDir::new().unwrap(), "", "", &["missing.json"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert_snapshot!(said.err, @r#"
    missing.json: cannot be read: No such file or directory (os error 2)
      hint: check the path, or use `-` for standard input
    "#);
}

#[test]
fn a_tool_s_name_cannot_command_the_terminal() {
    let body = request(&[call("a", "\u{1b}[31mred\n"), result("a", "x")]);
    let said = explain("", &body, &[]);
    assert!(said.out.contains("calls \\u{1b}[31mred\\u{a}") && !said.out.contains('\u{1b}'), "{}", said.out);
}

#[test]
fn help_tells_the_views_apart_and_names_the_exit_codes() {
    let said = run(&TempDir::new().unwrap(), "", "", &["--help"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    for words in
        ["--json", "--diff", "--rewritten", "--route", "--strategy", "--config", "Examples:", "Exit codes:"]
    {
        assert!(said.out.contains(words), "{words}:\n{}", said.out);
    }
    let said = explain("", &agent(), &["--json", "--diff"]);
    assert_eq!(said.code, Some(2));
}

#[test]
fn the_budget_says_what_limits_it() {
    let budget = |config: &str| {
        let said = explain(config, &agent(), &[]);
        let lines = said.out.lines().skip_while(|line| *line != "budget").take(6);
        lines.collect::<Vec<&str>>().join("\n")
    };
    assert_snapshot!(budget("[context.budget]\nsafety_ratio = 0.9\nwindow_cap = 100000\nmax_input = 50000\n"), @r#"
    budget
        window                128,000  built-in table, entry `gpt-4o`
        safe                  100,000  safety_ratio 0.9 of the window, at most window_cap 100,000
     -  output reserve          2,048  ratio 0.2 of safe, at most cap 2,048, at least min 0
     -  overhead reserve        6,400  ratio 0.05 of the window, at least min 1,024, plus fixed 0
     =  input budget           50,000  at most max_input, else 91,552
    "#);
    let shared = budget("[context.budget]\nmax_context_ratio = 0.5\n");
    assert!(shared.contains("64,000  max_context_ratio 0.5 of the window, else 119,552"), "{shared}");
    let eaten = budget("[context.budget]\nwindow_cap = 2000\n");
    assert!(eaten.contains("0  the reserves take the whole window"), "{eaten}");
}
