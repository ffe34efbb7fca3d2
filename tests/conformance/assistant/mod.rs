//! Profile `assistant`.

use crate::scene::{Scene, message};

#[tokio::test]
async fn the_history_is_as_long_as_its_block_may_be() {
    let scene = Scene::start("assistant", "").await;
    let mut messages = vec![message("system", "Help.")];
    for turn in 0..40 {
        let role = if turn % 2 == 0 { "user" } else { "assistant" };
        messages.push(message(role, &format!("part {turn} {}", "word ".repeat(98))));
    }
    messages.push(message("user", "And now?"));
    let (reply, sent) = scene.say("c", &messages).await;
    let history: Vec<&str> = sent.contents().into_iter().filter(|text| text.starts_with("part")).collect();
    assert_eq!(history.len(), 25, "{:?}", reply.headers);
    assert!(sent.summary().is_some());
}
