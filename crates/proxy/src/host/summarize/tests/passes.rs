//! Material that is larger than the window.

use super::*;
use tidegate_summary::Call;
use tidegate_tokens::{Encoding, count};

/// The material in what a request asks, and all the tokens that it takes with its answer.
fn shown(request: &Value) -> (String, u64) {
    let text = |index: usize| request["messages"][index]["content"].as_str().unwrap().to_owned();
    let input = count(Encoding::O200k, &text(0)) + count(Encoding::O200k, &text(1));
    (text(1), input.0 + request["max_tokens"].as_u64().unwrap())
}

/// Answers each request with the decision that it was that request.
fn numbered(upstream: &MockUpstream) {
    let number = std::sync::atomic::AtomicU32::new(0);
    upstream.script(move |_| {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        good(&format!("Decision {number}"))
    });
}

fn long(messages: u32) -> Material {
    let sources = (1..=messages)
        .map(|number| {
            said(number, OwnedSpeaker::User, &format!("Fact {number}. {}", "It was so. ".repeat(40)))
        })
        .collect();
    Material { previous: None, sources, max_tokens: 200 }
}

#[tokio::test]
async fn each_pass_goes_on_from_the_summary_of_the_last() {
    let upstream = MockUpstream::start().await;
    numbered(&upstream);
    let bench = Bench::at(&upstream, "small-window", "window = 4100");
    let mut material = long(32);
    material.previous =
        Some(Summary { goals: vec![Entry::new("The first goal", [MessageRef(70)])], ..Summary::default() });
    let made = bench.summarize(material).await.unwrap();
    let requests: Vec<Value> = upstream.requests().iter().map(|request| request.json()).collect();
    assert!(requests.len() > 2, "{}", requests.len());
    assert_eq!(made.spent.calls as usize, requests.len());
    assert_eq!(made.spent.usage.prompt_tokens, 10 * u64::from(made.spent.calls));
    assert_eq!(made.summary.decisions, decided(&format!("Decision {}", requests.len())));

    let mut seen = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let (text, tokens) = shown(request);
        assert!(tokens <= 4100, "{tokens}");
        let before = if index == 0 { "The first goal".to_owned() } else { format!("Decision {index}\"") };
        assert!(text.contains(&before), "{before} in {text}");
        seen.extend((1..=32).filter(|number| text.contains(&format!("Fact {number}. "))));
    }
    assert_eq!(seen, Vec::from_iter(1..=32), "each message once, in order");
}

#[tokio::test]
async fn the_table_knows_the_window() {
    let upstream = MockUpstream::start().await;
    numbered(&upstream);
    let bench = Bench::at(&upstream, "gpt-4o", "");
    assert_eq!(bench.summarize(long(100)).await.unwrap().spent.calls, 1);
    // Nothing is known of this one.
    let bench = Bench::at(&upstream, "unheard-of", "");
    assert!(bench.summarize(long(100)).await.unwrap().spent.calls > 1);
}

#[tokio::test]
async fn a_message_larger_than_the_window_is_cut() {
    let upstream = MockUpstream::start().await;
    numbered(&upstream);
    let bench = Bench::at(&upstream, "one-large", "window = 2000");
    let calls = (0..300).map(|_| Call { tool: "read_file".into(), arguments: "{\"path\":\"/a\"}".into() });
    let wall = format!("The beginning. {}The end.", "words and words ".repeat(50_000));
    let mut sources = vec![said(1, OwnedSpeaker::User, &wall), said(2, OwnedSpeaker::Assistant, "")];
    sources[1].calls = calls.collect();
    sources.push(said(3, OwnedSpeaker::User, "Short."));
    let made = bench.summarize(Material { previous: None, sources, max_tokens: 200 }).await.unwrap();
    assert_eq!(made.spent.calls, 3);
    let requests = upstream.requests();
    for request in &requests {
        let (_, tokens) = shown(&request.json());
        assert!(tokens <= 2000, "{tokens}");
    }
    let (first, _) = shown(&requests[0].json());
    assert!(first.contains("The beginning.") && first.contains("The end."), "{first}");
}

#[tokio::test]
async fn tool_outputs_are_shown_as_far_as_the_operator_says() {
    let upstream = MockUpstream::start().await;
    upstream.answer(good("Use redb"));
    let bench = Bench::at(&upstream, "tools", "max_tool_output = 50");
    let output = said(1, OwnedSpeaker::Observation { tool: Some("cat".into()) }, &"x".repeat(1_000));
    let material = Material { sources: vec![output], ..material() };
    bench.summarize(material).await.unwrap();
    let (text, _) = shown(&upstream.next_request().await.json());
    assert_eq!(text.matches('x').count(), 50, "{text}");
}

#[tokio::test]
async fn a_large_state_is_shortened_before_it_fills_the_window() {
    let upstream = MockUpstream::start().await;
    numbered(&upstream);
    let entries =
        |kind: &str| (1..40).map(|n| Entry::new(format!("{kind} {n} of the project"), [])).collect();
    let previous = Summary {
        goals: vec![Entry::new("The task", [])],
        artifacts: entries("Artifact"),
        key_facts: entries("Fact"),
        ..Summary::default()
    };
    let bench = Bench::at(&upstream, "large-state", "window = 2000");
    bench.summarize(Material { previous: Some(previous), ..long(1) }).await.unwrap();
    let (text, tokens) = shown(&upstream.next_request().await.json());
    assert!(text.contains("The task") && tokens <= 2000, "{tokens}: {text}");
}

#[tokio::test]
async fn a_failure_in_a_later_pass_fails_the_whole() {
    let upstream = MockUpstream::start().await;
    upstream.then(good("Decision 1")).answer(Answer::chat("No."));
    let failed = Bench::at(&upstream, "half", "window = 2500").summarize(long(12)).await.unwrap_err();
    assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_no_json", 3));
}

#[tokio::test]
async fn a_window_without_room_for_the_instructions() {
    let upstream = MockUpstream::start().await;
    let failed = Bench::at(&upstream, "tiny", "window = 200").summarize(material()).await.unwrap_err();
    assert_eq!(
        (failed.cause.fold_failure().reason(), failed.spent.calls),
        ("summarizer_window_too_small", 0)
    );
}
