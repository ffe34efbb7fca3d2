//! Section "Strategies", and the variable that selects one.

use super::run::{NO_CACHE, result_at, run};
use crate::conformance::scene::Scene;
use crate::support::reply::{edited, figure};

/// The strategy, and the number of masked and folded messages in a run of thirty turns.
async fn thirty_turns(scene: &Scene) -> (String, usize, usize) {
    let (reply, sent) = scene.send("c", &run(30)).await;
    // The newest turns are unchanged, whatever the strategy.
    let all = run(30);
    assert_eq!(&sent.messages()[sent.messages().len() - 20..], &all[all.len() - 20..]);
    let strategy = reply.header("x-tidegate-strategy").unwrap().to_owned();
    (strategy, edited(&reply, "masked"), edited(&reply, "folded"))
}

#[tokio::test]
async fn masking_is_the_default_and_every_strategy_can_be_chosen() {
    let scene = Scene::start("agent", "").await;
    assert_eq!(thirty_turns(&scene).await, ("masking".to_owned(), 20, 0));
    for (strategy, masked) in [("masking", 20), ("summarization", 0), ("hybrid", 0)] {
        let by_variable =
            Scene::start_with("agent", "", |setup| setup.env("AGENT_CONTEXT_STRATEGY", strategy)).await;
        let by_setting = Scene::start("agent", &format!("strategy = \"{strategy}\"\n")).await;
        for scene in [by_variable, by_setting] {
            // A summary covers twenty turns of two messages. The task stays, because it is the last request.
            let folded = if strategy == "masking" { 0 } else { 40 };
            assert_eq!(thirty_turns(&scene).await, (strategy.to_owned(), masked, folded));
        }
    }
}

#[tokio::test]
async fn the_variable_overrides_the_file() {
    let scene = Scene::start_with("agent", "strategy = \"hybrid\"\n", |setup| {
        setup.env("AGENT_CONTEXT_STRATEGY", "masking")
    });
    assert_eq!(thirty_turns(&scene.await).await.0, "masking");
}

/// Masking comes before summaries, and continues after one.
#[tokio::test]
async fn hybrid_masks_first_and_folds_at_the_turn_threshold() {
    let scene = Scene::start("agent", &format!("strategy = \"hybrid\"\n{NO_CACHE}")).await;
    let (reply, sent) = scene.send("c", &run(19)).await;
    assert_eq!((edited(&reply, "masked"), edited(&reply, "folded")), (9, 0));
    assert!(sent.summary().is_none());
    let (reply, sent) = scene.send("c", &run(20)).await;
    assert_eq!((edited(&reply, "masked"), edited(&reply, "folded")), (0, 20));
    assert_eq!(reply.header("x-tidegate-trigger"), Some("turns"));
    assert!(sent.summary().is_some());
    let (reply, sent) = scene.send("c", &run(25)).await;
    assert_eq!((edited(&reply, "masked"), edited(&reply, "folded")), (5, 20));
    let all = run(25);
    assert_eq!(sent.messages().last(), all.last());
    assert!(!sent.has("result 14:") && sent.has("result 15:"), "the masks do not end at the window");
}

/// A request that fits after masking is not summarized.
#[tokio::test]
async fn hybrid_folds_only_if_masking_is_not_enough() {
    let probe = Scene::start("agent", "").await;
    let (reply, _) = probe.send("c", &run(15)).await;
    let masked = figure(&reply, "x-tidegate-tokens-after");
    let with = |most: u64| format!("strategy = \"hybrid\"\n[context.budget]\nmax_input = {most}\n");
    let scene = Scene::start("agent", &with(masked + 1)).await;
    let (reply, _) = scene.send("c", &run(15)).await;
    assert_eq!((edited(&reply, "masked"), edited(&reply, "folded")), (5, 0));
    // A budget used to its last token counts as exceeded.
    let scene = Scene::start("agent", &with(masked)).await;
    let (reply, sent) = scene.send("c", &run(15)).await;
    assert!(edited(&reply, "folded") > 0 && sent.summary().is_some(), "{:?}", reply.headers);
    let all = run(15);
    assert_eq!(sent.messages().last(), all.last());
    assert_eq!(all[result_at(14)]["content"], sent.contents()[sent.contents().len() - 1]);
}
