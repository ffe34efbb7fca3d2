//! Decisions and their reasons, refusals, and invalid requests.

use super::command::{ONE_TURN, agent, call, explain, request, result, run};
use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;

#[test]
fn a_refused_request_has_its_own_exit_code() {
    let config =
        &format!("{ONE_TURN}[models.\"gpt-4o\"]\nwindow = 1500\n[context.budget]\nrefuse_at = \"budget\"\n");
    let output = explain(config, &agent(), &[]);
    assert_eq!((output.code, output.err.as_str()), (Some(3), ""));
    let verdict = output.out.find("verdict: ").unwrap();
    assert_snapshot!(output.out[verdict..], @r#"
    verdict: refused with 422 context_budget_exceeded: it needs 278 input tokens even masked, and 176 may be used
      hint: it is 102 tokens over: send less, request a shorter response (`max_tokens`), keep less unmasked (`context.mask.keep`), or use a model with a larger window
    "#);
    assert!(output.out.contains("models.\"gpt-4o\".window"), "{}", output.out);
    for view in ["--diff", "--rewritten"] {
        let output = explain(config, &agent(), &[view]);
        assert_eq!((output.code, output.out.as_str()), (Some(3), ""));
        assert!(output.err.contains("context_budget_exceeded"), "{}", output.err);
    }
    let output = explain(config, &agent(), &["--json"]);
    let object: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!((output.code, &object["verdict"]["ending"]), (Some(3), &json!("refused")));
}

/// The reasons of all messages, one per line.
fn reasons(config: &str, body: &str, args: &[&str]) -> String {
    let output = explain(config, body, &[&["--json"], args].concat());
    let object: Value = serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{}", output.err));
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
fn the_strategy_can_be_overridden() {
    let output = explain(ONE_TURN, &agent(), &["--strategy", "passthrough"]);
    assert_eq!(output.code, Some(0));
    assert!(
        output.out.contains("strategy is passthrough") && !output.out.contains("mask.keep"),
        "{}",
        output.out
    );
    assert!(output.out.contains("verdict: forwarded byte for byte as sent: `passthrough`"), "{}", output.out);
    let output = explain(ONE_TURN, &agent(), &["--strategy", "rolling"]);
    assert_eq!((output.code, output.out.as_str()), (Some(2), ""));
    assert!(
        output.err.contains("expected one of: passthrough, masking, summarization, hybrid, window"),
        "{}",
        output.err
    );
}

#[test]
fn the_route_is_the_proxys_or_the_one_given() {
    let config = "[[routes]]\nname = \"claude\"\nmatch = { models = [\"claude-*\"] }\n\
                  [[routes]]\nname = \"team\"\nmatch = { headers = { x-team = \"a\" } }\n";
    let body = request(&[json!({"role": "user", "content": "Hello"})]);
    let output = explain(config, &body, &[]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_snapshot!(output.out, @r#"
    request.json: no route matches a request for the model `gpt-4o-2024-08-06`: it would be forwarded to `default`, byte for byte as sent
      hint: use --route to try a route that matches headers; the routes are claude, team
    "#);
    let output = explain(config, &body, &["--json"]);
    assert_snapshot!(output.out, @r#"
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
    let output = explain(config, &body, &["--rewritten"]);
    assert_eq!((output.code, output.out.as_str()), (Some(0), body.as_str()));

    let output = explain(config, &body, &["--route", "team"]);
    assert!(
        output.out.starts_with("request.json: route `team`, upstream `default`, strategy masking\n"),
        "{}",
        output.out
    );
    let output = explain(config, &body.replace("gpt-4o-2024-08-06", "claude-x"), &[]);
    assert!(output.out.starts_with("request.json: route `claude`"), "{}", output.out);
    let output = explain(config, &body, &["--route", "teams"]);
    assert_eq!((output.code, output.out.as_str()), (Some(1), ""));
    assert_snapshot!(output.err, @r#"
    no such route: `teams`
      hint: the routes are claude, team
    "#);
}

#[test]
fn a_request_can_come_from_standard_input() {
    let directory = TempDir::new().unwrap();
    let body = json!({"model": "my-own", "max_tokens": 100, "messages": []}).to_string();
    let output = run(&directory, "", &body, &["-"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert!(output.out.starts_with("standard input: route `default`"), "{}", output.out);
    for words in ["the upstream judges", "the request's max_tokens", "describe it in `[models]`"] {
        assert!(output.out.contains(words), "{words}:\n{}", output.out);
    }
}

#[test]
fn an_invalid_request_is_an_error_with_its_location() {
    let error = |body: &str| {
        let output = explain("", body, &[]);
        assert_eq!((output.code, output.out.as_str()), (Some(1), ""), "{body}");
        output.err
    };
    assert_snapshot!(error("{\"model\": \"m\", \"prompt\": []}"), @r#"
    request.json: not the body of a chat completion: the body has no `messages`
      hint: expected something like {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}; the proxy would forward this body unchanged
    "#);
    assert_snapshot!(error("{\"messages\": [\n  {\"role\": \"user\", \"content\": tru}\n]}"), @r#"
    request.json: not the body of a chat completion: the body is not valid JSON at byte 45 (line 2, column 31)
      hint: expected something like {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}; the proxy would forward this body unchanged
    "#);
    assert!(error("").contains("not a JSON object"));
    assert!(error("[]").contains("not a JSON object"));
    assert!(error("{\"messages\": {}}").contains("`messages` is not an array"));

    let output = explain("", "{\"messages\": [], \"messages\": []}", &[]);
    assert_eq!((output.code, output.out.as_str()), (Some(3), ""));
    assert_snapshot!(output.err, @r#"
    request.json: would be refused with 400 ambiguous_request: `messages` occurs twice
      hint: send it once
    "#);
    let output = explain("[server]\nmax_body = \"1KiB\"\n", &agent(), &[]);
    assert_eq!((output.code, output.out.as_str()), (Some(3), ""));
    assert_snapshot!(output.err, @"request.json: would be refused with 413 request_too_large: it has 2,264 bytes, but `server.max_body` is 1,024");
    let output = run(&TempDir::new().unwrap(), "", "", &["missing.json"]);
    assert_eq!((output.code, output.out.as_str()), (Some(1), ""));
    assert_snapshot!(output.err, @r#"
    missing.json: cannot be read: No such file or directory
      hint: check the path, or use `-` for standard input
    "#);
}

#[test]
fn a_tool_name_cannot_control_the_terminal() {
    let body = request(&[call("a", "\u{1b}[31mred\n"), result("a", "x")]);
    let output = explain("", &body, &[]);
    assert!(
        output.out.contains("calls \\u{1b}[31mred\\u{a}") && !output.out.contains('\u{1b}'),
        "{}",
        output.out
    );
}

#[test]
fn help_lists_the_views_and_exit_codes() {
    let output = run(&TempDir::new().unwrap(), "", "", &["--help"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    for words in
        ["--json", "--diff", "--rewritten", "--route", "--strategy", "--config", "Examples:", "Exit codes:"]
    {
        assert!(output.out.contains(words), "{words}:\n{}", output.out);
    }
    let output = explain("", &agent(), &["--json", "--diff"]);
    assert_eq!(output.code, Some(2));
}

#[test]
fn the_budget_shows_its_limits() {
    let budget = |config: &str| {
        let output = explain(config, &agent(), &[]);
        let lines = output.out.lines().skip_while(|line| *line != "budget").take(6);
        lines.collect::<Vec<&str>>().join("\n")
    };
    assert_snapshot!(budget("[context.budget]\nsafety_ratio = 0.9\nwindow_cap = 100000\nmax_input = 50000\n"), @r#"
    budget
        window                128,000  built-in table, entry `gpt-4o`
        safe                  100,000  safety_ratio 0.9 of the window, at most window_cap 100,000
     -  output reserve          2,048  ratio 0.2 of safe, at most cap 2,048, at least min 0
     -  overhead reserve        6,400  ratio 0.05 of the window, at least min 1,024, plus fixed 0
     =  input budget           50,000  limited by max_input, otherwise 91,552
    "#);
    let shared = budget("[context.budget]\nmax_context_ratio = 0.5\n");
    assert!(shared.contains("64,000  max_context_ratio 0.5 of the window, otherwise 119,552"), "{shared}");
    let eaten = budget("[context.budget]\nwindow_cap = 2000\n");
    assert!(eaten.contains("0  the reserves take the whole window"), "{eaten}");
}
