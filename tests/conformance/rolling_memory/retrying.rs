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

/// An SDK that did not receive the answer sends a retry header.
#[tokio::test]
async fn a_retry_of_an_answered_request_replaces_the_answer() {
    let scene = Scene::start("rolling-memory", "").await;
    let first = context_of(&scene, "one").await;
    scene.upstream.answer(completion("the second answer"));
    let again = [&headers("c")[..], &[("x-stainless-retry-count", "1")]].concat();
    let reply = send(scene.tidegate.address, &again, &asked("one")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(Sent(scene.upstream.next_request().await.json()).contents(), first);
    // The conversation has the second answer, like the client.
    assert_eq!(context_of(&scene, "two").await, [INSTRUCTION, "one", "the second answer", "two"]);
}

/// Without a retry header, the same question is a new turn.
#[tokio::test]
async fn a_repeated_question_without_a_retry_header_is_new() {
    let scene = Scene::start("rolling-memory", "").await;
    let first = [&headers("c")[..], &[("x-stainless-retry-count", "0")]].concat();
    for expected in [&[INSTRUCTION, "one"][..], &[INSTRUCTION, "one", "ok", "one"]] {
        let reply = send(scene.tidegate.address, &first, &asked("one")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(Sent(scene.upstream.next_request().await.json()).contents(), expected);
    }
}
