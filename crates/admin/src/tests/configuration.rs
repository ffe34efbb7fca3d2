use super::{admin, admin_with, call, memory_store, options, test_router};
use crate::{Reload, ReloadOutcome};
use http::Method;
use serde_json::{Value, json};
use tidegate_store::Conversations;

const FILE: &str = "[store]\nurl = \"redis://user:hunter2@10.0.0.1\"\n[context]\nprofile = \"agent\"\n[context.mask]\nkeep = { turns = 6 }\n\
     [[routes]]\nname = \"a\"\n[[routes]]\nname = \"b\"\n[routes.context]\nstrategy = \"hybrid\"\n";

#[tokio::test]
async fn every_value_has_its_origin() {
    let router = test_router(admin_with(Conversations::new(memory_store(), options()), FILE, Vec::new));
    let (status, text) = call(&router, Method::GET, "/api/config").await;
    assert_eq!(status, 200);
    assert!(!text.contains("hunter2"), "{text}");
    let page: Value = serde_json::from_str(&text).unwrap();
    let value = |route: usize, key: &str| {
        let values = page["routes"][route]["values"].as_array().unwrap();
        let found = values.iter().find(|value| value["key"] == key).unwrap();
        (found["value"].clone(), found["origin"].clone())
    };
    let from = |kind: &str, text: &str| json!({ "kind": kind, "text": text });
    assert_eq!(value(0, "context.mask.keep"), (json!("{ turns = 6 }"), from("file", "proxy.toml:6")));
    assert_eq!(value(1, "context.strategy"), (json!("\"hybrid\""), from("file", "proxy.toml:12")));
    assert_eq!(value(0, "context.budget.max_context_ratio").1, from("profile", "profile agent"));
    assert_eq!(value(0, "context.observe").1, from("default", "default"));
    assert!(page["routes"][1]["policy"].as_str().unwrap().contains("[context.mask]\nkeep = { turns = 6 }\n"));
    assert!(page["process"].as_array().unwrap().iter().any(|value| value["key"] == "store.ttl"));
    assert_eq!(
        page["reload"],
        json!({"at": 5, "outcome": "started", "errors": null, "needs_restart": false})
    );
    assert_eq!(page["file"], "proxy.toml");
}

#[tokio::test]
async fn the_last_reload_is_shown() {
    let admin = admin(Conversations::new(memory_store(), options()));
    let reloads = admin.reloads.clone();
    let router = test_router(admin);
    let errors = Some("proxy.toml:2: unknown key `x`".to_owned());
    reloads.record(Reload { at: 9, outcome: ReloadOutcome::Rejected, errors, needs_restart: false });
    let (_, text) = call(&router, Method::GET, "/api/config").await;
    let page: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&page["reload"]["outcome"], &page["reload"]["at"]), (&json!("rejected"), &json!(9)));
    assert_eq!(page["reload"]["errors"], "proxy.toml:2: unknown key `x`");
}
