//! A conversation continues without its summarizer if that fails or returns nonsense.

use super::scene::{
    assert_fits, degraded, send, start, summarization, trigger, upstream, with_budget, with_summarizer,
};
use crate::support::chat::{body, chat};
use crate::support::reply::edited;
use crate::support::tidegate::Tidegate;
use serde_json::json;
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream};
use tokio::time::Instant;

/// Longer than the summarizer timeout with some tolerance; shorter than a second try would take.
const LONGEST_WAIT: Duration = Duration::from_secs(6);

/// An answer of the summarizer that is not a usable summary.
struct BadSummary {
    what: &'static str,
    answer: Answer,
    /// The reason in `x-tidegate-degraded`.
    reason: &'static str,
}

fn bad_summaries() -> Vec<BadSummary> {
    let error = "Error generating summary";
    let case = |what, answer, reason| BadSummary { what, answer, reason };
    let half = Answer::chat(r#"{"summary_text":"x"}"#).stall_after_chunks(0);
    let empty = Answer::chat(r#"{"summary_text":"","key_facts":[],"goals":[]}"#);
    vec![
        case("hangs", Answer::json(200, "").stall(), "summarizer_timeout"),
        case("hangs in the middle", half, "summarizer_timeout"),
        case("fails", Answer::error(500, "oops", error), "summarizer_server_error"),
        case("refuses", Answer::error(401, "no", error), "summarizer_refused"),
        case("is busy", Answer::error(429, "slow", error), "summarizer_rate_limited"),
        case(
            "is something else",
            Answer::new(200).chunk(format!("<html>{error}</html>")),
            "summarizer_no_json",
        ),
        case("says an error", Answer::chat(&format!("{error}: too long.")), "summarizer_looks_like_an_error"),
        case("says nothing", Answer::chat(""), "summarizer_empty"),
        case("says an empty object", Answer::chat("{}"), "summarizer_nothing_in_it"),
        case("says empty fields", empty, "summarizer_nothing_in_it"),
        case("says a number", Answer::chat("42"), "summarizer_no_json"),
        case("says noise", Answer::chat("%% \u{0} \u{7} ???"), "summarizer_no_json"),
    ]
}

/// Starts the upstream, a summarizer with this answer, and Tidegate.
pub(crate) async fn scene(answer: &Answer, budget: usize) -> (MockUpstream, MockUpstream, Tidegate) {
    scene_with("", answer, budget).await
}

/// Too little for any summary, so that the built-in summarizer fails, too.
const NO_ROOM: &str = "max_tokens = 20\n";

async fn scene_with(fold: &str, answer: &Answer, budget: usize) -> (MockUpstream, MockUpstream, Tidegate) {
    let (upstream, summarizer) = (upstream().await, MockUpstream::start().await);
    summarizer.answer(answer.clone());
    let settings = with_budget(&summarization(&format!("mode = \"inline\"\n{fold}")), budget);
    let tidegate = start(&with_summarizer(&settings, &summarizer, "1s"), &upstream).await;
    (upstream, summarizer, tidegate)
}

#[tokio::test]
async fn requests_within_budget_are_forwarded_unchanged() {
    for BadSummary { what, answer, .. } in bad_summaries() {
        let (upstream, summarizer, tidegate) = scene_with(NO_ROOM, &answer, 20_000).await;
        let begun = Instant::now();
        let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(4)).await;
        assert!(begun.elapsed() < LONGEST_WAIT, "a summarizer that {what}: {:?}", begun.elapsed());
        assert_eq!(forwarded.body, body(&chat(4)), "a summarizer that {what}");
        assert!(degraded(&reply).is_some(), "a summarizer that {what}");
        assert_eq!(trigger(&reply), Some("turns"), "a summarizer that {what}");
        let asked = summarizer.requests().len();
        assert!((1..=2).contains(&asked), "a summarizer that {what} was asked {asked} times");
        // It is not called again for a while.
        let (_, forwarded) = send(&tidegate, &upstream, "a", &chat(5)).await;
        assert_eq!(forwarded.body, body(&chat(5)), "a summarizer that {what}");
        assert_eq!(summarizer.requests().len(), asked, "a summarizer that {what}");
    }
}

/// The built-in summarizer stands in for one that fails, and for one that writes more than it replaces or is cut off.
#[tokio::test]
async fn the_built_in_summarizer_stands_in() {
    let half = r#"{"summary_text":"Piers were mended.","key_facts":["The pier is nine metres long."]}"#;
    let cut_off = Answer::json(
        200,
        json!({ "choices": [{ "index": 0, "finish_reason": "length", "message": { "role": "assistant", "content": half } }] }),
    );
    let flood = json!({ "key_facts": (0..60).map(|number| format!("Bollard {number} is made of iron, and {}", "rust is seen on it. ".repeat(8))).collect::<Vec<_>>() });
    let mut bad = bad_summaries();
    bad.push(BadSummary { what: "is cut off", answer: cut_off, reason: "summarizer_cut_off" });
    let answer = Answer::chat(&flood.to_string());
    bad.push(BadSummary { what: "writes too much", answer, reason: "summarizer_no_gain" });
    for BadSummary { what, answer, reason } in bad {
        let (upstream, _summarizer, tidegate) = scene(&answer, 20_000).await;
        let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(4)).await;
        assert_eq!(degraded(&reply), Some(reason), "a summarizer that {what}");
        let summary =
            forwarded.summary().unwrap_or_else(|| panic!("a summarizer that {what}: {}", forwarded.body));
        assert!(forwarded.body.contains("bollard-1") && forwarded.marker().is_none(), "{what}");
        assert_eq!(edited(&reply, "folded"), summary.covered, "a summarizer that {what}");
    }
}

#[tokio::test]
async fn requests_over_budget_are_cut_behind_a_marker() {
    for BadSummary { what, answer, .. } in bad_summaries() {
        let (upstream, _summarizer, tidegate) = scene_with(NO_ROOM, &answer, 1500).await;
        for questions in 6..9 {
            let messages = chat(questions);
            let (reply, forwarded) = send(&tidegate, &upstream, "a", &messages).await;
            assert_fits(&reply);
            assert!(degraded(&reply).is_some(), "a summarizer that {what}");
            let (at, turns) =
                forwarded.marker().unwrap_or_else(|| panic!("a summarizer that {what} leaves no marker"));
            let kept = &forwarded.messages[at + 1..];
            assert_eq!(forwarded.messages[..at], messages[..at], "a summarizer that {what}");
            assert_eq!(*kept, messages[messages.len() - kept.len()..], "a summarizer that {what}");
            let missing = &messages[at..messages.len() - kept.len()];
            let answers = missing.iter().filter(|message| message.contains("\"assistant\"")).count();
            assert_eq!(
                (edited(&reply, "dropped"), turns),
                (missing.len(), answers),
                "a summarizer that {what}"
            );
            assert!(
                !forwarded.body.contains("Error generating"),
                "a summarizer that {what}: {}",
                forwarded.body
            );
            assert_eq!(forwarded.summary(), None);
        }
    }
}

#[tokio::test]
async fn the_response_gives_the_reason() {
    let mut wrong = Vec::new();
    for BadSummary { what, answer, reason } in bad_summaries() {
        let (upstream, _summarizer, tidegate) = scene(&answer, 20_000).await;
        let (reply, _) = send(&tidegate, &upstream, "a", &chat(4)).await;
        if degraded(&reply) != Some(reason) {
            wrong.push(format!("a summarizer that {what}: {:?} and not {reason}", degraded(&reply)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
