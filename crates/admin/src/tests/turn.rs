use super::{admin, admin_with, call, error_code, memory_store, options, test_router};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_context::{TurnRecord, encode_turn};
use tidegate_engine::{Digest, Timestamp};
use tidegate_store::{
    ConversationKey, Conversations, Entries, Generation, MessageId, Options, RawMessage, Standing,
    StoredFold, Turn,
};

const KEY: ConversationKey = ConversationKey([7; 16]);

/// A message whose id is named by one byte and whose parent is the previous byte.
fn message(id: u8, role: &str, content: &str) -> RawMessage {
    let mut json = json!({"role": role, "content": content});
    if role == "tool" {
        json["tool_call_id"] = "c".into();
    }
    let (parent, position) = (MessageId([id - 1; 32]), u32::from(id) - 1);
    RawMessage {
        id: MessageId([id; 32]),
        parent,
        position,
        at: 5,
        json: json.to_string().into(),
        standing: Standing::Kept,
    }
}

fn turn_record(number: u8, end: u8, messages: usize) -> TurnRecord {
    TurnRecord {
        at: 10 + u64::from(number),
        route: "default".to_owned(),
        model: "gpt-4o".to_owned(),
        strategy: "hybrid".to_owned(),
        outcome: "answered".to_owned(),
        messages,
        end: Digest([end; 32]).to_string(),
        window: 128_000,
        safe: 128_000,
        output: 2_048,
        overhead: 6_400,
        budget: 119_552,
        tokens_before: 400,
        tokens_after: 120,
        ..TurnRecord::default()
    }
}

async fn recorded(raw: bool, turns: Vec<TurnRecord>) -> Arc<Conversations> {
    let conversations = Conversations::new(memory_store(), Options { raw, ..options() });
    let long = "a line of output\n".repeat(40);
    let messages = vec![
        message(1, "user", "the task"),
        message(2, "assistant", "I look."),
        message(3, "tool", &long),
        message(4, "assistant", "I look <script>again</script>."),
        message(5, "tool", &long),
        message(6, "user", "next"),
    ];
    conversations.journal(KEY, Entries { messages, ..Entries::default() }).await.unwrap();
    let state = json!({"summary": {"summary_text": "Looked around.", "key_facts": [{"text": "There is a file."}]}, "author": "extractive"});
    let fold =
        StoredFold { covers: Digest([3; 32]), covered: 3, at: Timestamp(9), state: state.to_string().into() };
    conversations.fold(KEY, Generation(0), fold).await.unwrap();
    for (number, record) in turns.into_iter().enumerate() {
        let turn = Turn {
            id: [u8::try_from(number).unwrap(); 16],
            end: None,
            at: record.at,
            record: encode_turn(&record),
            counts: vec![("refusals", 1)],
            labels: vec![("name", "n".to_owned()), ("stop_hint", "3".to_owned())],
        };
        conversations.count(KEY, Generation(0), turn).await.unwrap();
    }
    conversations
}

