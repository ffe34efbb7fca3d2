//! Section "Tuning knobs": `plateauWindow`, which only hints at stopping.

use super::run::{Step, metric, run, run_of};
use crate::conformance::scene::{Scene, message};
use crate::support::reply::Reply;
use serde_json::Value;

fn hint(reply: &Reply) -> Option<&str> {
    reply.header("x-tidegate-stop-hint")
}

async fn hinted(scene: &Scene, name: &str, messages: &[Value]) -> Option<String> {
    let (reply, sent) = scene.send(name, messages).await;
    assert_eq!(sent.messages().len(), messages.len());
    hint(&reply).map(str::to_owned)
}

/// A run of turns with different calls whose results all report a failure.
fn failing(turns: usize) -> Vec<Value> {
    let results = [
        "Error: no part",
        "Traceback (most recent call last):\n  in",
        "{\"error\":\"gone\",\"at\":",
        "fatal: no such thing",
    ];
    run_of((0..turns).map(|turn| {
        let (start, end) =
            (results[turn % 4], if turn % 4 == 2 { format!("{turn}}}") } else { format!(" {turn}") });
        Step::new(format!("{{\"part\":{turn}}}"), format!("{start}{end}"))
    }))
}

fn same_call(turns: usize) -> Vec<Value> {
    run_of((0..turns).map(|turn| Step::new("{\"part\":7}", format!("another view of it, number {turn}"))))
}

fn same_result(turns: usize) -> Vec<Value> {
    run_of((0..turns).map(|turn| Step::new(format!("{{\"part\":{turn}}}"), "There is nothing to be seen.")))
}

/// The profile's window is five turns.
#[tokio::test]
async fn five_failed_turns_are_a_plateau_and_four_are_not() {
    let scene = Scene::start("agent", "").await;
    for (turns, expected) in [(4, None), (5, Some("plateau=5")), (6, Some("plateau=6"))] {
        assert_eq!(hinted(&scene, &format!("f{turns}"), &failing(turns)).await.as_deref(), expected);
    }
}

/// The first turn was new, so five turns without progress are six in all.
#[tokio::test]
async fn repeated_calls_and_repeated_results_are_a_plateau() {
    let scene = Scene::start("agent", "").await;
    for (turns, expected) in [(5, None), (6, Some("plateau=5")), (8, Some("plateau=7"))] {
        assert_eq!(hinted(&scene, &format!("c{turns}"), &same_call(turns)).await.as_deref(), expected);
        assert_eq!(hinted(&scene, &format!("r{turns}"), &same_result(turns)).await.as_deref(), expected);
    }
    assert!(
        hinted(&scene, "long", &same_call(40)).await.is_some(),
        "the hint stopped although nothing changed"
    );
}

/// Two alternating calls are no progress.
#[tokio::test]
async fn alternating_calls_are_a_plateau() {
    let scene = Scene::start("agent", "").await;
    let alternating =
        |turn: usize| Step::new(format!("{{\"part\":{}}}", turn % 2), format!("view number {turn}"));
    assert_eq!(hinted(&scene, "c", &run_of((0..7).map(alternating))).await.as_deref(), Some("plateau=5"));
}

#[tokio::test]
async fn progress_resets_the_count() {
    let scene = Scene::start("agent", "").await;
    let (reply, _) = scene.send("c", &same_call(7)).await;
    assert_eq!(hint(&reply), Some("plateau=6"));
    let continued = |more: usize| {
        let steps =
            (0..7).map(|turn| Step::new("{\"part\":7}", format!("another view of it, number {turn}")));
        let step = Step::new("{\"part\":8}", "Here is what was looked for.");
        run_of(
            steps
                .chain([step])
                .chain((0..more).map(|turn| Step::new("{\"part\":7}", format!("view, number {turn}")))),
        )
    };
    for (more, expected) in [(0, None), (4, None), (5, Some("plateau=5"))] {
        let (reply, _) = scene.send("c", &continued(more)).await;
        assert_eq!(hint(&reply), expected, "{more} after it");
    }
}

#[tokio::test]
async fn the_window_is_configurable_and_hints_are_counted() {
    let scene = Scene::start("agent", "[context.limits]\nplateau_window = 2\n").await;
    assert_eq!(hinted(&scene, "one", &failing(1)).await, None);
    assert_eq!(metric(&scene, "tidegate_stop_hints_total").await, 0.0);
    assert_eq!(hinted(&scene, "two", &failing(2)).await.as_deref(), Some("plateau=2"));
    assert_eq!(hinted(&scene, "three", &same_call(3)).await.as_deref(), Some("plateau=2"));
    assert_eq!(metric(&scene, "tidegate_stop_hints_total").await, 2.0);
}

#[tokio::test]
async fn progress_is_not_a_plateau() {
    let scene = Scene::start("agent", "").await;
    assert_eq!(hinted(&scene, "new", &run(9)).await, None);
    // Different edits with the same result.
    let edits =
        (0..9).map(|turn| Step::new(format!("{{\"edit\":{turn}}}"), if turn % 2 == 0 { "ok" } else { "" }));
    assert_eq!(hinted(&scene, "edits", &run_of(edits)).await, None);
    // A test run after each edit, with a failing test to work on.
    let tested = (0..12).map(|turn| match turn % 2 {
        0 => Step::new(format!("{{\"edit\":{turn}}}"), "ok"),
        _ => Step::new("{\"test\":\"all\"}", "Error: one test has failed"),
    });
    assert_eq!(hinted(&scene, "tested", &run_of(tested)).await, None);
    // A result with an error count of zero is not a failure.
    let linted = (0..9)
        .map(|turn| Step::new(format!("{{\"lint\":{turn}}}"), format!("{{\"errors\":0,\"lines\":{turn}}}")));
    assert_eq!(hinted(&scene, "linted", &run_of(linted)).await, None);
}

/// A chat with different questions that all get the same answer.
#[tokio::test]
async fn new_questions_are_progress_and_repeated_ones_are_not() {
    let scene = Scene::start("agent", "").await;
    let chat = |question: &dyn Fn(usize) -> String| {
        let mut messages = Vec::new();
        for turn in 0..8 {
            messages.extend([message("user", &question(turn)), message("assistant", "It is noted down.")]);
        }
        messages.push(message("user", "Thank you."));
        messages
    };
    assert_eq!(hinted(&scene, "new", &chat(&|turn| format!("Note item {turn}."))).await, None);
    assert_eq!(hinted(&scene, "same", &chat(&|_| "Note it.".to_owned())).await.as_deref(), Some("plateau=7"));
}
