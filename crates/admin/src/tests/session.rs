use super::{admin, call, error_code, memory_store, options, send, test_router};
use crate::Token;
use crate::router::Router;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::Value;
use std::sync::Arc;
use tidegate_store::Conversations;

const JSON: (&str, &str) = ("content-type", "application/json");

fn router_with_token() -> Arc<Router> {
    let mut admin = admin(Conversations::new(memory_store(), options()));
    admin.token = Some(Token::new("s3cret"));
    test_router(admin)
}

async fn sign_in(router: &Arc<Router>) -> String {
    let request = Request::post("/api/session").header("host", "ops.test").header(JSON.0, JSON.1);
    let body = Full::new(bytes::Bytes::from("{\"token\":\"s3cret\"}"));
    let response = router.handle(request.body(body).unwrap()).await;
    assert_eq!(response.status().as_u16(), 204);
    let set = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    set.split(';').next().unwrap().to_owned()
}

async fn status(router: &Arc<Router>, headers: &[(&str, &str)]) -> (bool, bool) {
    let (status, text) = send(router, Method::GET, "/api/session", headers, "").await;
    let session: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    (session["token_required"].as_bool().unwrap(), session["admitted"].as_bool().unwrap())
}

#[tokio::test]
async fn only_the_dashboard_files_need_no_token() {
    let router = router_with_token();
    let request = Request::get("/").header("host", "ops.test").body(Full::<bytes::Bytes>::default()).unwrap();
    let page = router.handle(request).await;
    assert_eq!(
        (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(status(&router, &[]).await, (true, false));
    assert_eq!(call(&router, Method::GET, "/api/overview").await.0, 401);
}

#[tokio::test]
async fn a_session_is_authorized_until_signing_out() {
    let router = router_with_token();
    let wrong = send(&router, Method::POST, "/api/session", &[JSON], "{\"token\":\"guess\"}").await;
    assert_eq!((wrong.0, error_code(&wrong.1).as_str()), (401, "unauthorized"));
    let cookie = sign_in(&router).await;
    let with = [("cookie", cookie.as_str())];
    assert_eq!(status(&router, &with).await, (true, true));
    for path in ["/api/overview", "/api/config", "/api/conversations", "/metrics", "/api/openapi.json"] {
        assert_eq!(send(&router, Method::GET, path, &with, "").await.0, 200, "{path}");
    }
    // A valid cookie does not excuse a wrong bearer token.
    let both = [("cookie", cookie.as_str()), ("authorization", "Bearer nonsense")];
    assert_eq!(send(&router, Method::GET, "/api/overview", &both, "").await.0, 401);
    assert_eq!(send(&router, Method::DELETE, "/api/session", &with, "").await.0, 204);
}

#[tokio::test]
async fn a_cookie_does_not_authorize_cross_site_changes() {
    let router = router_with_token();
    let cookie = sign_in(&router).await;
    for cross_site in [("origin", "http://evil.test"), ("sec-fetch-site", "cross-site")] {
        let with = [("cookie", cookie.as_str()), cross_site, JSON];
        for (method, path) in [
            (Method::DELETE, "/api/conversations/00000000000000000000000000000000"),
            (Method::PUT, "/api/conversations/x/memory"),
            (Method::POST, "/api/explain"),
            (Method::DELETE, "/api/session"),
            (Method::POST, "/api/session"),
        ] {
            let (status, text) = send(&router, method, path, &with, "{}").await;
            assert_eq!((status, error_code(&text).as_str()), (403, "foreign_site"), "{path}");
        }
    }
}

#[tokio::test]
async fn without_a_token_only_loopback_hosts_are_served() {
    let router = test_router(admin(Conversations::new(memory_store(), options())));
    assert_eq!(status(&router, &[]).await, (false, true));
    assert_eq!(send(&router, Method::POST, "/api/session", &[JSON], "{\"token\":\"x\"}").await.0, 204);
    for path in ["/", "/api/session", "/api/overview"] {
        let request = Request::get(path).header("host", "rebound.test");
        let response = router.handle(request.body(Full::<bytes::Bytes>::default()).unwrap()).await;
        assert_eq!(response.status().as_u16(), 403, "{path}");
    }
    assert_eq!(call(&router, Method::PATCH, "/api/session").await.0, 405);
}
