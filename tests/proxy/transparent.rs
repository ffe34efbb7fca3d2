//! Requests without edits and all responses pass byte for byte.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get, post, request};
use crate::support::reply::End;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream, filler};

/// Bodies that a JSON library would not reproduce.
const ODD_BODIES: &[(&str, &[u8])] = &[
    ("whitespace and key order", b" {\r\n\t\"stream\" : false ,\n\"messages\":[ {\"content\":\"hi\" , \"role\":\"user\"} ]\n , \"model\":\"gpt-4o\"}\n\n"),
    ("numbers", br#"{"model":"gpt-4o","seed":123456789012345678901234567890,"top_p":1.0,"n":1E0,"x":-0,"messages":[{"role":"user","content":"hi"}]}"#),
    ("escapes", br#"{"model":"gpt\u002d4o","messages":[{"role":"user","content":"\u00e9 \/ \ud83d \ud83d\ude00 \u0000"}]}"#),
    ("duplicate unknown keys", br#"{"model":"gpt-4o","x":1,"x":2,"messages":[{"role":"user","content":"hi","y":1,"y":2}]}"#),
    ("invalid UTF-8", b"{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}"),
    ("not JSON", b"model=gpt-4o&messages=hi"),
    ("broken JSON", br#"{"model":"gpt-4o","messages":[{"role":"user""#),
    ("another JSON", b"[1,2,3]"),
    ("messages of another type", br#"{"model":4,"messages":"hi"}"#),
    ("a byte order mark", b"\xef\xbb\xbf{\"model\":\"gpt-4o\",\"messages\":[]}"),
    ("binary", b"\x00\x01\x02\r\n\r\n\x03"),
    ("empty", b""),
];

#[tokio::test]
async fn odd_bodies_reach_the_upstream_unchanged() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    let nested = [b"{\"messages\":".as_slice(), &[b'['; 5000]].concat();
    let bodies = ODD_BODIES.iter().copied().chain([("deep nesting", nested.as_slice())]);
    for (what, body) in bodies {
        let reply = exchange(tidegate.address, post(CHAT, &[], body)).await;
        assert_eq!(reply.status, 200, "{what}: {}", reply.text());
        let arrived = upstream.next_request().await;
        assert_eq!(arrived.body, body, "{what}");
        assert_eq!(arrived.headers_named("content-length"), [body.len().to_string()], "{what}");
        assert_eq!(arrived.header("transfer-encoding"), None, "{what}");
    }
}

#[tokio::test]
async fn a_chunked_chat_completion_arrives_whole() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let (first, second) = QUESTION.split_at(20);
    let body = format!("{:x}\r\n{first}\r\n{:X};ext=1\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let headers = [("content-type", "application/json"), ("transfer-encoding", "chunked")];
    let reply = exchange(tidegate.address, request("POST", CHAT, &headers, body.as_bytes())).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(upstream.next_request().await.body, QUESTION.as_bytes());
}

#[tokio::test]
async fn the_response_is_passed_on_unchanged() {
    let upstream = MockUpstream::start_http1().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let answer = b"HTTP/1.1 418 Short And Stout\r\nSet-Cookie: a=1\r\nX-Accent: caf\xe9 \xff\r\nset-cookie: b=2\r\n\
        Content-Type: Application/JSON;x=y\r\nX-Empty:\r\nX-Request-Id: req_upstream\r\nContent-Length: 10\r\n\r\n\x00\xffnot{js\r\n";
    for request in [chat(), get("/v1/models")] {
        upstream.then(Answer::raw(answer.as_slice()));
        let reply = exchange(tidegate.address, request).await;
        assert_eq!((reply.status, reply.reason.as_str()), (418, "Short And Stout"));
        let mut headers = reply.headers.clone();
        headers.retain(|(name, _)| !name.starts_with("x-tidegate-"));
        headers.sort();
        let expected = [
            ("content-length", "10"),
            ("content-type", "Application/JSON;x=y"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("x-accent", "caf\u{e9} \u{ff}"),
            ("x-empty", ""),
            ("x-request-id", "req_upstream"),
        ];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(reply.headers_named("set-cookie"), ["a=1", "b=2"]);
        assert_eq!(reply.body, b"\x00\xffnot{js\r\n");
    }
}

#[tokio::test]
async fn upstream_errors_are_passed_on_unchanged() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for status in [400, 401, 404, 409, 429, 500, 502, 503, 529] {
        let body = format!(r#"{{ "error" : {{"code":"mine-{status}" }} }}"#);
        upstream
            .then(Answer::json(status, &body).header("retry-after", "7").header("x-should-retry", "false"));
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!((reply.status, reply.text()), (status, body));
        assert_eq!((reply.header("retry-after"), reply.header("x-should-retry")), (Some("7"), Some("false")));
    }
    assert_eq!(upstream.requests().len(), 9, "a request was retried");
}

#[tokio::test]
async fn responses_without_a_body_keep_their_headers() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    upstream.then(Answer::json(200, "0123456789"));
    client.send(request("HEAD", "/v1/models", &[], b"")).await;
    let reply = client.head().await;
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("10")));
    for status in [204, 304] {
        upstream.then(Answer::new(status).header("etag", "\"x\""));
        client.send(get("/v1/models")).await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.header("etag")), (status, Some("\"x\"")));
        assert_eq!((reply.header("content-length"), reply.header("transfer-encoding")), (None, None));
    }
}

