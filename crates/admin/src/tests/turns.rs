use super::{admin, call, memory_store, options, record_turn, test_router};
use crate::{Filter, Source};
use http::Method;
use serde_json::{Value, json};
use tidegate_context::{BlockSizes, TurnRecord, encode_turn};
use tidegate_store::{Conversations, Generation, Turn};

/// A turn with every recordable figure.
fn full_record() -> TurnRecord {
    TurnRecord {
        at: 20,
        request_id: "r20".to_owned(),
        tokens_before: 9_000,
        tokens_after: 1_500,
        window: 128_000,
        budget: 119_552,
        tokens_after_summary: 2_000,
        tokens_after_prune: 1_500,
        summary_triggered: true,
        prune_triggered: true,
        overflow_rejected: false,
        folded: 7,
        dropped: 2,
        summary_tokens: 300,
        masked_tokens: 800,
        blocks: Some(BlockSizes {
            memory_before: 9,
            memory_after: 5,
            removed_lines: 1,
            ..BlockSizes::default()
        }),
        cost_usd: Some(0.001_25),
        stop_hint: Some(3),
        ..TurnRecord::default()
    }
}

#[tokio::test]
async fn every_figure_of_a_turn_is_returned() {
    let conversations = Conversations::new(memory_store(), options());
    let key = record_turn(&conversations, 7, "t", "n", 10).await;
    let counted = Turn {
        id: [9; 16],
        end: None,
        at: 20,
        record: encode_turn(&full_record()),
        counts: vec![("cost_nanousd", 1_250_000)],
        labels: Vec::new(),
    };
    conversations.count(key, Generation(0), counted).await.unwrap();
    let (status, text) =
        call(&test_router(admin(conversations.clone())), Method::GET, "/api/conversations/n").await;
    let page: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &page["turns_total"]), (200, &2.into()));
    let expected = json!({
        "tokens_before": 9_000, "tokens_after": 1_500, "window": 128_000, "budget": 119_552, "tokens_after_summary": 2_000,
        "tokens_after_prune": 1_500, "summary_triggered": true, "prune_triggered": true, "overflow_rejected": false,
        "folded": 7, "dropped": 2, "summary_tokens": 300, "masked_tokens": 800, "cost_usd": 0.001_25, "stop_hint": 3,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&page["turns"][1][name], value, "{name}");
    }
    let blocks = &page["turns"][1]["blocks"];
    assert_eq!(
        (&blocks["memory_before"], &blocks["memory_after"], &blocks["removed_lines"]),
        (&9.into(), &5.into(), &1.into())
    );
    let first = &page["turns"][0];
    assert_eq!(
        (&first["cost_usd"], &first["blocks"], &first["stop_hint"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let read = Source::Opened(conversations).conversation("n", None, 0).await.unwrap();
    assert_eq!(read.turns[1], full_record(), "the client reads what the server writes");
}

#[tokio::test]
async fn costs_are_in_usd_and_null_if_unknown() {
    let conversations = Conversations::new(memory_store(), options());
    record_turn(&conversations, 7, "t", "free", 10).await;
    let key = record_turn(&conversations, 8, "t", "paid", 11).await;
    for (id, nano) in [([1; 16], 1_250_000), ([2; 16], 0), ([3; 16], 1)] {
        let counts = vec![("cost_nanousd", nano)];
        let turn =
            Turn { id, end: None, at: 12, record: encode_turn(&full_record()), counts, labels: Vec::new() };
        conversations.count(key, Generation(0), turn).await.unwrap();
    }
    let page = Source::Opened(conversations).list(&Filter::default(), 0, 9).await.unwrap();
    let costs: Vec<_> = page
        .conversations
        .iter()
        .map(|conversation| (conversation.name.as_str(), conversation.cost_usd))
        .collect();
    assert_eq!(costs, [("paid", Some(0.001_250_001)), ("free", None)]);
}
