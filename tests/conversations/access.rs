//! Access control of the admin API.

use super::ask::{api, conversations, json, put, until_counted};
use super::scene::{agent_run, in_memory};
use crate::support::client::Client;
use tidegate_testkit::MockUpstream;

const TOKEN: &str = "TIDEGATE_ADMIN_TOKEN";

#[tokio::test]
async fn with_a_token_everything_but_the_probes_needs_it() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).env(TOKEN, "s3cret").start().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(api(tidegate.admin, "GET", path, &[]).await.status, 200, "{path}");
    }
    let paths = [
        "/metrics",
        "/api/conversations",
        "/api/conversations/x",
        "/api/conversations/x/messages",
        "/api/conversations/x/memory",
        "/x",
    ];
    for path in paths {
        let none = api(tidegate.admin, "GET", path, &[]).await;
        assert_eq!((none.status, none.error_code().as_str()), (401, "unauthorized"), "{path}");
        assert_eq!(none.header("www-authenticate"), Some("Bearer"));
        let wrong = api(tidegate.admin, "GET", path, &[("authorization", "Bearer s3cre7")]).await;
        assert_eq!(wrong.status, 401, "{path}");
        let right = api(tidegate.admin, "GET", path, &[("authorization", "Bearer s3cret")]).await;
        assert_ne!(right.status, 401, "{path}");
    }
    let admin = tidegate.admin.to_string();
    let list = ["list", "--admin", &admin, "--json"];
    assert_eq!(conversations(&list, &[(TOKEN, "s3cret")]).await.code, Some(0));
    for env in [&[][..], &[(TOKEN, "wrong")]] {
        let output = conversations(&list, env).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.err.contains("hint: put the token") && output.err.contains(TOKEN), "{}", output.err);
    }
    // The token allows changes, but not from a page of another site.
    let memory = "/api/conversations/x/memory";
    for (headers, expected) in [
        (&[][..], 401),
        (&[("authorization", "Bearer s3cret"), ("origin", "http://evil.test")], 403),
        (&[("authorization", "Bearer s3cret")], 404),
    ] {
        assert_eq!(put(tidegate.admin, memory, headers, "text/plain", "x").await.status, expected);
    }
    let log = tidegate.stop().await;
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn without_a_token_requests_from_web_pages_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).start().await;
    agent_run(&tidegate, &upstream, "mine", 1).await;
    let page = until_counted(&tidegate, 1).await;
    let rebound = api(tidegate.admin, "GET", "/api/conversations", &[("host", "evil.test:9090")]).await;
    assert_eq!((rebound.status, rebound.error_code().as_str()), (403, "foreign_host"));
    let target = format!("/api/conversations/{}", page["conversations"][0]["id"].as_str().unwrap());
    for header in [("origin", "http://evil.test"), ("sec-fetch-site", "cross-site"), ("origin", "null")] {
        let memory = format!("{target}/memory");
        for foreign in [
            api(tidegate.admin, "DELETE", &target, &[header]).await,
            api(tidegate.admin, "DELETE", &memory, &[header]).await,
            put(tidegate.admin, &memory, &[header], "text/plain", "theirs").await,
        ] {
            assert_eq!((foreign.status, foreign.error_code().as_str()), (403, "foreign_site"), "{header:?}");
        }
        assert_eq!(json(&tidegate, &memory).await, serde_json::json!({"memory": null}));
    }
    assert_eq!(api(tidegate.admin, "DELETE", &target, &[("origin", "http://localhost")]).await.status, 204);
}

#[tokio::test]
async fn unknown_paths_and_methods_get_404_and_405() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).start().await;
    let unknown = api(tidegate.admin, "GET", "/api/nothing", &[]).await;
    assert_eq!((unknown.status, unknown.error_code().as_str()), (404, "not_found"));
    assert!(unknown.text().contains("/api/conversations"), "{}", unknown.text());
    let post = api(tidegate.admin, "POST", "/api/conversations/x", &[]).await;
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD, DELETE")));
    let delete = api(tidegate.admin, "DELETE", "/api/conversations", &[]).await;
    assert_eq!((delete.status, delete.header("allow")), (405, Some("GET, HEAD")));
    let mut client = Client::connect(tidegate.admin).await;
    client.send("HEAD /api/conversations HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    let head = String::from_utf8(client.until_closed().await).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(!head.contains("content-length: 0"), "{head}");
}
