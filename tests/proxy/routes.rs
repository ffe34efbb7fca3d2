//! `[[routes]]`: the first route that matches a request chooses its upstream.

use crate::support::client::{CHAT, exchange, get, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{Answer, MockUpstream};

async fn ask(tidegate: &Tidegate, path: &str, headers: &[(&str, &str)], model: &str) -> Reply {
    let body = format!(r#"{{"messages":[{{"role":"user","content":"hi"}}],"model":"{model}"}}"#);
    exchange(tidegate.address, post(path, headers, body)).await
}

async fn named(name: &str) -> MockUpstream {
    let upstream = MockUpstream::start_http1().await;
    upstream.answer(Answer::json(200, name));
    upstream
}

#[tokio::test]
async fn the_first_matching_route_wins() {
    let (main, other) = (named("main").await, named("other").await);
    let config = format!(
        r#"
        [upstreams.other]
        url = "{}"

        [[routes]]
        name = "team"
        match = {{ headers = {{ x-team = "search-*" }}, models = ["gpt-*"] }}
        upstream = "other"

        [[routes]]
        name = "small"
        match = {{ models = ["*-mini", "o3"] }}
        upstream = "other"

        [[routes]]
        name = "azure"
        match = {{ path = "/openai/deployments/*/chat/completions" }}

        [[routes]]
        name = "rest"
        "#,
        other.url()
    );
    let tidegate = Tidegate::start(&config, &main).await;
    let azure = "/openai/deployments/x/chat/completions?api-version=1";
    let cases = [
        (CHAT, Some("search-eu"), "gpt-4o-mini", "team", "other"),
        (CHAT, Some("search-eu"), "claude", "rest", "main"),
        (CHAT, Some("ads"), "gpt-4o", "rest", "main"),
        (CHAT, None, "gpt-4o", "rest", "main"),
        (CHAT, None, "gpt-4o-mini", "small", "other"),
        (CHAT, None, "o3", "small", "other"),
        (CHAT, None, "o3-pro", "rest", "main"),
        (azure, None, "o3", "small", "other"),
        (azure, None, "gpt-4o", "azure", "main"),
    ];
    for (path, team, model, route, upstream) in cases {
        let headers: Vec<(&str, &str)> = team.map(|team| ("X-Team", team)).into_iter().collect();
        let reply = ask(&tidegate, path, &headers, model).await;
        assert_eq!(reply.header("x-tidegate-route"), Some(route), "{path} {team:?} {model}");
        assert_eq!(reply.text(), upstream, "{path} {team:?} {model}");
    }
}

#[tokio::test]
async fn a_route_can_match_other_calls() {
    let (main, other) = (named("main").await, named("other").await);
    let config = format!(
        "[upstreams.other]\nurl = \"{}/base\"\n[[routes]]\nname = \"vectors\"\n\
         match = {{ path = \"/v1/embeddings\" }}\nupstream = \"other\"\n",
        other.url()
    );
    let mut tidegate = Tidegate::start(&config, &main).await;
    for path in ["/v1/embeddings", "/v1/Embeddings/", "/v1/%65mbeddings"] {
        assert_eq!(ask(&tidegate, path, &[], "m").await.text(), "other", "{path}");
        assert_eq!(other.next_request().await.target, format!("/base{path}"));
    }
    assert_eq!(exchange(tidegate.address, get("/v1/models")).await.text(), "main");
    // No route matches chat completions, so they pass through.
    let reply = ask(&tidegate, CHAT, &[], "m").await;
    assert_eq!((reply.text().as_str(), reply.header("x-tidegate-route")), ("main", Some("none")));
    let log = tidegate.access_log(5).await;
    assert_eq!((&log[0]["route"], &log[0]["upstream"]), (&"vectors".into(), &"other".into()));
    assert_eq!((log[3].get("route"), &log[3]["upstream"]), (None, &"default".into()));
}

#[tokio::test]
async fn each_upstream_has_its_own_key() {
    let (main, other) = (named("main").await, named("other").await);
    let config = format!(
        "[upstreams.other]\nurl = \"{}\"\napi_key_env = \"OTHER_KEY\"\n[[routes]]\nname = \"o\"\n\
         match = {{ models = [\"o*\"] }}\nupstream = \"other\"\n",
        other.url()
    );
    let setup = Setup::new(&config).upstream(&main.url()).env("OTHER_KEY", "sk-other");
    let tidegate = setup.start().await;
    let mine = [("authorization", "Bearer sk-mine")];
    ask(&tidegate, CHAT, &mine, "o3").await;
    assert_eq!(other.next_request().await.header("authorization"), Some("Bearer sk-other"));
    ask(&tidegate, CHAT, &mine, "gpt-4o").await;
    assert_eq!(main.next_request().await.header("authorization"), Some("Bearer sk-mine"));
}
