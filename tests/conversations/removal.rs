//! Deletion through the API and the command.

use super::ask::{api, conversations, json, output_of, run_on_directory, until_counted};
use super::scene::{agent_run, in_memory, stored};
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn a_deleted_conversation_is_gone() {
    let upstream = MockUpstream::start().await;
    let data = TempDir::new().unwrap();
    let tidegate = stored("", &upstream, &data).start().await;
    for name in ["one", "two", "three"] {
        agent_run(&tidegate, &upstream, name, 2).await;
    }
    until_counted(&tidegate, 6).await;
    let id = |value: serde_json::Value| value["conversation"]["id"].as_str().unwrap().to_owned();

    let one = id(json(&tidegate, "/api/conversations/one").await);
    let target = format!("/api/conversations/{one}");
    let by_name = api(tidegate.admin, "DELETE", "/api/conversations/one", &[]).await;
    assert_eq!((by_name.status, by_name.error_code().as_str()), (400, "whole_id_needed"));
    let deleted = api(tidegate.admin, "DELETE", &target, &[]).await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    let again = api(tidegate.admin, "DELETE", &target, &[]).await;
    assert_eq!((again.status, again.error_code().as_str()), (404, "conversation_not_found"));
    for part in ["", "/messages", "/export"] {
        assert_eq!(api(tidegate.admin, "GET", &format!("{target}{part}"), &[]).await.status, 404, "{part}");
    }

    let admin = tidegate.admin.to_string();
    let asked = conversations(&["delete", "two", "--admin", &admin], &[]).await;
    assert_eq!(asked.code, Some(2), "there is no terminal for confirmation: {asked:?}");
    assert!(asked.err.contains("--yes"), "{}", asked.err);
    let two = id(json(&tidegate, "/api/conversations/two").await);
    let output = output_of(&tidegate, &["delete", "two", "--yes"]).await;
    assert!(output.starts_with(&format!("deleted {two} (`two` of tenant ")), "{output}");
    assert!(output.ends_with("2 turns in 2 requests)\n"), "{output}");
    let gone = conversations(&["show", "two", "--admin", &admin], &[]).await;
    assert_eq!((gone.code, gone.out.as_str()), (Some(4), ""), "{gone:?}");
    tidegate.stop().await;

    let alone = run_on_directory(&data, &["delete", "three", "--yes", "--json"], &[]).await;
    assert!(alone.code == Some(0) && alone.out.contains("\"name\":\"three\""), "{alone:?}");
    let empty = run_on_directory(&data, &["list"], &[]).await;
    assert_eq!((empty.code, empty.out.as_str()), (Some(0), ""), "{empty:?}");
}

#[tokio::test]
async fn a_deleted_conversation_can_begin_again() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).start().await;
    agent_run(&tidegate, &upstream, "again", 2).await;
    until_counted(&tidegate, 2).await;
    output_of(&tidegate, &["delete", "again", "--yes"]).await;
    agent_run(&tidegate, &upstream, "again", 1).await;
    let page = until_counted(&tidegate, 1).await;
    assert_eq!(page["conversations"][0]["turns"], 1);
    let messages = json(&tidegate, "/api/conversations/again/messages").await;
    let messages = messages["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|one| one["message"]["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);
}