async fn get(conversations: Arc<Conversations>, target: &str) -> (u16, Value) {
    let (status, text) = call(&test_router(admin(conversations)), Method::GET, target).await;
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn a_turn_shows_its_plan_reasons_and_changes() {
    let masked = TurnRecord {
        masked: vec![2],
        edge: 5,
        trigger: Some("break_even".to_owned()),
        ..turn_record(0, 6, 6)
    };
    let (status, page) = get(recorded(true, vec![masked]).await, "/api/conversations/n/turns/1").await;
    assert_eq!((status, &page["missing"], &page["turns_total"]), (200, &Value::Null, &json!(1)), "{page}");
    assert_eq!(page["cause"], "break_even: keeping the observations has cost as much as masking them");
    let plan = &page["explanation"];
    assert_eq!(
        plan["budget"],
        json!({"window": 128_000, "window_source": "table", "safe": 128_000, "output": 2_048, "output_source": "policy", "overhead": 6_400, "input": 119_552, "refuse_above": null})
    );
    assert_eq!(
        (&plan["messages"][2]["action"], &plan["messages"][2]["why"]),
        (&json!("mask"), &json!("older than mask.keep = { turns = 10 }"))
    );
    assert_eq!(
        (&plan["messages"][4]["action"], &plan["messages"][4]["reason"]),
        (&json!("keep"), &json!("unresolved_end"))
    );
    assert_eq!(
        (&plan["usage"]["before"], &plan["usage"]["after"]),
        (&json!(400), &json!(120)),
        "as recorded"
    );
    let change = &page["changes"][0];
    assert_eq!((&change["title"], &change["kind"]), (&json!("messages[2]: masked"), &json!("changed")));
    assert_eq!(
        (&page["conversation"]["stop_hint"], &page["conversation"]["refusals"]),
        (&json!(3), &json!(1))
    );
}

#[tokio::test]
async fn a_turn_shows_the_summary_it_used() {
    let folded = TurnRecord {
        folded: 2,
        covers: Digest([3; 32]).to_string(),
        upto: 3,
        folded_messages: vec![[1, 3]],
        summary_tokens: 44,
        ..turn_record(0, 6, 6)
    };
    let (_, page) = get(recorded(true, vec![folded]).await, "/api/conversations/n/turns/1").await;
    assert_eq!(page["summary"]["summary"]["summary_text"], "Looked around.", "{page}");
    let kinds: Vec<(&Value, &Value)> = page["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (&change["kind"], &change["title"]))
        .collect();
    assert_eq!(
        kinds,
        [
            (&json!("changed"), &json!("messages[0]: as sent, with a summary that stands for 3 messages")),
            (&json!("removed"), &json!("messages[1] to [2]: covered by the summary")),
        ]
    );
    let text = page["changes"][0]["lines"].to_string();
    assert!(text.contains("There is a file."), "{text}");
    assert_eq!(page["explanation"]["messages"][1]["action"], "fold");
}

#[tokio::test]
async fn missing_messages_are_explained() {
    let old = TurnRecord { safe: 0, ..turn_record(0, 6, 6) };
    let expired = turn_record(1, 6, 9);
    let refused = TurnRecord { overflow_rejected: true, ..turn_record(2, 6, 6) };
    let rerouted = TurnRecord { route: "closed".to_owned(), ..turn_record(3, 6, 6) };
    let conversations = recorded(true, vec![old, expired, refused, rerouted]).await;
    for (number, expected) in [
        (1, "an earlier version recorded this turn without the messages of its plan"),
        (2, "only 6 of its 9 messages are available; the others have expired or cannot be read"),
        (3, "the messages of a refused request are not recorded"),
        (4, "the route `closed` no longer exists"),
    ] {
        let (status, page) =
            get(conversations.clone(), &format!("/api/conversations/n/turns/{number}")).await;
        assert_eq!((status, &page["missing"]), (200, &json!(expected)));
        assert_eq!((&page["explanation"], &page["changes"]), (&Value::Null, &json!([])));
        assert_eq!(page["turn"]["budget"], 119_552, "recorded figures are still shown");
    }
    let (status, text) =
        call(&test_router(admin(conversations)), Method::GET, "/api/conversations/n/turns/5").await;
    assert_eq!((status, error_code(&text).as_str()), (404, "turn_not_found"));
    let bare = recorded(false, vec![turn_record(0, 6, 6)]).await;
    let (_, page) = get(bare, "/api/conversations/n/turns/1").await;
    assert_eq!(page["missing"], "`store.raw` is false: messages are not recorded");
}

#[tokio::test]
async fn reasons_use_the_policy_of_the_route() {
    let masked =
        TurnRecord { masked: vec![2], edge: 4, strategy: "masking".to_owned(), ..turn_record(0, 6, 6) };
    let file = "[context.mask]\nkeep = { turns = 1 }\nplaceholder = \"[gone]\"\n";
    let router = test_router(admin_with(recorded(true, vec![masked]).await, file, Vec::new));
    let (_, text) = call(&router, Method::GET, "/api/conversations/n/turns/1?offset=2&limit=1").await;
    let page: Value = serde_json::from_str(&text).unwrap();
    let messages = page["explanation"]["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["why"]), (1, &json!("older than mask.keep = { turns = 1 }")));
    assert!(page["changes"][0]["lines"].to_string().contains("[gone]"), "{text}");
    assert_eq!((&page["messages_total"], &page["messages_offset"]), (&json!(6), &json!(2)));
}

#[tokio::test]
async fn observed_turns_show_no_changes() {
    let observed = TurnRecord { masked: vec![2], edge: 5, observed: true, ..turn_record(0, 6, 6) };
    let edited = TurnRecord { masked: vec![2], edge: 5, ..turn_record(1, 6, 6) };
    // The current policy of the route does not matter.
    for file in ["", "[context]\nobserve = true\n"] {
        let conversations = recorded(true, vec![observed.clone(), edited.clone()]).await;
        let router = test_router(admin_with(conversations, file, Vec::new));
        for (number, changes, action) in [(1, 0, "keep"), (2, 1, "mask")] {
            let target = format!("/api/conversations/n/turns/{number}");
            let page: Value = serde_json::from_str(&call(&router, Method::GET, &target).await.1).unwrap();
            assert_eq!(page["changes"].as_array().unwrap().len(), changes, "{page}");
            assert_eq!(page["explanation"]["messages"][2]["action"], action);
        }
    }
}

#[tokio::test]
async fn a_later_instruction_is_not_part_of_a_turn() {
    let conversations = recorded(true, vec![turn_record(0, 6, 6), turn_record(9, 6, 6)]).await;
    let reminder = RawMessage {
        id: MessageId([99; 32]),
        parent: MessageId([6; 32]),
        position: 6,
        at: 15,
        json: json!({"role": "system", "content": "Be brief."}).to_string().into(),
        standing: Standing::Kept,
    };
    conversations.journal(KEY, Entries { messages: vec![reminder], ..Entries::default() }).await.unwrap();
    let (_, before) = get(conversations.clone(), "/api/conversations/n/turns/1").await;
    assert_eq!(before["missing"], Value::Null);
    let (_, after) = get(conversations, "/api/conversations/n/turns/2").await;
    let expected =
        "the client has changed its instructions since, and the ones of this turn are not recorded";
    assert_eq!(after["missing"], expected);
}
