//! Material that does not fit the window.

use super::*;
use tidegate_summary::Call;
use tidegate_tokens::{Encoding, count};

/// The user prompt of a request, and its tokens including those of the response.
fn prompt_of(request: &Value) -> (String, u64) {
    let text = |index: usize| request["messages"][index]["content"].as_str().unwrap().to_owned();
    let input = count(Encoding::O200k, &text(0)) + count(Encoding::O200k, &text(1));
    (text(1), input.0 + request["max_tokens"].as_u64().unwrap())
}

/// Answers the nth request with `Decision n`.
fn answer_with_numbers(upstream: &MockUpstream) {
    let number = std::sync::atomic::AtomicU32::new(0);
    upstream.script(move |_| {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        valid_answer(&format!("Decision {number}"))
    });
}

fn long(messages: u32) -> Material {
    let sources = (1..=messages)
        .map(|number| {
            message(number, OwnedSpeaker::User, &format!("Fact {number}. {}", "It was so. ".repeat(40)))
        })
        .collect();
    Material { previous: None, sources, max_tokens: 200 }
}

#[tokio::test]
async fn each_pass_extends_the_summary_of_the_previous_one() {
    let upstream = MockUpstream::start().await;
    answer_with_numbers(&upstream);
    let fixture = Fixture::at(&upstream, "small-window", "window = 4100");
    let mut material = long(32);
    material.previous =
        Some(Summary { goals: vec![Entry::new("The first goal", [MessageRef(70)])], ..Summary::default() });
    let made = fixture.summarize(material).await.unwrap();
    let requests: Vec<Value> = upstream.requests().iter().map(|request| request.json()).collect();
    assert!(requests.len() > 2, "{}", requests.len());
    assert_eq!(made.spent.calls as usize, requests.len());
    assert_eq!(made.spent.usage.prompt_tokens, 10 * u64::from(made.spent.calls));
    assert_eq!(made.summary.decisions, decisions(&format!("Decision {}", requests.len())));

    let mut seen = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let (text, tokens) = prompt_of(request);
        assert!(tokens <= 4100, "{tokens}");
        let before = if index == 0 { "The first goal".to_owned() } else { format!("Decision {index}\"") };
        assert!(text.contains(&before), "{before} in {text}");
        seen.extend((1..=32).filter(|number| text.contains(&format!("Fact {number}. "))));
    }
    assert_eq!(seen, Vec::from_iter(1..=32), "each message once, in order");
}

#[tokio::test]
async fn the_window_comes_from_the_model_table() {
    let upstream = MockUpstream::start().await;
    answer_with_numbers(&upstream);
    let fixture = Fixture::at(&upstream, "gpt-4o", "");
    assert_eq!(fixture.summarize(long(100)).await.unwrap().spent.calls, 1);
    // An unknown model gets the fallback window.
    let fixture = Fixture::at(&upstream, "unheard-of", "");
    assert!(fixture.summarize(long(100)).await.unwrap().spent.calls > 1);
}

#[tokio::test]
async fn a_message_larger_than_the_window_is_truncated() {
    let upstream = MockUpstream::start().await;
    answer_with_numbers(&upstream);
    let fixture = Fixture::at(&upstream, "one-large", "window = 2000");
    let calls = (0..300).map(|_| Call { tool: "read_file".into(), arguments: "{\"path\":\"/a\"}".into() });
    let wall = format!("The beginning. {}The end.", "words and words ".repeat(50_000));
    let mut sources = vec![message(1, OwnedSpeaker::User, &wall), message(2, OwnedSpeaker::Assistant, "")];
    sources[1].calls = calls.collect();
    sources.push(message(3, OwnedSpeaker::User, "Short."));
    let made = fixture.summarize(Material { previous: None, sources, max_tokens: 200 }).await.unwrap();
    assert_eq!(made.spent.calls, 3);
    let requests = upstream.requests();
    for request in &requests {
        let (_, tokens) = prompt_of(&request.json());
        assert!(tokens <= 2000, "{tokens}");
    }
    let (first, _) = prompt_of(&requests[0].json());
    assert!(first.contains("The beginning.") && first.contains("The end."), "{first}");
}

#[tokio::test]
async fn tool_outputs_are_truncated_to_the_configured_length() {
    let upstream = MockUpstream::start().await;
    upstream.answer(valid_answer("Use redb"));
    let fixture = Fixture::at(&upstream, "tools", "max_tool_output = 50");
    let output = message(1, OwnedSpeaker::Observation { tool: Some("cat".into()) }, &"x".repeat(1_000));
    let material = Material { sources: vec![output], ..material() };
    fixture.summarize(material).await.unwrap();
    let (text, _) = prompt_of(&upstream.next_request().await.json());
    assert_eq!(text.matches('x').count(), 50, "{text}");
}

#[tokio::test]
async fn a_large_state_is_shortened_before_it_fills_the_window() {
    let upstream = MockUpstream::start().await;
    answer_with_numbers(&upstream);
    let entries =
        |kind: &str| (1..40).map(|n| Entry::new(format!("{kind} {n} of the project"), [])).collect();
    let previous = Summary {
        goals: vec![Entry::new("The task", [])],
        artifacts: entries("Artifact"),
        key_facts: entries("Fact"),
        ..Summary::default()
    };
    let fixture = Fixture::at(&upstream, "large-state", "window = 2000");
    fixture.summarize(Material { previous: Some(previous), ..long(1) }).await.unwrap();
    let (text, tokens) = prompt_of(&upstream.next_request().await.json());
    assert!(text.contains("The task") && tokens <= 2000, "{tokens}: {text}");
}

#[tokio::test]
async fn a_failure_in_a_later_pass_fails_the_whole() {
    let upstream = MockUpstream::start().await;
    upstream.then(valid_answer("Decision 1")).answer(Answer::chat("No."));
    let failed = Fixture::at(&upstream, "half", "window = 2500").summarize(long(12)).await.unwrap_err();
    assert_eq!((failed.cause.fold_failure().reason(), failed.spent.calls), ("summarizer_no_json", 3));
}

#[tokio::test]
async fn a_window_too_small_for_the_instructions_is_a_failure() {
    let upstream = MockUpstream::start().await;
    let failed = Fixture::at(&upstream, "tiny", "window = 200").summarize(material()).await.unwrap_err();
    assert_eq!(
        (failed.cause.fold_failure().reason(), failed.spent.calls),
        ("summarizer_window_too_small", 0)
    );
}
