use super::{admin, call, error_code, memory_store, options, record_turn, refused, test_router};
use crate::Source;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tidegate_engine::{Digest, Timestamp};
use tidegate_store::{Conversations, Generation, Keyring, Options, StoredFold};

fn fold(covers: u8, at: u64, state: &Value) -> StoredFold {
    let covered = u32::from(covers);
    StoredFold { covers: Digest([covers; 32]), covered, at: Timestamp(at), state: state.to_string().into() }
}

fn state(fact: &str) -> Value {
    json!({
        "summary": {"summary_text": "Piers.", "key_facts": [{"text": fact, "rests_on": [3]}]},
        "author": "gpt-4o-mini", "calls": 2, "prompt_tokens": 900, "completion_tokens": 120,
        "seen": 17, "keeps_request": true, "a_later_member": [],
    })
}

#[tokio::test]
async fn summaries_are_listed_with_their_cost() {
    let conversations = Conversations::new(memory_store(), options());
    let key = record_turn(&conversations, 7, "t", "n", 10).await;
    let empty = Source::Opened(conversations.clone()).conversation("n", None, 0).await.unwrap();
    assert_eq!((empty.summaries, empty.summaries_degraded), (Vec::new(), None));
    conversations.fold(key, Generation(0), fold(9, 1_000, &state("Nine metres."))).await.unwrap();
    let garbled = StoredFold { state: Bytes::from_static(b"{\"summary\":"), ..fold(12, 2_000, &Value::Null) };
    conversations.fold(key, Generation(0), garbled).await.unwrap();

    let (status, text) =
        call(&test_router(admin(conversations.clone())), Method::GET, "/api/conversations/n").await;
    let page: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, page["summaries_degraded"].clone()), (200, Value::Null));
    let first = json!({
        "covers": "09".repeat(32), "covered": 9, "at": 1_000, "author": "gpt-4o-mini", "calls": 2, "prompt_tokens": 900,
        "completion_tokens": 120,
        "summary": {"summary_text": "Piers.", "key_facts": [{"text": "Nine metres.", "rests_on": [3]}]},
    });
    assert_eq!(page["summaries"][0], first);
    let second = &page["summaries"][1];
    assert_eq!(
        (&second["covered"], &second["summary"], &second["author"]),
        (&12.into(), &Value::Null, &"".into())
    );
    let read = Source::Opened(conversations).conversation("n", None, 0).await.unwrap();
    assert_eq!((read.summaries.len(), read.summaries[0].prompt_tokens), (2, 900));
}

#[tokio::test]
async fn the_summaries_of_another_tenant_are_invisible() {
    let conversations = Conversations::new(memory_store(), options());
    let ada = record_turn(&conversations, 1, "ada", "same", 10).await;
    let bob = record_turn(&conversations, 2, "bob", "same", 11).await;
    conversations.fold(ada, Generation(0), fold(9, 1, &state("Ada's canary."))).await.unwrap();
    conversations.fold(bob, Generation(0), fold(9, 1, &state("Bob's canary."))).await.unwrap();
    let router = test_router(admin(conversations.clone()));
    let (status, text) = call(&router, Method::GET, "/api/conversations/same?tenant=bob").await;
    assert!(status == 200 && text.contains("Bob's canary.") && !text.contains("Ada's"), "{text}");
    for (target, expected) in [
        ("/api/conversations/same".to_owned(), (409, "ambiguous_conversation")),
        (format!("/api/conversations/{ada}?tenant=bob"), (404, "conversation_not_found")),
    ] {
        let (status, text) = call(&router, Method::GET, &target).await;
        assert!(!text.contains("canary"), "{text}");
        assert_eq!((status, error_code(&text).as_str()), expected, "{target}");
    }
    let error =
        Source::Opened(conversations).conversation(&ada.to_string(), Some("bob"), 0).await.unwrap_err();
    assert_eq!(refused(error).0, 404);
}

#[tokio::test]
async fn a_summary_without_its_key_is_reported_as_missing() {
    let store = memory_store();
    let keyring: Keyring = "01".repeat(32).parse().unwrap();
    let sealed = Conversations::new(store.clone(), Options { keyring: Some(keyring), ..options() });
    let plain = Conversations::new(store, options());
    let key = record_turn(&sealed, 7, "t", "n", 10).await;
    sealed.fold(key, Generation(0), fold(9, 1, &state("The canary."))).await.unwrap();
    let without = Source::Opened(plain).conversation("n", None, 0).await.unwrap();
    assert_eq!((without.summaries.len(), without.summaries_degraded.as_deref()), (0, Some("store_no_key")));
    assert_eq!(Source::Opened(sealed).conversation("n", None, 0).await.unwrap().summaries.len(), 1);
}
