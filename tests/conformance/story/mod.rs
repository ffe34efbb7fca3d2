//! Profile `story`.

use crate::scene::{Scene, edited, message};

#[tokio::test]
async fn a_long_story_keeps_its_beginning_and_its_end() {
    let scene = Scene::start("story", "[models.\"tiny\"]\nwindow = 30000\n").await.model("tiny");
    let mut messages = vec![message("system", "Tell.")];
    for turn in 0..60 {
        let role = if turn % 2 == 0 { "user" } else { "assistant" };
        messages.push(message(role, &format!("part {turn} {}", "word ".repeat(400))));
    }
    messages.push(message("user", "And then?"));
    let (reply, sent) = scene.say("c", &messages).await;
    assert!(edited(&reply, "dropped") > 20);
    assert!(sent.has("part 0 ") && sent.has("part 59 ") && !sent.has("part 20 "));
    assert!(sent.has("left out here"));
}
