//! Memory pinned to a conversation is in every request until it is cleared.

use super::ask::{api, conversations, json, output_of, put, run_on_store, until_counted};
use super::scene::{question, url};
use crate::support::agent::{body, conversation, send};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{MockUpstream, RedisServer};

const TARGET: &str = "/api/conversations/build-7/memory";

/// Sends the next turn. Returns the contents of the first two messages that reach the upstream.
async fn next(tidegate: &Tidegate, upstream: &MockUpstream, turn: usize) -> Vec<String> {
    let sent = body("gpt-4o", &conversation(turn), &[]);
    let (_, forwarded) = send(tidegate, upstream, &[("x-conversation-id", "build-7")], &sent).await;
    let forwarded: Value = serde_json::from_str(&forwarded).unwrap();
    let messages = forwarded["messages"].as_array().unwrap();
    messages.iter().take(2).map(|one| one["content"].as_str().unwrap_or("-").to_owned()).collect()
}

const SYSTEM: &str = "You are a careful agent.";
const TASK: &str = "Fix the bug, \u{e9}t c\u{e6}tera.";

fn with(memory: &str) -> Vec<String> {
    [SYSTEM, &format!("## Your Memory\n{memory}\n\n{TASK}")].map(str::to_owned).to_vec()
}

/// Sets, replaces and clears memory and restarts, and checks the next request each time.
async fn assert_memory_is_kept(store: &str) {
    let upstream = MockUpstream::start().await;
    let process = || Setup::new("").upstream(&upstream.url()).env("TIDEGATE_STORE", store);
    let tidegate = process().start().await;
    assert_eq!(next(&tidegate, &upstream, 1).await[1], TASK);
    until_counted(&tidegate, 1).await;
    let admin = tidegate.admin.to_string();
    let none = conversations(&["memory", "build-7", "--admin", &admin], &[]).await;
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""), "{none:?}");
    assert!(none.err.contains("nothing is pinned"), "{}", none.err);
    assert_eq!(json(&tidegate, TARGET).await, json!({"memory": null}));

    let output = output_of(&tidegate, &["memory", "build-7", "--set", "- The ship is Ada."]).await;
    assert!(
        output.starts_with("pinned 18 bytes to ") && output.contains("(`build-7` of tenant "),
        "{output}"
    );
    assert_eq!(next(&tidegate, &upstream, 2).await, with("- The ship is Ada."));
    assert_eq!(json(&tidegate, TARGET).await, json!({"memory": "- The ship is Ada."}));

    let new = json!({"memory": "The ship is Bob.\nIt sails.\n"}).to_string();
    let reply = put(tidegate.admin, TARGET, &[], "application/json", new).await;
    assert_eq!((reply.status, reply.body.len()), (204, 0));
    assert_eq!(next(&tidegate, &upstream, 3).await, with("The ship is Bob.\nIt sails."));
    assert_eq!(output_of(&tidegate, &["memory", "build-7"]).await, "The ship is Bob.\nIt sails.\n");
    assert_memory_is_shown(&tidegate).await;
    tidegate.stop().await;

    let tidegate = process().start().await;
    assert_eq!(next(&tidegate, &upstream, 4).await, with("The ship is Bob.\nIt sails."), "after a restart");
    tidegate.stop().await;
    let alone = run_on_store(store, &["memory", "build-7", "--set", "Set while stopped."], &[]).await;
    assert_eq!((alone.code, alone.err.as_str()), (Some(0), ""), "{alone:?}");
    let tidegate = process().start().await;
    assert_eq!(next(&tidegate, &upstream, 5).await, with("Set while stopped."));

    let output = output_of(&tidegate, &["memory", "build-7", "--clear", "--json"]).await;
    assert_eq!(output, "{\"memory\":null}\n");
    assert_eq!(next(&tidegate, &upstream, 6).await[1], TASK, "the memory was not cleared");
    put(tidegate.admin, TARGET, &[], "text/plain", "Once more.").await;
    assert_eq!(next(&tidegate, &upstream, 7).await, with("Once more."));
    assert_eq!(api(tidegate.admin, "DELETE", TARGET, &[]).await.status, 204);
    assert_eq!(next(&tidegate, &upstream, 8).await[1], TASK);
    tidegate.stop().await;
    let alone = run_on_store(store, &["memory", "build-7", "--json"], &[]).await;
    assert_eq!((alone.code, alone.out.as_str()), (Some(0), "{\"memory\":null}\n"), "{alone:?}");
}

