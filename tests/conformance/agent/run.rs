//! Runs of an agent: a task, then turns of a thought, a call and its result.

use crate::conformance::operator;
use crate::conformance::scene::{Scene, message};
use crate::support::client::admin;
use crate::support::within;
use serde_json::{Value, json};

/// A provider without a discount on cached input. There the profile masks at every turn, as the document says.
pub(crate) const NO_CACHE: &str = "[models.\"gpt-4o\"]\ninput = 2.5\ncached_input = 2.5\noutput = 10.0\n";

pub(crate) const PLACEHOLDER: &str = "[OMITTED_OBSERVATION: too old; available in memory store]";

/// The arguments and the result of one turn's call.
pub(crate) struct Step {
    pub(crate) arguments: String,
    pub(crate) result: String,
}

impl Step {
    pub(crate) fn new(arguments: impl Into<String>, result: impl Into<String>) -> Step {
        Step { arguments: arguments.into(), result: result.into() }
    }
}

/// A run that makes progress in every turn.
pub(crate) fn run(turns: usize) -> Vec<Value> {
    let step = |turn: usize| {
        Step::new(format!("{{\"file\":{turn}}}"), format!("result {turn}: {}", "a line of it ".repeat(20)))
    };
    run_of((0..turns).map(step))
}

pub(crate) fn run_of(steps: impl IntoIterator<Item = Step>) -> Vec<Value> {
    let mut messages =
        vec![message("system", "You mend programs."), message("user", "Why does the build fail?")];
    for (turn, Step { arguments, result }) in steps.into_iter().enumerate() {
        let id = format!("call-{turn}");
        let call =
            json!({ "id": id, "type": "function", "function": { "name": "poll", "arguments": arguments } });
        let thought =
            format!("In turn {turn} I poll at another part. {}", "It may be the cause of it. ".repeat(12));
        messages.push(json!({ "role": "assistant", "content": thought, "reasoning_content": format!("because {turn}"), "tool_calls": [call] }));
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
    }
    messages
}

/// The index of a turn's result in a run.
pub(crate) fn result_at(turn: usize) -> usize {
    2 * turn + 3
}

/// The value of a metric, summed over all routes and models.
pub(crate) async fn metric(scene: &Scene, name: &str) -> f64 {
    operator::metric(&scene.tidegate, name).await
}

/// Waits until this many requests are counted, which happens after their responses.
pub(crate) async fn until_counted(scene: &Scene, requests: u64) -> Value {
    let poll = async {
        loop {
            let page = admin(scene.tidegate.admin, "/api/conversations").await.json();
            let all = page["conversations"].as_array().unwrap().iter();
            if all.map(|one| one["requests"].as_u64().unwrap()).sum::<u64>() == requests {
                return page;
            }
        }
    };
    within(&format!("{requests} requests are counted"), poll).await
}
