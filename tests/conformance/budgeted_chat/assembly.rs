//! Section 6: the order of a context, and what is never dropped.

use super::chat::{INSTRUCTION, MODELS, answer, ask, chat, longer, question};
use crate::conformance::scene::{Scene, Sent, message};
use crate::support::reply::{edited, figure};
use serde_json::{Value, json};

/// Instructions of every layer, the room's goal and mode, the summary, recent messages, and the new message.
#[tokio::test]
async fn the_context_is_in_the_documents_order() {
    let scene = Scene::start("budgeted-chat", "").await;
    let mut messages = chat(8);
    let mode = message("developer", "Mode: planning.");
    let goal = message("system", "The goal of this room is to mend the piers.");
    messages.splice(1..1, [mode.clone(), goal.clone()]);
    let (_, sent) = scene.send("c", &messages).await;
    let got = sent.messages();
    assert_eq!(got[..3], [message("system", INSTRUCTION), mode, goal]);
    assert_eq!((sent.summary(), &got[3]["role"]), (Some(&got[3]), &json!("system")));
    // The last four turns in order, and the new question.
    let recent: Vec<Value> = (4..=7)
        .flat_map(|turn| [message("user", &question(turn)), message("assistant", &answer(turn))])
        .collect();
    assert_eq!(got[4..12], recent);
    assert_eq!(got[12..], [message("user", &question(8))]);
}

fn call(id: &str, path: &str) -> Value {
    let function = json!({ "name": "read", "arguments": json!({ "path": path }).to_string() });
    json!({ "id": id, "type": "function", "function": function })
}

fn result(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

/// A conversation that ends with two calls and their results: its last turn is not finished.
fn unresolved(turns: usize) -> Vec<Value> {
    let mut messages = chat(turns);
    let calls = json!([call("call_1", "piers.txt"), call("call_2", "planks.txt")]);
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
    messages.push(result("call_1", &format!("piers {}", "line ".repeat(100))));
    messages.push(result("call_2", &format!("planks {}", "line ".repeat(100))));
    messages
}

/// At every budget, down to those that refuse the request.
#[tokio::test]
async fn instructions_the_last_question_and_open_calls_are_never_dropped() {
    let mut forwarded = 0;
    let rooms: Vec<u64> = (300..=1_400).step_by(100).collect();
    let models: String = rooms
        .iter()
        .map(|room| format!("[models.\"m{room}\"]\nwindow = {}\nencoding = \"o200k_base\"\n", room + 2_048))
        .collect();
    let reserves = "[context.budget]\noutput_reserve = { cap = 1024, ratio = 1.0, min = 0 }\n";
    let scene = Scene::start("budgeted-chat", &format!("{reserves}{models}")).await;
    let mut messages = unresolved(10);
    messages.insert(1, message("developer", "Mode: planning."));
    let end = messages.len() - 4;
    for room in &rooms {
        let reply = ask(&scene, &format!("m{room}"), &format!("c{room}"), &messages).await;
        assert_eq!(figure(&reply, "x-tidegate-budget"), *room);
        if reply.status == 422 {
            assert_eq!(reply.error_code(), "context_budget_exceeded");
            continue;
        }
        forwarded += 1;
        let sent = Sent(scene.upstream.next_request().await.json());
        assert!(figure(&reply, "x-tidegate-tokens-after") <= *room);
        assert!(edited(&reply, "folded") + edited(&reply, "dropped") > 0);
        assert_eq!(sent.messages()[..2], messages[..2], "instructions, with room for {room}");
        let tail = &sent.messages()[sent.messages().len() - 4..];
        assert_eq!(
            tail,
            &messages[end..],
            "the last question, the calls and their results, with room for {room}"
        );
    }
    assert!((5..rooms.len()).contains(&forwarded), "{forwarded} of {} were forwarded", rooms.len());
}

/// The new message is never shortened: it fits or the request is refused.
#[tokio::test]
async fn a_long_question_is_sent_whole_or_refused() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let last = chat(8).len() - 1;
    let fits = longer(&chat(8), last, 600);
    let reply = ask(&scene, "even", "fits", &fits).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let sent = Sent(scene.upstream.next_request().await.json());
    assert_eq!(sent.messages().last(), fits.last());
    let reply = ask(&scene, "even", "over", &longer(&chat(8), last, 1_000)).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
}
