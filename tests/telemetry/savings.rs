//! Savings at billed prices, estimated conservatively.

use super::scene::{answer, ask, until_counted, upstream};
use crate::support::chat::{body_for, chat, user};
use crate::support::metrics::value;
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::Answer;

/// A model at ten dollars per million fresh tokens and one per million cached tokens.
const PRICED: &str = "[store]\nurl = \"memory:\"\n[models.\"harbour-1\"]\nwindow = 100000\nencoding = \"o200k_base\"\ninput = 10.0\n\
    cached_input = 1.0\noutput = 0.0\n[context.mask]\nkeep = { turns = 1 }\npace = \"every_turn\"\n";

fn figure(reply: &Reply, name: &str) -> f64 {
    reply.header(name).unwrap().parse().unwrap()
}

fn costs(page: &str) -> (f64, f64) {
    let cost = |kind: &str| value(page, "tidegate_cost_usd_total", &[&format!("kind=\"{kind}\"")]).unwrap();
    (cost("billed"), cost("unedited"))
}

#[tokio::test]
async fn a_first_request_saves_what_was_left_out() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(PRICED, &upstream).await;
    upstream.then(Answer::json(200, answer(1_000, 0)));
    let reply = ask(&tidegate, "s", body_for("harbour-1", &chat(6)), &[]).await;
    let (before, after) =
        (figure(&reply, "x-tidegate-tokens-before"), figure(&reply, "x-tidegate-tokens-after"));
    assert!(before > after);
    let page = until_counted(&tidegate, 1.0).await;
    let (billed, unedited) = costs(&page);
    assert!((billed - 0.01).abs() < 1e-9, "{billed}");
    // The provider counted 1,000 tokens for our `after`, so the unedited request would have cost proportionally more.
    assert!((unedited - 0.01 * before / after).abs() <= 1e-5, "{unedited}");
    assert_eq!(value(&page, "agent_context_estimated_cost_usd", &[]), Some(billed));
}

#[tokio::test]
async fn an_edit_that_breaks_the_cache_counts_as_a_loss() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(PRICED, &upstream).await;
    // Long enough to be cached, and the frontier moves at each turn.
    let long = |questions| {
        let mut messages = chat(questions);
        messages.insert(1, user(&"A long story about piers and bollards. ".repeat(600)));
        body_for("harbour-1", &messages)
    };
    for (requests, questions) in [(1.0, 3), (2.0, 4)] {
        upstream.then(Answer::json(200, answer(6_000, 0)));
        ask(&tidegate, "s", long(questions), &[]).await;
        until_counted(&tidegate, requests).await;
    }
    let page = until_counted(&tidegate, 2.0).await;
    let (billed, unedited) = costs(&page);
    assert!((billed - 0.12).abs() < 1e-9, "{billed}");
    assert!(unedited < billed, "the unedited requests would have been cached: {unedited} of {billed}");
}

#[tokio::test]
async fn a_model_without_a_price_has_no_cost() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(PRICED, &upstream).await;
    ask(&tidegate, "s", body_for("nobody-knows-me", &chat(3)), &[]).await;
    let page = until_counted(&tidegate, 1.0).await;
    assert_eq!(value(&page, "tidegate_cost_usd_total", &[]), None, "{page}");
    assert_eq!(value(&page, "tidegate_unpriced_requests_total", &[]), Some(1.0));
    assert_eq!(value(&page, "agent_context_turn_count", &["model=\"other\""]), Some(1.0));
}
