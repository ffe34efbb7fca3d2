//! Profile `rolling-memory`.

use crate::scene::{Scene, edited, message, said};

#[tokio::test]
async fn only_what_is_new_is_sent_and_the_rest_is_put_before_it() {
    let scene = Scene::start("rolling-memory", "").await;
    for turn in 1..=7 {
        scene.upstream.answer(said(&format!(
            "answer {turn}: the pier {turn} is {turn} metres long, {}",
            "as measured. ".repeat(8)
        )));
        let question = format!("question {turn}: how long is pier {turn}? {}", "please measure. ".repeat(8));
        let (reply, sent) =
            scene.say("c", &[message("system", "Be brief."), message("user", &question)]).await;
        let recent = sent
            .contents()
            .iter()
            .filter(|text| text.starts_with("question") || text.starts_with("answer"))
            .count();
        if turn < 7 {
            assert_eq!((recent, edited(&reply, "folded")), (2 * turn - 1, 0), "turn {turn}");
        } else {
            // Twelve messages are more than six and four: all but six are folded.
            assert_eq!((recent, edited(&reply, "folded")), (7, 6));
            assert_eq!(reply.header("x-tidegate-trigger"), Some("messages"));
            assert!(sent.summary().is_some());
        }
    }
}
