//! No role, channel or sender is changed: kept messages are the client's, byte for byte.

use super::harness::{Assistant, CONVERSATION, SCRIPTED};

/// A message of a multi-channel client with a label in its text, a name, unknown members and unusual spelling.
fn labelled(number: usize) -> String {
    let (role, name) = [("user", "ada_lovelace"), ("assistant", "tidebot")][number % 2];
    let channel = ["telegram", "matrix", "e-mail"][number % 3];
    let text = format!("[{channel} / {name}] line {number}:{}", " \\u0077ord".repeat(90));
    format!(
        "{{ \"content\":\"{text}\",\"channel\" : \"{channel}\", \"name\":\"{name}\",\"role\":\"{role}\",\"sent_at\":1.70e9,\"x\":{{\"a\": [1 ,2]}} }}"
    )
}

#[tokio::test]
async fn names_labels_and_unknown_members_are_unchanged() {
    let assistant = Assistant::start(SCRIPTED).await;
    let system = "{\"role\":\"system\",\"content\":\"Be kind.\", \"name\":\"rules\"}".to_owned();
    let question =
        "{\"role\" : \"user\",\"name\":\"ada_lovelace\",\"content\":\"[telegram / ada_lovelace] And now?\"}";
    let all: Vec<String> = (0..40).map(labelled).collect();
    let request = format!(
        "{{\"model\":\"gpt-4o\", \"user\":\"ada\",\"messages\":[{system} , {} ,\n{question}], \"top_p\":1.0}}",
        all.join(" ,\n ")
    );
    let (_, body) = assistant.send_body(CONVERSATION, &request).await;
    // Of 95 words each, 26 messages are 2,470 words, and one more would be 2,565.
    let kept = format!("{} ,\n{question}], \"top_p\":1.0}}", all[14..].join(" ,\n "));
    assert!(body.ends_with(&kept), "{body}");
    let before = format!("{{\"model\":\"gpt-4o\", \"user\":\"ada\",\"messages\":[{system}");
    assert!(body.starts_with(&before), "{body}");
    assert_eq!(body.matches("line ").count(), 26);
    assert_eq!(body.matches("<conversation_record>").count(), 1);
}
