//! A conversation that is deleted while its summary is made stays deleted.

use super::scene::{send, start, summarization, summarizer, upstream, with_store, with_summarizer};
use crate::support::chat::chat;
use crate::support::client::exchange;
use crate::support::reply::edited;
use crate::support::within;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Answer, Gate};

#[tokio::test]
async fn a_late_summary_does_not_restore_a_deleted_conversation() {
    let (directory, upstream, summarizer) = (TempDir::new().unwrap(), upstream().await, summarizer().await);
    let gate = Gate::new();
    let summary =
        json!({ "summary_text": "Piers were mended.", "key_facts": [{ "text": "It is nine metres long." }] });
    let message = json!({ "role": "assistant", "content": summary.to_string() });
    let answer =
        json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": message }] }).to_string();
    summarizer.then(
        Answer::new(200).header("content-type", "application/json").wait(&gate).chunk(answer).chunked(),
    );
    let url = format!("embedded:{}", directory.path().join("data").display());
    let settings = with_summarizer(&with_store(&summarization(""), &url), &summarizer, "50s");
    let mut tidegate = start(&settings, &upstream).await;
    send(&tidegate, &upstream, "a", &chat(3)).await;
    send(&tidegate, &upstream, "a", &chat(4)).await;
    within("the summarizer is asked", summarizer.next_request()).await;

    let get = "GET /api/conversations HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let listed = async || -> Value {
        let list: Value =
            serde_json::from_slice(&exchange(tidegate.admin, get.to_owned()).await.body).unwrap();
        list["conversations"][0].clone()
    };
    let counted = async {
        loop {
            let conversation = listed().await;
            if conversation["requests"] == 2 {
                return conversation["id"].as_str().unwrap().to_owned();
            }
        }
    };
    let id = within("both requests are counted", counted).await;
    let delete =
        format!("DELETE /api/conversations/{id} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(exchange(tidegate.admin, delete).await.status, 204);
    gate.open();
    let metrics = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let made = async {
        while !exchange(tidegate.admin, metrics.to_owned()).await.text().contains("context_summary_count 1") {
        }
    };
    within("the summary is made", made).await;
    // Shutdown waits until the summary is stored.
    tidegate.signal(Signal::TERM);
    tidegate.ended().await;

    let tidegate = start(&settings, &upstream).await;
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(3)).await;
    assert_eq!((edited(&reply, "folded"), forwarded.summary()), (0, None));
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(5)).await;
    assert_eq!((edited(&reply, "folded"), forwarded.summary()), (0, None), "the deleted summary is back");
}
