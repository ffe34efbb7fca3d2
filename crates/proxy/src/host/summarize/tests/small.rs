//! Small models: brief prompts, bounded schemas and truncated responses.

use super::*;

const SMALL: &str = "window = 2048";

/// A response with this text that was cut off at its length limit.
fn cut_off(text: &str) -> Answer {
    let message = json!({ "role": "assistant", "content": text });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "length" });
    Answer::json(200, json!({ "choices": [choice] }))
}

#[tokio::test]
async fn the_prompt_is_brief_and_the_schema_bounded() {
    let upstream = MockUpstream::start().await;
    upstream.answer(valid_answer("Use redb"));
    let material = Material { max_tokens: 150, ..material() };
    Fixture::at(&upstream, "brief", SMALL).summarize(material).await.unwrap();
    let request = upstream.next_request().await;
    let body = request.json();
    // What the schema allows at most, so that the answer of a model that goes on and on is not cut off.
    assert_eq!(body["max_tokens"], 496);
    let text = |index: usize| body["messages"][index]["content"].as_str().unwrap().to_owned();
    assert!(text(0).len() < 700, "{}", text(0));
    assert!(text(1).contains("\nuser: Let's use /data/index.\n"), "{}", text(1));
    let properties = &body["response_format"]["json_schema"]["schema"]["properties"];
    assert_eq!(properties["summary_text"]["maxLength"], 225);
    assert_eq!(properties["key_facts"]["maxItems"], 2);
    assert_eq!(properties["key_facts"]["items"]["maxLength"], 80);
    // A model writes the members in the order of the schema: the prose comes before the lists.
    let written = String::from_utf8(request.body.to_vec()).unwrap();
    assert!(written.find("\"summary_text\":{") < written.find("\"goals\":{"), "{written}");
}

#[tokio::test]
async fn the_summary_length_is_limited_by_the_window() {
    let upstream = MockUpstream::start().await;
    upstream.answer(valid_answer("Use redb"));
    let material = Material { max_tokens: 5_000, ..material() };
    Fixture::at(&upstream, "long", SMALL).summarize(material).await.unwrap();
    let body = upstream.next_request().await.json();
    assert_eq!(body["max_tokens"], 504);
    let prose = &body["response_format"]["json_schema"]["schema"]["properties"]["summary_text"]["maxLength"];
    assert_eq!(prose, 408);
}

/// Nobody would miss what the model did not get to write until it is needed.
#[tokio::test]
async fn a_truncated_response_is_a_failure() {
    let upstream = MockUpstream::start().await;
    upstream.answer(cut_off(r#"{"summary_text": "The index moves. It has 48,0"#));
    let failed = Fixture::at(&upstream, "cut", SMALL).summarize(material()).await.unwrap_err();
    assert_eq!(failed.cause.fold_failure().reason(), "summarizer_cut_off");
}

#[tokio::test]
async fn entries_cut_off_by_a_length_limit_are_removed() {
    let upstream = MockUpstream::start().await;
    let broken = format!("{} 48,0", "w".repeat(75));
    let answer = json!({ "summary_text": "The index moves.", "key_facts": [broken, "Ann owns it"] });
    upstream.answer(Answer::chat(&answer.to_string()));
    let material = Material { max_tokens: 150, ..material() };
    let made = Fixture::at(&upstream, "broken-off", SMALL).summarize(material.clone()).await.unwrap();
    assert_eq!(made.summary.key_facts, [Entry::new("Ann owns it", [])]);
    // Without a bounded schema the same entry was not cut off.
    let made = Fixture::at(&upstream, "unbound", "window = 2048\njson_schema = false");
    assert_eq!(made.summarize(material).await.unwrap().summary.key_facts.len(), 2);
}

#[tokio::test]
async fn an_empty_list_does_not_erase_known_entries() {
    let previous =
        Summary { key_facts: vec![Entry::new("The port is 8080", [MessageRef(2)])], ..Summary::default() };
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::chat(r#"{"summary_text": "The index moves.", "key_facts": []}"#));
    for (model, keys) in [("forgetful", SMALL), ("forgetful-large", "")] {
        let material = Material { previous: Some(previous.clone()), ..material() };
        let made = Fixture::at(&upstream, model, keys).summarize(material).await.unwrap();
        let kept = Summary { summary_text: "The index moves.".into(), ..previous.clone() };
        assert_eq!(made.summary, kept, "{model}");
    }
}
