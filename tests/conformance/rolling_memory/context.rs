//! Sections 1, 2 and 4: the parts of the context and their order.

use super::turns::{INSTRUCTION, exchanged, question, recent, turn, turns};
use crate::conformance::scene::{Scene, message};
use crate::support::reply::edited;

#[tokio::test]
async fn the_context_is_in_the_documents_order() {
    let scene = Scene::start("rolling-memory", "").await;
    let (_, sent) = turns(&scene, "c", 1..=7).await;
    let contents = sent.contents();
    assert_eq!(contents[0], INSTRUCTION);
    assert!(contents[1].starts_with("<conversation_record>"));
    assert_eq!(contents[2..8], exchanged(4..=6));
    assert_eq!(contents[8..], [question(7)]);
    let roles: Vec<&str> = sent.messages().iter().map(|one| one["role"].as_str().unwrap()).collect();
    let talk = ["user", "assistant", "user", "assistant", "user", "assistant", "user"];
    assert_eq!(roles, [&["system", "system"][..], &talk].concat());
}

#[tokio::test]
async fn without_a_summary_there_is_no_placeholder() {
    let scene = Scene::start("rolling-memory", "").await;
    let (_, sent) = turns(&scene, "c", 1..=2).await;
    let expected: Vec<String> = [vec![INSTRUCTION.to_owned()], exchanged(1..=1), vec![question(2)]].concat();
    assert_eq!(sent.contents(), expected);
}

#[tokio::test]
async fn a_summary_is_in_every_later_context() {
    let scene = Scene::start("rolling-memory", "").await;
    let (_, sent) = turns(&scene, "c", 1..=7).await;
    let first = sent.summary().expect("a summary").clone();
    for number in 8..=9 {
        let (reply, sent) = turn(&scene, "c", number).await;
        assert_eq!(sent.summary(), Some(&first), "turn {number}");
        // Six messages were kept, and each turn adds two, up to ten.
        assert_eq!(recent(&sent).len(), 6 + 2 * (number - 7) + 1);
        assert_eq!((edited(&reply, "folded"), reply.header("x-tidegate-trigger")), (6, None));
    }
    let (_, sent) = turn(&scene, "c", 10).await;
    assert!(sent.summary().is_some_and(|summary| *summary != first));
}

/// A client may send instructions again or omit them.
#[tokio::test]
async fn instructions_are_kept_if_not_sent_again() {
    let scene = Scene::start("rolling-memory", "").await;
    turn(&scene, "c", 1).await;
    let (_, sent) = scene.send("c", &[message("user", &question(2))]).await;
    assert_eq!(sent.contents()[0], INSTRUCTION);
    let (_, sent) = scene.send("c", &[message("system", "Be kind."), message("user", &question(3))]).await;
    assert_eq!((sent.contents()[0], sent.has(INSTRUCTION)), ("Be kind.", false));
}

/// Earlier messages belong to their conversation only.
#[tokio::test]
async fn a_conversation_has_its_own_state() {
    let scene = Scene::start("rolling-memory", "").await;
    turns(&scene, "c", 1..=7).await;
    let (_, sent) = turn(&scene, "d", 1).await;
    assert_eq!(sent.contents(), [INSTRUCTION, &question(1)]);
}
