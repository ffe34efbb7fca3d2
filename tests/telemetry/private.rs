//! No key, prompt or answer is in a span, unless content is enabled.

use super::scene::{MASKING, SECRET, ask, one, request, traced, upstream};
use crate::support::chat::{assistant, body, user};
use tidegate_testkit::OtlpReceiver;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn conversation() -> String {
    body(&[
        user(&format!("What is a {SECRET}?")),
        assistant("A crustacean."),
        user(&format!("Is this a {SECRET}?")),
    ])
}

#[tokio::test]
async fn spans_have_no_content_by_default() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let tidegate = traced(MASKING, &upstream, &collector.http_url()).start().await;
    ask(&tidegate, "p", conversation(), &[("traceparent", PARENT)]).await;
    let spans = request(&collector, TRACE).await;
    assert!(spans.len() > 8, "{spans:#?}");
    let shown = format!("{spans:?}");
    assert!(!shown.contains(SECRET), "{shown}");
}

#[tokio::test]
async fn spans_have_content_but_no_key_if_content_is_on() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let settings = format!("{MASKING}[telemetry]\ncontent = true\n");
    let tidegate = traced(&settings, &upstream, &collector.http_url()).start().await;
    ask(&tidegate, "p", conversation(), &[("traceparent", PARENT)]).await;
    let spans = request(&collector, TRACE).await;
    let call = one(&spans, "chat gpt-4o");
    let asked: serde_json::Value = serde_json::from_str(call.text("gen_ai.input.messages").unwrap()).unwrap();
    assert_eq!(asked[2]["content"], format!("Is this a {SECRET}?"));
    let answered: serde_json::Value =
        serde_json::from_str(call.text("gen_ai.output.messages").unwrap()).unwrap();
    assert_eq!(answered[0]["content"], format!("It is a {SECRET}."));
    // The key is never exported.
    assert!(!format!("{spans:?}").contains(&format!("{SECRET}-key")));
}