async fn assert_memory_is_shown(tidegate: &Tidegate) {
    let page = json(tidegate, "/api/conversations/build-7").await;
    assert_eq!(page["memory"], "The ship is Bob.\nIt sails.\n");
    let shown = output_of(tidegate, &["show", "build-7"]).await;
    assert!(shown.contains("\n\nmemory\n    The ship is Bob.\n    It sails.\n\nmessages\n"), "{shown}");
    let all: Value =
        serde_json::from_str(&output_of(tidegate, &["show", "build-7", "--json"]).await).unwrap();
    assert_eq!((&all["memory"], all["turns"].is_array()), (&page["memory"], true), "{all}");
    let export = output_of(tidegate, &["export", "build-7"]).await;
    let lines: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["memory"], page["memory"]);
    assert!(lines.len() > 1 && lines[1..].iter().all(|line| line.get("memory").is_none()), "{export}");
    let output = lines[0]["messages"].to_string();
    assert!(!output.contains("Your Memory"), "the recorded messages contain the memory: {output}");
}

#[tokio::test]
async fn memory_is_kept_in_a_directory() {
    let data = TempDir::new().unwrap();
    assert_memory_is_kept(&url(&data)).await;
}

#[tokio::test]
async fn memory_is_kept_in_redis() {
    let redis = RedisServer::start().await;
    assert_memory_is_kept(&redis.url()).await;
}

#[tokio::test]
async fn memory_pinned_by_another_process_is_in_the_next_request() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    let key = "5a".repeat(32);
    let process = || {
        Setup::new("")
            .upstream(&upstream.url())
            .env("TIDEGATE_STORE", &redis.url())
            .env("TIDEGATE_STORE_KEY", &key)
    };
    let (one, other) = (process().start().await, process().start().await);
    next(&one, &upstream, 1).await;
    until_counted(&one, 1).await;
    for (turn, memory) in [(2, "The first canary."), (3, "The second canary.")] {
        assert_eq!(put(other.admin, TARGET, &[], "text/plain", memory).await.status, 204);
        assert_eq!(next(&one, &upstream, turn).await, with(memory));
    }
    for key in redis.cli(&["--scan"]).await.lines() {
        if redis.cli(&["TYPE", key]).await.trim() == "string" {
            let content = redis.cli(&["GET", key]).await;
            assert!(!content.contains("canary"), "{key} is readable: {content}");
        }
    }
    assert_eq!(api(other.admin, "DELETE", TARGET, &[]).await.status, 204);
    assert_eq!(next(&one, &upstream, 4).await[1], TASK);
}

#[tokio::test]
async fn memory_is_never_in_another_tenants_requests() {
    let upstream = MockUpstream::start().await;
    let tidegate = super::scene::in_memory("", &upstream).start().await;
    for tenant in ["sk-ada", "sk-bob"] {
        question(&tidegate, &upstream, tenant, "same", "hello").await;
    }
    let page = until_counted(&tidegate, 2).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (mine, theirs) = (&page["conversations"][0], &page["conversations"][1]);
    let (tenant, id, other) = (text(&mine["tenant"]), text(&mine["id"]), text(&theirs["id"]));
    let admin = tidegate.admin.to_string();
    let several = conversations(&["memory", "same", "--set", "x", "--admin", &admin], &[]).await;
    assert_eq!((several.code, several.out.as_str()), (Some(4), ""), "{several:?}");
    output_of(&tidegate, &["memory", "same", "--tenant", &tenant, "--set", "The canary."]).await;

    let foreign = format!("/api/conversations/{other}/memory?tenant={tenant}");
    for reply in [
        api(tidegate.admin, "GET", &foreign, &[]).await,
        api(tidegate.admin, "DELETE", &foreign, &[]).await,
        put(tidegate.admin, &foreign, &[], "text/plain", "theirs").await,
    ] {
        assert_eq!((reply.status, reply.error_code().as_str()), (404, "conversation_not_found"));
    }
    assert_eq!(json(&tidegate, &format!("/api/conversations/{id}/memory")).await["memory"], "The canary.");
    assert_eq!(json(&tidegate, &format!("/api/conversations/{other}/memory")).await["memory"], Value::Null);
    let mut carrying = 0;
    for tenant in ["sk-ada", "sk-bob"] {
        let forwarded = question(&tidegate, &upstream, tenant, "same", "hello again").await;
        carrying += usize::from(forwarded.contains("The canary."));
    }
    assert_eq!(carrying, 1, "not exactly one tenant's request has the memory");

    output_of(&tidegate, &["delete", &id, "--yes"]).await;
    let gone = conversations(&["memory", &id, "--admin", &admin], &[]).await;
    assert_eq!(gone.code, Some(4), "{gone:?}");
}
