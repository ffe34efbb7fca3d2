//! Sections 3 and 9: token counts without a tokenizer are estimated from text lengths.

use super::chat::ask;
use crate::conformance::scene::{Scene, message};
use crate::support::reply::figure;

const ESTIMATED: &str = "[models.\"estimated\"]\nwindow = 100000\nencoding = \"estimate\"\n";

/// `ceil(characters / 4 × 1.25)`.
fn estimate(characters: u64) -> u64 {
    (characters * 5).div_ceil(16)
}

#[tokio::test]
async fn the_estimate_is_a_quarter_of_the_characters_plus_a_quarter() {
    let scene = Scene::start("budgeted-chat", ESTIMATED).await;
    let tokens = async |text: &str| {
        let reply = ask(&scene, "estimated", "c", &[message("user", text)]).await;
        figure(&reply, "x-tidegate-tokens-before")
    };
    // The tokens around the text: message delimiters, the role, and the reply priming.
    let around = tokens("").await;
    assert_eq!(around, 3 + estimate("user".len() as u64) + 3);
    for characters in [1, 3, 4, 15, 16, 17, 31, 32, 33, 1_000, 3_999] {
        let text = "a".repeat(usize::try_from(characters).unwrap());
        assert_eq!(tokens(&text).await - around, estimate(characters), "{characters} characters");
    }
    // The document's arithmetic, with characters and not bytes.
    assert_eq!((estimate(16), estimate(17), estimate(1_000)), (5, 6, 313));
    assert_eq!(tokens(&"ü".repeat(1_000)).await - around, 313);
}

/// Thresholds apply to the estimate as well.
#[tokio::test]
async fn thresholds_apply_to_the_estimate() {
    let scene =
        Scene::start("budgeted-chat", "[models.\"estimated\"]\nwindow = 2530\nencoding = \"estimate\"\n")
            .await;
    let long = message("user", &"a".repeat(3_200));
    let reply = ask(&scene, "estimated", "c", &[long]).await;
    // 1,000 tokens for the text alone.
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
    let reply = ask(&scene, "estimated", "c", &[message("user", &"a".repeat(3_100))]).await;
    assert_eq!(reply.status, 200);
}
