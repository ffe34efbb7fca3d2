use super::{admin, ask, code, desk, memory, options, send};
use crate::Token;
use crate::desk::Desk;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::Value;
use std::sync::Arc;
use tidegate_store::Conversations;

const JSON: (&str, &str) = ("content-type", "application/json");

fn closed() -> Arc<Desk> {
    let mut admin = admin(Conversations::new(memory(), options()));
    admin.token = Some(Token::new("s3cret"));
    desk(admin)
}

async fn cookie(desk: &Arc<Desk>) -> String {
    let request = Request::post("/api/session").header("host", "ops.test").header(JSON.0, JSON.1);
    let body = Full::new(bytes::Bytes::from("{\"token\":\"s3cret\"}"));
    let answer = desk.answer(request.body(body).unwrap()).await;
    assert_eq!(answer.status().as_u16(), 204);
    let set = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    set.split(';').next().unwrap().to_owned()
}

async fn state(desk: &Arc<Desk>, headers: &[(&str, &str)]) -> (bool, bool) {
    let (status, text) = send(desk, Method::GET, "/api/session", headers, "").await;
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    (state["token_required"].as_bool().unwrap(), state["admitted"].as_bool().unwrap())
}

#[tokio::test]
async fn the_page_is_there_without_a_token_and_nothing_else_is() {
    let desk = closed();
    let request = Request::get("/").header("host", "ops.test").body(Full::<bytes::Bytes>::default()).unwrap();
    let page = desk.answer(request).await;
    assert_eq!(
        (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(state(&desk, &[]).await, (true, false));
    assert_eq!(ask(&desk, Method::GET, "/api/overview").await.0, 401);
}

#[tokio::test]
async fn who_signs_in_is_let_in_until_signing_out() {
    let desk = closed();
    let wrong = send(&desk, Method::POST, "/api/session", &[JSON], "{\"token\":\"guess\"}").await;
    assert_eq!((wrong.0, code(&wrong.1).as_str()), (401, "unauthorized"));
    let cookie = cookie(&desk).await;
    let with = [("cookie", cookie.as_str())];
    assert_eq!(state(&desk, &with).await, (true, true));
    for path in ["/api/overview", "/api/config", "/api/conversations", "/metrics", "/api/openapi.json"] {
        assert_eq!(send(&desk, Method::GET, path, &with, "").await.0, 200, "{path}");
    }
    // A bearer that is wrong is not saved by a cookie.
    let both = [("cookie", cookie.as_str()), ("authorization", "Bearer nonsense")];
    assert_eq!(send(&desk, Method::GET, "/api/overview", &both, "").await.0, 401);
    assert_eq!(send(&desk, Method::DELETE, "/api/session", &with, "").await.0, 204);
}

#[tokio::test]
async fn a_cookie_is_of_no_use_to_another_site() {
    let desk = closed();
    let cookie = cookie(&desk).await;
    for elsewhere in [("origin", "http://evil.test"), ("sec-fetch-site", "cross-site")] {
        let with = [("cookie", cookie.as_str()), elsewhere, JSON];
        for (method, path) in [
            (Method::DELETE, "/api/conversations/00000000000000000000000000000000"),
            (Method::PUT, "/api/conversations/x/memory"),
            (Method::POST, "/api/explain"),
            (Method::DELETE, "/api/session"),
            (Method::POST, "/api/session"),
        ] {
            let (status, text) = send(&desk, method, path, &with, "{}").await;
            assert_eq!((status, code(&text).as_str()), (403, "foreign_site"), "{path}");
        }
    }
}

#[tokio::test]
async fn without_a_token_the_page_is_for_this_machine_alone() {
    let desk = desk(admin(Conversations::new(memory(), options())));
    assert_eq!(state(&desk, &[]).await, (false, true));
    assert_eq!(send(&desk, Method::POST, "/api/session", &[JSON], "{\"token\":\"x\"}").await.0, 204);
    for path in ["/", "/api/session", "/api/overview"] {
        let request = Request::get(path).header("host", "rebound.test");
        let answer = desk.answer(request.body(Full::<bytes::Bytes>::default()).unwrap()).await;
        assert_eq!(answer.status().as_u16(), 403, "{path}");
    }
    assert_eq!(ask(&desk, Method::PATCH, "/api/session").await.0, 405);
}
