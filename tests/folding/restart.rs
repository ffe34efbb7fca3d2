//! A summary survives a restart.

use super::forwarded::Forwarded;
use super::scene::{
    FIRST_FOLD, edits, send, start, summarization, summarizer, upstream, with_store, with_summarizer,
};
use crate::support::chat::chat;
use rustix::process::Signal;
use tempfile::TempDir;

#[tokio::test]
async fn a_summary_survives_a_restart() {
    for signal in [Signal::TERM, Signal::KILL] {
        let (directory, upstream, summarizer) =
            (TempDir::new().unwrap(), upstream().await, summarizer().await);
        let url = format!("embedded:{}", directory.path().join("data").display());
        let settings = with_store(&summarization("mode = \"inline\"\n"), &url);
        let settings = with_summarizer(&settings, &summarizer, "5s");
        let mut first = start(&settings, &upstream).await;
        let (reply, before) = send(&first, &upstream, "a", &chat(4)).await;
        assert_eq!(edits(&reply), FIRST_FOLD);
        first.signal(signal);
        first.ended().await;
        let second = start(&settings, &upstream).await;
        let (reply, again) = send(&second, &upstream, "a", &chat(4)).await;
        assert_eq!((edits(&reply), &again), (FIRST_FOLD, &before));
        let (reply, next) = send(&second, &upstream, "a", &chat(5)).await;
        assert_eq!((edits(&reply), next.summary()), (FIRST_FOLD, before.summary()));
        assert!(Forwarded::prefix(&before).len() > 500 && next.body.starts_with(before.prefix()));
        assert_eq!(summarizer.requests().len(), 1, "the summary was made again");
    }
}
