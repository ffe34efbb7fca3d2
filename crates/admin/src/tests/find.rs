use super::{memory_store, options, record_turn, refused};
use crate::{ConversationSummary, Filter, Source};
use tidegate_store::Conversations;

#[tokio::test]
async fn pages_continue_to_the_end() {
    let conversations = Conversations::new(memory_store(), options());
    for number in 0..7 {
        record_turn(
            &conversations,
            number,
            if number % 2 == 0 { "even" } else { "odd" },
            "n",
            100 + u64::from(number),
        )
        .await;
    }
    let source = Source::Opened(conversations);
    let first = source.list(&Filter::default(), 0, 5).await.unwrap();
    assert_eq!((first.total, first.next, first.conversations.len()), (Some(7), Some(5), 5));
    assert_eq!(first.conversations[0].last, 106, "newest first");
    let rest = source.list(&Filter::default(), 5, 5).await.unwrap();
    assert_eq!((rest.next, rest.conversations.len()), (None, 2));
    let odd = Filter { tenant: Some("odd".to_owned()), ..Filter::default() };
    let page = source.list(&odd, 0, 2).await.unwrap();
    let lasts =
        |page: &[ConversationSummary]| page.iter().map(|conversation| conversation.last).collect::<Vec<_>>();
    assert_eq!((lasts(&page.conversations), page.next, page.scanned), (vec![105, 103], Some(4), 4));
    let page = source.list(&odd, 4, 2).await.unwrap();
    assert_eq!((lasts(&page.conversations), page.next, page.total), (vec![101], None, None));
    let unknown = Filter { name: Some("other".to_owned()), ..Filter::default() };
    assert_eq!(source.list(&unknown, 0, 2).await.unwrap().conversations, []);
}

#[tokio::test]
async fn a_scan_is_bounded_and_reports_where_to_continue() {
    let conversations = Conversations::new(memory_store(), options());
    for number in 0..10_050 {
        record_turn(&conversations, number, "t", "n", 1 + u64::from(number)).await;
    }
    record_turn(&conversations, 20_000, "u", "old", 0).await;
    let source = Source::Opened(conversations);
    let old = Filter { name: Some("old".to_owned()), ..Filter::default() };
    let page = source.list(&old, 0, 50).await.unwrap();
    assert_eq!((page.conversations.len(), page.scanned, page.next), (0, 10_000, Some(10_000)));
    let page = source.list(&old, 10_000, 50).await.unwrap();
    assert_eq!((page.conversations.len(), page.scanned, page.next), (1, 51, None));
    let error = source.conversation("old", None, 0).await.unwrap_err();
    assert!(error.to_string().contains("among the 10000 newest"), "{error}");
}

#[tokio::test]
async fn a_conversation_is_found_by_key_prefix_or_name() {
    let conversations = Conversations::new(memory_store(), options());
    let key = record_turn(&conversations, 0xabcd_ef01, "ada", "team/a:1", 10).await.to_string();
    record_turn(&conversations, 0xabcd_ef99, "bob", "same", 11).await;
    record_turn(&conversations, 0x0000_0099, "ada", "same", 12).await;
    let source = Source::Opened(conversations);
    for id in [key.as_str(), &key.to_uppercase(), "abcdef01", "team/a:1"] {
        let found = source.conversation(id, None, 0).await.unwrap();
        assert_eq!((found.conversation.id.as_str(), found.turns.len()), (key.as_str(), 1), "{id}");
        let ours = source.conversation(id, Some("ada"), 0).await.unwrap();
        assert_eq!(ours.conversation.tenant, "ada", "{id}");
        let theirs = source.conversation(id, Some("bob"), 0).await.unwrap_err();
        assert_eq!(refused(theirs), (404, "conversation_not_found".to_owned()), "{id}");
        let theirs = source.messages(id, Some("bob"), 0).await.unwrap_err();
        assert_eq!(refused(theirs).0, 404, "{id}");
        assert_eq!(refused(source.export(id, Some("bob")).await.unwrap_err()).0, 404, "{id}");
    }
    for ambiguous in ["same", "abcdef"] {
        let error = source.conversation(ambiguous, None, 0).await.unwrap_err();
        assert!(
            error.to_string().contains("of tenant bob") && error.to_string().contains("of tenant ada"),
            "{error}"
        );
        assert_eq!(refused(error), (409, "ambiguous_conversation".to_owned()));
    }
    assert_eq!(source.conversation("same", Some("bob"), 0).await.unwrap().conversation.tenant, "bob");
    for unknown in ["abcde", "nobody", &"0".repeat(32)] {
        assert_eq!(refused(source.conversation(unknown, None, 0).await.unwrap_err()).0, 404, "{unknown}");
    }
}

/// A client may use any name for a conversation, including the key of another.
#[tokio::test]
async fn a_name_cannot_shadow_a_key() {
    let conversations = Conversations::new(memory_store(), options());
    let key = record_turn(&conversations, 0xabcd_ef01, "ada", "mine", 10).await.to_string();
    let imitation = record_turn(&conversations, 1, "eve", &key, 11).await.to_string();
    let source = Source::Opened(conversations);
    assert_eq!(source.conversation(&key, None, 0).await.unwrap().conversation.tenant, "ada");
    assert_eq!(source.conversation(&key, Some("eve"), 0).await.unwrap().conversation.id, imitation);
}

#[tokio::test]
async fn deleting_takes_the_full_id_and_the_right_tenant() {
    let conversations = Conversations::new(memory_store(), options());
    let key = record_turn(&conversations, 0xabcd_ef01, "ada", "mine", 10).await.to_string();
    let source = Source::Opened(conversations);
    for part in ["mine", "abcdef01"] {
        let error = source.delete(part, None).await.unwrap_err();
        assert_eq!(refused(error), (400, "whole_id_needed".to_owned()), "{part}");
    }
    assert_eq!(refused(source.delete(&key, Some("bob")).await.unwrap_err()).0, 404);
    assert_eq!(source.delete(&key, Some("ada")).await, Ok(()));
    assert_eq!(refused(source.delete(&key, Some("ada")).await.unwrap_err()).0, 404);
    assert_eq!(refused(source.delete(&key, None).await.unwrap_err()).0, 404);
    assert_eq!(source.list(&Filter::default(), 0, 1).await.unwrap().total, Some(0));
}