#[tokio::test]
async fn other_calls_keep_their_method_and_target() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    let odd = b"\xff{ not json";
    for (method, target) in [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/gpt-4.1?x=%2F&y=a+b&z"),
        ("DELETE", "/v1/models/ft:gpt-4o:acme::7p"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/responses/compact?stream=%20"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/audio/speech"),
        ("GET", "/v1/files/file-1/content"),
        ("POST", "/v1/Threads/T%C3%A9//Runs/"),
        ("PUT", "/v1/anything/~user/!$&'()*,;=:@"),
        ("PATCH", "/v1/chat/completions"),
        ("GET", "/v1/chat/completions?limit=3"),
        ("GET", "/v1/chat/completions/chatcmpl-1/messages"),
        ("POST", "/openai/deployments/my-gpt/embeddings?api-version=2024-10-21"),
        ("OPTIONS", "/v1/models"),
        ("POST", "/"),
        ("GET", "/?only=query"),
    ] {
        let length = odd.len().to_string();
        let (headers, body): (&[_], &[u8]) =
            if method == "GET" { (&[], b"") } else { (&[("content-length", length.as_str())], odd) };
        client.send(request(method, target, headers, body)).await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.end), (200, End::Complete), "{method} {target}: {}", reply.text());
        // Endpoints that take a conversation say that nobody manages them.
        let is_llm = method == "POST" && target.starts_with("/v1/completions");
        assert_eq!(reply.header("x-tidegate-route"), is_llm.then_some("none"), "{method} {target}");
        let arrived = upstream.next_request().await;
        assert_eq!((arrived.method.as_str(), arrived.target.as_str()), (method, target));
        assert_eq!(arrived.body, body, "{method} {target}");
    }
}

#[tokio::test]
async fn large_bodies_pass_unchanged() {
    const SIZE: usize = 5 * 1024 * 1024;
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).fill(SIZE as u64));
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(post("/v1/files", &[("content-type", "application/octet-stream")], filler(SIZE))).await;
    let reply = client.reply().await;
    assert!(reply.body == filler(SIZE), "the response differs from what the upstream sent");
    assert_eq!(reply.header("content-length"), Some(SIZE.to_string().as_str()));
    assert!(
        upstream.next_request().await.body == filler(SIZE),
        "the upload differs from what the client sent"
    );
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| Answer::json(200, &request.target));
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    let pipelined = [get("/v1/a"), post("/v1/b", &[], "{}"), chat(), get("/v1/d")].concat();
    client.send(pipelined).await;
    for expected in ["/v1/a", "/v1/b", CHAT, "/v1/d"] {
        assert_eq!(client.reply().await.text(), expected);
    }
    assert_eq!(upstream.connections(), 1, "the connection to the upstream is not reused");
}
