//! Which API key a summarizer gets.

use super::scene::{FIRST_FOLD, edits, send, start, summarization, summarizer, upstream, with_summarizer};
use crate::support::chat::chat;
use crate::support::tidegate::Setup;

const INLINE: &str = "mode = \"inline\"\n";

#[tokio::test]
async fn the_clients_key_is_used_only_if_configured() {
    for (line, expected) in [("", None), ("forward_key = true\n", Some("Bearer ada"))] {
        let (upstream, summarizer) = (upstream().await, summarizer().await);
        let settings = with_summarizer(&summarization(INLINE), &summarizer, "5s") + line;
        let tidegate = start(&settings, &upstream).await;
        let (reply, _) = send(&tidegate, &upstream, "a", &chat(4)).await;
        assert_eq!(edits(&reply), FIRST_FOLD);
        let asked = summarizer.next_request().await;
        assert_eq!(asked.header("authorization"), expected);
        assert_eq!(asked.json()["model"], "gpt-4o-mini");
        assert_eq!(asked.header("x-conversation-id"), None);
    }
}

#[tokio::test]
async fn a_summarizer_uses_its_own_key() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    let settings = with_summarizer(&summarization(INLINE), &summarizer, "5s")
        + "api_key_env = \"SUMMARIZER_KEY\"\nforward_key = true\n";
    let setup = Setup::new(&settings).upstream(&upstream.url()).env("SUMMARIZER_KEY", "of-its-own");
    let tidegate = setup.start().await;
    send(&tidegate, &upstream, "a", &chat(4)).await;
    assert_eq!(summarizer.next_request().await.header("authorization"), Some("Bearer of-its-own"));
}
