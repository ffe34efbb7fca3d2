//! The table, the JSON, the diff and the rewritten request.

use super::command::{ONE_TURN, agent, call, explain, request, result};
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn the_table_shows_each_action_with_its_reason() {
    let output = explain(ONE_TURN, &agent(), &[]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_snapshot!(output.out, @r#"
    request.json: route `default`, upstream `default`, strategy masking

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
     requested   gpt-4o-2024-08-06
     matched     built-in entry `gpt-4o`
     encoding    o200k_base, exact
     prices      $2.50 input, $1.25 cached, $2.50 written to the cache, $10.00 output, per million
     cache       automatic
     cache life  10m

    verdict: fits: forwarded with 1 message masked, 119,274 of 119,552 input tokens left
    "#);
}

#[test]
fn the_json_has_the_same_figures() {
    let output = explain(ONE_TURN, &agent(), &["--json"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    let object: Value = serde_json::from_str(&output.out).unwrap();
    let members: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    let promised = [
        "budget", "folding", "masking", "messages", "model", "observe", "route", "strategy", "upstream",
        "usage", "verdict",
    ];
    assert_eq!(members, promised);
    assert_eq!((object["messages"].as_array().unwrap().len(), &object["folding"]), (8, &Value::Null));
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
        "refuse_above": 128000,
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
        "bound": 0,
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
        "dropped": 0,
        "ending": "edited",
        "folded": 0,
        "left": 119274,
        "masked": 1,
        "over": 0,
        "sentence": "fits: forwarded with 1 message masked, 119,274 of 119,552 input tokens left",
        "trimmed": 0,
        "untagged": 0
      },
      {
        "asked": "gpt-4o-2024-08-06",
        "cache": "automatic",
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
fn the_diff_shows_only_changed_messages() {
    let tagged =
        json!({"role": "user", "observation": {"type": "tool_output"}, "name": "shell", "content": "ok"});
    let body = request(&[
        json!({"role": "user", "content": "Go on."}),
        call("a", "read_file"),
        result("a", &"one line of output\n".repeat(40)),
        json!({"role": "assistant", "content": "Done."}),
        tagged,
    ]);
    let output = explain(ONE_TURN, &body, &["--diff"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_snapshot!(output.out, @r#"
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
fn the_rewritten_request_differs_only_by_the_edits() {
    let output = "one line of output. ".repeat(40);
    let body = |content: &str| {
        format!(
            "{{ \"seed\": 1e2, \"messages\": [{{\"role\":\"user\",\"content\":\"x\"}},\n{{\"role\":\"assistant\",\
             \"content\":\"\\u0061\"}}, {{\"content\":\"{content}\", \"role\":\"tool\",\"tool_call_id\":\"c\"}}, \
             {{\"role\":\"assistant\",\"content\":\"b\"}}]}}\n"
        )
    };
    let output = explain(ONE_TURN, &body(&output), &["--rewritten"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_eq!(output.out, body("[OMITTED_OBSERVATION: too old; available in memory store]"));
}

#[test]
fn an_unchanged_request_has_an_empty_diff_and_a_note() {
    let body = request(&[json!({"role": "user", "content": "Hello"})]);
    let output = explain("", &body, &["--diff"]);
    assert_eq!((output.code, output.out.as_str()), (Some(0), ""));
    assert_snapshot!(output.err, @"request.json: fits: forwarded byte for byte as sent, 119,544 of 119,552 input tokens left");
    let output = explain("", &body, &["--rewritten"]);
    assert_eq!((output.code, output.out.as_str()), (Some(0), body.as_str()));
}
