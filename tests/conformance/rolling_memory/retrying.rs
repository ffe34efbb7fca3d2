//! Section 10: a retry changes nothing.

use super::turns::{INSTRUCTION, body, headers, send};
use crate::conformance::scene::{Scene, Sent, completion, message};
use serde_json::Value;
use tidegate_testkit::Answer;

fn asked(text: &str) -> Value {
    body("gpt-4o", &[message("system", INSTRUCTION), message("user", text)])
}

/// The texts of the context of the next question.
async fn context_of(scene: &Scene, text: &str) -> Vec<String> {
    let (_, sent) = scene.send("c", &[message("system", INSTRUCTION), message("user", text)]).await;
    sent.contents().into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_retry_after_an_upstream_error_changes_nothing() {
    let scene = Scene::start("rolling-memory", "").await;
    scene.upstream.then(Answer::error(500, "server_error", "Something went wrong."));
    let reply = send(scene.tidegate.address, &headers("c"), &asked("one")).await;
    assert_eq!(reply.status, 500);
    let first = scene.upstream.next_request().await;
    let reply = send(scene.tidegate.address, &headers("c"), &asked("one")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(scene.upstream.next_request().await.body, first.body);
    assert_eq!(context_of(&scene, "two").await, [INSTRUCTION, "one", "ok", "two"]);
}

/// A client that did not receive the answer sends the same key.
#[tokio::test]
async fn a_retry_of_an_answered_request_replaces_the_answer() {
    let scene = Scene::start("rolling-memory", "").await;
    let keyed = [&headers("c")[..], &[("idempotency-key", "k")]].concat();
    for answer in ["the first answer", "the second answer"] {
        scene.upstream.answer(completion(answer));
        let reply = send(scene.tidegate.address, &keyed, &asked("one")).await;
        assert_eq!(reply.status, 200);
        let sent = Sent(scene.upstream.next_request().await.json());
        assert_eq!(sent.contents(), [INSTRUCTION, "one"]);
    }
    // The conversation has the second answer, like the client.
    assert_eq!(context_of(&scene, "two").await, [INSTRUCTION, "one", "the second answer", "two"]);
}

/// Without such a key, the same question is a new turn, whatever an SDK has counted: the client has the answer to the first.
#[tokio::test]
async fn a_repeated_question_is_new() {
    let scene = Scene::start("rolling-memory", "").await;
    for (count, expected) in [("0", &[INSTRUCTION, "one"][..]), ("1", &[INSTRUCTION, "one", "ok", "one"])] {
        let counted = [&headers("c")[..], &[("x-stainless-retry-count", count)]].concat();
        let reply = send(scene.tidegate.address, &counted, &asked("one")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(Sent(scene.upstream.next_request().await.json()).contents(), expected);
    }
}
