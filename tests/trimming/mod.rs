//! Long results become excerpts once the model has answered them.

mod messages;
mod processes;

use crate::support::agent::{Message, PLACEHOLDER, body, conversation, send};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use serde_json::{Value, json};
use tidegate_testkit::MockUpstream;

pub(crate) const TRIM: &str = "[context.trim]\n";

/// A log of about 3,000 tokens, with an error and an id in its middle.
pub(crate) fn log(number: usize) -> String {
    let mut lines: Vec<String> =
        (0..260).map(|line| format!("step {line} of build {number} took a moment \u{e9}")).collect();
    lines[130] = format!("ERROR: cannot open build {number}");
    lines[140] = format!("see ticket_{number}_4711 and /var/lib/build_{number}/x.rs");
    lines.join("\n")
}

/// A run of this many steps, each a call and its long result. The result of step `n` has index `3 + 2 × n`.
fn run(steps: usize) -> Vec<Message> {
    let mut messages = conversation(steps);
    for step in 0..steps {
        messages[3 + 2 * step].content = json!(log(step)).to_string();
    }
    messages
}

fn sent(steps: usize) -> String {
    body("gpt-4o", &run(steps), &[])
}

/// The same for a model that has a tool.
fn sent_with_tools(steps: usize) -> String {
    let tools = r#""tools":[{"type":"function","function":{"name":"shell"}}],"top_p""#;
    sent(steps).replacen("\"top_p\"", tools, 1)
}

fn contents(body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    body["messages"].as_array().unwrap().iter().map(|message| message["content"].clone()).collect()
}

fn edits(reply: &Reply) -> &str {
    reply.header("x-tidegate-edits").unwrap()
}

#[tokio::test]
async fn an_answered_result_becomes_an_excerpt_and_a_fresh_one_never() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(TRIM, &upstream).await;
    let mut excerpts: Vec<String> = Vec::new();
    for steps in 1..6 {
        let (reply, arrived) = send(&tidegate, &upstream, &[], &sent(steps)).await;
        assert_eq!(edits(&reply), format!("masked=0,trimmed={},folded=0,dropped=0", steps - 1));
        let contents = contents(&arrived);
        assert_eq!(contents[1 + 2 * steps], json!(log(steps - 1)), "the fresh result was changed");
        if steps > 1 {
            excerpts.push(contents[2 * steps - 1].as_str().unwrap().to_owned());
        }
        // Every other byte is the client's, and an excerpt never changes again.
        let mut expected = sent(steps);
        for (step, excerpt) in excerpts.iter().enumerate() {
            expected = expected.replacen(&json!(log(step)).to_string(), &json!(excerpt).to_string(), 1);
        }
        assert_eq!(arrived, expected);
    }
    let excerpt = &excerpts[2];
    for part in [
        "step 0 of build 2 ",
        "ERROR: cannot open build 2",
        "ticket_2_4711",
        "/var/lib/build_2/x.rs",
        "left out here; the original is intact]",
    ] {
        assert!(excerpt.contains(part), "{part}: {excerpt}");
    }
    assert!(excerpt.ends_with("step 259 of build 2 took a moment \u{e9}"), "{excerpt}");
    assert!(excerpt.len() < 1800, "{}", excerpt.len());
}

#[tokio::test]
async fn without_the_section_and_for_short_results_nothing_changes() {
    let upstream = MockUpstream::start().await;
    let short = body("gpt-4o", &conversation(6), &[]);
    for (config, sent, expected) in
        [("", sent(3), "masked=0,folded=0,dropped=0"), (TRIM, short, "masked=0,trimmed=0,folded=0,dropped=0")]
    {
        let tidegate = Tidegate::start(config, &upstream).await;
        let (reply, arrived) = send(&tidegate, &upstream, &[], &sent).await;
        assert_eq!((arrived, edits(&reply)), (sent, expected));
    }
}

#[tokio::test]
async fn images_and_cache_markers_in_a_result_stay() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(TRIM, &upstream).await;
    let image = r#"{"type":"image_url", "image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}"#;
    let mut messages = run(3);
    messages[3].content = format!(
        r#"[ {{"cache_control" : {{"type":"ephemeral"}},"type":"text","text":{}}},{image} , {{"type":"text","text":"short"}}]"#,
        json!(log(0))
    );
    let sent = body("gpt-4o", &messages, &[]);
    let (_, arrived) = send(&tidegate, &upstream, &[], &sent).await;
    let contents = contents(&arrived);
    let excerpt = contents[3][0]["text"].as_str().unwrap();
    assert!(excerpt.contains("the original is intact"), "{excerpt}");
    let mut expected = sent.replacen(&json!(log(0)).to_string(), &json!(excerpt).to_string(), 1);
    expected = expected.replacen(&json!(log(1)).to_string(), &contents[5].to_string(), 1);
    assert_eq!(arrived, expected);
}

