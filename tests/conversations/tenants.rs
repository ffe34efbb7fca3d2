//! Two tenants that use the same conversation name have two conversations.

use super::ask::{api, conversations, json, output_of, until_counted};
use super::scene::{in_memory, question};
use serde_json::Value;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn the_tenant_distinguishes_equal_names() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).start().await;
    question(&tidegate, &upstream, "sk-ada", "same", "ada asks").await;
    question(&tidegate, &upstream, "sk-bob", "same", "bob asks").await;
    let page = until_counted(&tidegate, 2).await;
    assert!(!page.to_string().contains("sk-"), "{page}");
    // The newest comes first, but both may have the same timestamp.
    let all = page["conversations"].as_array().unwrap();
    let (a, b) = (&all[0], &all[1]);
    assert_ne!(a["tenant"], b["tenant"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (tenant, id, other) = (text(&a["tenant"]), text(&a["id"]), text(&b["id"]));

    for part in ["", "/messages", "/export"] {
        let ambiguous = api(tidegate.admin, "GET", &format!("/api/conversations/same{part}"), &[]).await;
        assert_eq!((ambiguous.status, ambiguous.error_code().as_str()), (409, "ambiguous_conversation"));
        let message = ambiguous.text();
        assert!(message.contains(&id) && message.contains(&other) && message.contains(&tenant), "{message}");
        assert!(!message.contains("asks"), "{message}");
        for foreign in [format!("{other}{part}?tenant={tenant}"), format!("same{part}?tenant=nobody")] {
            let reply = api(tidegate.admin, "GET", &format!("/api/conversations/{foreign}"), &[]).await;
            assert_eq!(
                (reply.status, reply.error_code().as_str()),
                (404, "conversation_not_found"),
                "{foreign}"
            );
        }
    }
    let foreign =
        api(tidegate.admin, "DELETE", &format!("/api/conversations/{other}?tenant={tenant}"), &[]).await;
    assert_eq!(foreign.status, 404);
    let misspelt = api(tidegate.admin, "GET", &format!("/api/conversations?tennant={tenant}"), &[]).await;
    assert_eq!((misspelt.status, misspelt.error_code().as_str()), (400, "invalid_parameter"));

    let mine = json(&tidegate, &format!("/api/conversations?tenant={tenant}&name=same")).await;
    assert_eq!(
        (mine["conversations"].as_array().unwrap().len(), &mine["conversations"][0]["id"]),
        (1, &a["id"])
    );
    let shown = json(&tidegate, &format!("/api/conversations/same?tenant={tenant}")).await;
    assert_eq!(shown["conversation"]["id"], a["id"]);

    let admin = tidegate.admin.to_string();
    let several = conversations(&["show", "same", "--admin", &admin], &[]).await;
    assert_eq!((several.code, several.out.as_str()), (Some(4), ""));
    assert!(several.err.contains(&id) && several.err.contains(&other), "{}", several.err);
    let one = output_of(&tidegate, &["show", "same", "--tenant", &tenant]).await;
    assert!(one.contains("ada asks") != one.contains("bob asks"), "{one}");
    output_of(&tidegate, &["delete", "same", "--tenant", &tenant, "--yes"]).await;
    assert_eq!(json(&tidegate, "/api/conversations/same").await["conversation"]["id"], b["id"]);
}
