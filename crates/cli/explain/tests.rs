//! Plans that a saved request cannot produce: messages are dropped only if a summarizer fails.

use super::{diff, table};
use serde_json::json as value;
use tidegate_config::{Flags, Source, load};
use tidegate_context::model_table;
use tidegate_context::{ConversationState, TurnRecord};
use tidegate_engine::Strategy;
use tidegate_explain::{Case, Past, Request, json};
use tidegate_wire::{Dialect, Reader};

#[test]
fn dropped_messages_and_their_marker_are_shown() {
    let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
    let message = |role: &str, text: &str| value!({"role": role, "content": text});
    let messages = [
        message("user", "task"),
        message("assistant", "one"),
        message("assistant", "two"),
        message("user", "next"),
    ];
    let body = value!({"model": "gpt-4o", "messages": messages}).to_string();
    let reader = Reader::default();
    let outline = reader.outline(Dialect::Chat, body.as_bytes()).unwrap();
    let model = model_table(&settings.models).lookup("gpt-4o");
    let route = &settings.routes[0];
    let strategy = Strategy::Summarization;
    let body = body.as_bytes();
    let request = Request { body, outline: &outline, settings: &settings, route, strategy, model: &model };
    let turn =
        TurnRecord { dropped: 2, dropped_messages: vec![[1, 3]], budget: 100, ..TurnRecord::default() };
    let case =
        Case::recorded(&reader, request, Past { turn: &turn, state: ConversationState::default() }).unwrap();
    let shown = table::render("request.json", &case);
    assert!(shown.contains("marker          add to 3  replaces dropped messages\n 3  user"), "{shown}");
    assert_eq!(shown.matches("drop      no summary covers it, and it does not fit\n").count(), 2, "{shown}");
    assert!(shown.contains("verdict: fits: forwarded with 2 messages dropped, "), "{shown}");
    let object = json::of(&case);
    assert_eq!(
        (&object["verdict"]["dropped"], &object["messages"][1]["action"]),
        (&value!(2), &value!("drop"))
    );
    let diff = diff::render(&case);
    let (removed, marker) = diff.split_once("--- messages[3] as sent, ").unwrap();
    assert!(marker.contains("+++ messages[3] as forwarded with a marker for what is dropped"), "{diff}");
    assert!(marker.contains("2 earlier turns of this conversation are missing here"), "{diff}");
    assert!(removed.starts_with("--- messages[1] to [2] as sent, "), "{diff}");
    assert!(removed.contains("+++ nothing: dropped for the marker\n@@ -1,8 +0,0 @@\n"), "{diff}");
}