#[tokio::test]
async fn an_excerpt_is_masked_later_like_any_other_result() {
    let upstream = MockUpstream::start().await;
    let config = format!("[context.mask]\nkeep = {{ turns = 3 }}\npace = \"every_turn\"\n{TRIM}");
    let tidegate = Tidegate::start(&config, &upstream).await;
    for steps in 1..7usize {
        let (reply, arrived) = send(&tidegate, &upstream, &[], &sent(steps)).await;
        let masked = steps.saturating_sub(3);
        let trimmed = steps - 1 - masked;
        assert_eq!(edits(&reply), format!("masked={masked},trimmed={trimmed},folded=0,dropped=0"));
        for step in 0..masked {
            assert_eq!(contents(&arrived)[3 + 2 * step], json!(PLACEHOLDER));
        }
    }
}

#[tokio::test]
async fn where_recall_is_on_excerpts_and_placeholders_name_the_same_reference() {
    let upstream = MockUpstream::start().await;
    let config = format!(
        "[context.mask]\nkeep = {{ turns = 3 }}\npace = \"every_turn\"\n{TRIM}[context.recall]\ntool = true\n"
    );
    let tidegate = Tidegate::start(&config, &upstream).await;
    let reference = |text: &str| -> String {
        let start = text.find("ref ").unwrap_or_else(|| panic!("no reference: {text}")) + 4;
        text[start..].chars().take_while(char::is_ascii_hexdigit).collect()
    };
    let mut references = Vec::new();
    for steps in 2..7usize {
        let (_, arrived) = send(&tidegate, &upstream, &[], &sent_with_tools(steps)).await;
        let contents = contents(&arrived);
        let text = |step: usize| contents[3 + 2 * step].as_str().unwrap().to_owned();
        references.push(reference(&text(steps - 2)));
        assert_eq!(references.last().unwrap().len(), 8);
        for (step, known) in references.iter().enumerate().take(steps.saturating_sub(3)) {
            let placeholder = text(step);
            assert!(placeholder.starts_with(PLACEHOLDER), "{placeholder}");
            assert_eq!(reference(&placeholder), *known);
            assert!(placeholder.contains(&format!("ticket_{step}_4711")), "{placeholder}");
        }
    }
    references.sort();
    references.dedup();
    assert_eq!(references.len(), 5, "every message has its own");
}

#[tokio::test]
async fn a_result_that_is_fresh_again_is_whole_again() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(TRIM, &upstream).await;
    let named = [("x-conversation-id", "a")];
    let (_, before) = send(&tidegate, &upstream, &named, &sent(4)).await;
    // The client goes back and asks for another answer to the second result.
    let (reply, arrived) = send(&tidegate, &upstream, &named, &sent(2)).await;
    assert_eq!(edits(&reply), "masked=0,trimmed=1,folded=0,dropped=0");
    assert_eq!(contents(&arrived)[5], json!(log(1)));
    // The first branch goes on as it was.
    let (_, after) = send(&tidegate, &upstream, &named, &sent(5)).await;
    assert_eq!(contents(&after)[..8], contents(&before)[..8]);
}

#[tokio::test]
async fn an_observed_request_only_says_what_would_be_trimmed() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start(&format!("[context]\nobserve = true\n{TRIM}"), &upstream).await;
    let (reply, arrived) = send(&tidegate, &upstream, &[], &sent(4)).await;
    assert_eq!(arrived, sent(4));
    assert_eq!(edits(&reply), "masked=0,trimmed=3,folded=0,dropped=0");
    assert_eq!(reply.header("x-tidegate-observe"), Some("1"));
    let tokens = |name| reply.header(name).unwrap().parse::<u64>().unwrap();
    assert!(tokens("x-tidegate-tokens-after") < tokens("x-tidegate-tokens-before") / 2);
    assert_eq!(tidegate.access_log(1).await[0]["trimmed"], json!(3));
}

#[tokio::test]
async fn results_of_excluded_tools_stay_whole() {
    let upstream = MockUpstream::start().await;
    for config in [
        "[context.trim]\nexclude_tools = [\"sh*\"]\n",
        "[context.mask]\nexclude_tools = [\"shell\"]\n[context.trim]\n",
    ] {
        let tidegate = Tidegate::start(config, &upstream).await;
        let (_, arrived) = send(&tidegate, &upstream, &[], &sent(4)).await;
        assert_eq!(arrived, sent(4), "{config}");
    }
}

#[tokio::test]
async fn the_profile_for_coding_agents_trims() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[context]\nprofile = \"coding-agent\"\n", &upstream).await;
    let (reply, arrived) = send(&tidegate, &upstream, &[], &sent_with_tools(3)).await;
    assert_eq!(edits(&reply), "masked=0,trimmed=2,folded=0,dropped=0");
    assert!(contents(&arrived)[3].as_str().unwrap().contains("; ref "));
    let (_, arrived) = send(&tidegate, &upstream, &[], &sent(3)).await;
    assert!(!contents(&arrived)[3].as_str().unwrap().contains("ref "), "a model without tools cannot ask");
    assert_eq!(reply.header("x-tidegate-strategy"), Some("hybrid"));
}
