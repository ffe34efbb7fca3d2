//! Summaries and markers: what is forwarded stays a request that the API accepts.

use super::{send, upstream};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tidegate_testkit::MockUpstream;
use tidegate_testkit::responses_api::{assert_kept_together, assert_valid};

async fn start(settings: &str, upstream: &MockUpstream) -> Tidegate {
    let settings = format!("[store]\nurl = \"memory:\"\n{settings}");
    Setup::new(&settings).before(upstream).start().await
}

/// How an agent answers.
#[derive(Clone, Copy, PartialEq)]
enum Agent {
    /// Each answer begins with reasoning, all calls first.
    Plain,
    /// Items have the provider's ids, calls and results alternate, and only some answers begin with reasoning.
    Named,
    /// Some items are only referred to.
    Referring,
}

/// A conversation in which a question comes at every third step.
fn request(steps: usize, agent: Agent) -> String {
    let mut items = vec![json!({"role": "user", "content": "Question 0: how long is pier 0?"})];
    for step in 0..steps {
        let named = |mut item: Value, id: String| {
            if agent == Agent::Named {
                item["id"] = json!(id);
            }
            item
        };
        if agent != Agent::Named || step % 2 == 0 {
            items.push(json!({"type": "reasoning", "id": format!("rs_{step}"), "summary": [], "encrypted_content": "gAAA"}));
        }
        if step % 3 == 2 {
            let text = format!("Pier {step} is long. ") + &"More of it. ".repeat(30);
            let words = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
            items.push(named(words, format!("msg_{step}")));
            items.push(json!({"role": "user", "content": [{"type": "input_text", "text": format!("Question {step}: and the next one?")}]}));
            continue;
        }
        let call = |name: &str| {
            let id = format!("{name}{step}");
            let call = json!({"type": "function_call", "call_id": id, "name": "measure", "arguments": "{}"});
            named(call, format!("fc_{id}"))
        };
        let result = |name: &str| {
            json!({"type": "function_call_output", "call_id": format!("{name}{step}"),
            "output": format!("pier {step}: ") + &"nine metres and a bit\n".repeat(20)})
        };
        match agent {
            Agent::Plain => items.extend([call("a"), call("b"), result("a"), result("b")]),
            Agent::Named => items.extend([call("a"), result("a"), call("b"), result("b")]),
            Agent::Referring if step % 6 == 1 => {
                items.push(json!({"type": "item_reference", "id": format!("fc_a{step}")}));
                items.push(result("a"));
            }
            Agent::Referring => items.extend([call("a"), result("a")]),
        }
    }
    json!({"model": "gpt-5", "instructions": "Be exact.", "input": items}).to_string()
}

async fn grow(settings: &str, agent: Agent, removes: &str) -> bool {
    let upstream = upstream().await;
    let tidegate = start(settings, &upstream).await;
    let mut was_shortened = false;
    for steps in 1..24 {
        let sent = request(steps, agent);
        let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
        let parse = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let (before, after) = (parse(&sent), parse(&arrived));
        assert_valid(&before);
        assert_valid(&after);
        assert_kept_together(&before, &after);
        let edits = reply.header("x-tidegate-edits").unwrap();
        was_shortened |= !edits.contains(&format!("{removes}=0"));
        let end = |request: &Value| request["input"].as_array().unwrap().last().unwrap().clone();
        if edits == "masked=0,folded=0,dropped=0" {
            assert_eq!(arrived, sent);
        } else if after["input"].as_array().unwrap().len() > 2 {
            assert_eq!(end(&after), end(&before), "{steps} steps");
        }
    }
    was_shortened
}

const FOLDING: &str = "[context]\nstrategy = \"summarization\"\n[context.recall]\nauto = false\n[context.fold]\nmode = \"inline\"\nwhen = { user_turns = 4 }\nkeep = { user_turns = 2 }\n";
const PRESSED: &str = "[context]\nstrategy = \"hybrid\"\n[context.recall]\nauto = false\n[context.fold]\nmode = \"inline\"\n[context.budget]\nmax_input = 1500\n";
const WINDOW: &str =
    "[context]\nstrategy = \"window\"\n[context.recall]\nauto = false\n[context.budget]\nmax_input = 4000\n";

#[tokio::test]
async fn a_folded_conversation_stays_valid() {
    assert!(grow(FOLDING, Agent::Plain, "folded").await);
    assert!(grow(FOLDING, Agent::Named, "folded").await);
    grow(FOLDING, Agent::Referring, "folded").await;
}

#[tokio::test]
async fn a_conversation_folded_under_pressure_stays_valid() {
    assert!(grow(PRESSED, Agent::Plain, "folded").await);
    assert!(grow(PRESSED, Agent::Named, "folded").await);
    grow(PRESSED, Agent::Referring, "folded").await;
}

#[tokio::test]
async fn a_conversation_without_its_middle_stays_valid() {
    assert!(grow(WINDOW, Agent::Plain, "dropped").await);
    assert!(grow(WINDOW, Agent::Named, "dropped").await);
}

/// A text in place of the items becomes one of two where a message of ours has to stand beside it.
#[tokio::test]
async fn notes_stand_beside_a_text() {
    let upstream = upstream().await;
    for role in ["user", "system"] {
        let settings = format!("[context.fold]\nrole = \"{role}\"\n");
        let tidegate = start(&settings, &upstream).await;
        let (reply, _) = send(&tidegate, &upstream, r#"{"model":"gpt-5","input":"a"}"#).await;
        assert_eq!(reply.status, 200);
    }
}
