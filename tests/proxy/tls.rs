//! TLS and HTTP/2 to the upstream.

use crate::support::client::{chat, exchange, get};
use crate::support::command::{command, run};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{Listen, MockUpstream, Recording, Version};

async fn listening(listen: Listen) -> MockUpstream {
    MockUpstream::bind(([127, 0, 0, 1], 0).into(), listen, Recording::On).await
}

async fn trusting(upstream: &MockUpstream, more: &str) -> Tidegate {
    let config = format!("[upstreams.default]\nca = \"ca.pem\"\n{more}");
    Setup::new(&config).file("ca.pem", upstream.ca_pem()).upstream(&upstream.url()).start().await
}

fn assert_unreachable(reply: &Reply) {
    assert_eq!((reply.status, reply.error_code().as_str()), (502, "upstream_unreachable"));
}

#[tokio::test]
async fn the_protocol_is_negotiated_with_an_upstream_with_its_own_ca() {
    for (listen, more, version) in [
        (Listen::Tls, "", Version::Http2),
        (Listen::TlsHttp1, "", Version::Http11),
        (Listen::Tls, "protocol = \"http1\"\n", Version::Http11),
        (Listen::Tls, "protocol = \"http2\"\n", Version::Http2),
    ] {
        let upstream = listening(listen).await;
        let tidegate = trusting(&upstream, more).await;
        for request in [chat(), get("/v1/models?x=1")] {
            let reply = exchange(tidegate.address, request).await;
            assert_eq!(reply.status, 200, "{listen:?} {more}: {}", reply.text());
            let arrived = upstream.next_request().await;
            assert_eq!(arrived.version, version, "{listen:?} {more}");
            let host = if version == Version::Http2 { ":authority" } else { "host" };
            let authority = format!("localhost:{}", upstream.address().port());
            assert_eq!(arrived.header(host), Some(authority.as_str()));
        }
    }
}

/// HTTP/2 servers such as nginx end a stream with an empty frame after the last byte.
#[tokio::test]
async fn an_answer_of_known_length_is_complete_before_its_stream_ends() {
    let upstream = listening(Listen::Tls).await;
    let tidegate = trusting(&upstream, "[server]\nworkers = 1\n").await;
    let times = 200;
    for _ in 0..times {
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.header("content-length").is_some());
    }
    assert_eq!(upstream.connections(), 1, "streams were reset until the connection broke");
    let log = tidegate.stop().await;
    let answered = log.lines().filter(|line| line.contains("\"outcome\":\"answered\"")).count();
    assert_eq!(answered, times, "{log}");
}

#[tokio::test]
async fn an_untrusted_certificate_is_rejected() {
    let (upstream, other) = (listening(Listen::Tls).await, listening(Listen::Tls).await);
    let with_system_roots = Tidegate::start("", &upstream).await;
    assert_unreachable(&exchange(with_system_roots.address, chat()).await);
    let config = "[upstreams.default]\nca = \"ca.pem\"\n";
    let setup = Setup::new(config).file("ca.pem", other.ca_pem()).upstream(&upstream.url());
    let with_another_ca = setup.start().await;
    assert_unreachable(&exchange(with_another_ca.address, chat()).await);
    assert_eq!(upstream.requests().len(), 0);
}

#[tokio::test]
async fn a_certificate_for_another_name_is_rejected() {
    let upstream = MockUpstream::bind(([127, 0, 0, 2], 0).into(), Listen::Tls, Recording::On).await;
    let config = "[upstreams.default]\nca = \"ca.pem\"\n";
    let url = format!("https://{}", upstream.address());
    let tidegate = Setup::new(config).file("ca.pem", upstream.ca_pem()).upstream(&url).start().await;
    assert_unreachable(&exchange(tidegate.address, chat()).await);
    assert_eq!(upstream.requests().len(), 0);
}

#[tokio::test]
async fn an_upstream_that_does_not_speak_tls_is_unreachable() {
    let upstream = MockUpstream::start_http1().await;
    let url = upstream.url().replace("http://", "https://");
    let tidegate = Setup::new("").upstream(&url).start().await;
    assert_unreachable(&exchange(tidegate.address, chat()).await);
}

#[tokio::test]
async fn http2_works_without_tls_by_prior_knowledge() {
    let upstream = MockUpstream::start_h2c().await;
    let tidegate = Tidegate::start("[upstreams.default]\nprotocol = \"http2\"\n", &upstream).await;
    for request in [chat(), get("/v1/models?x=1")] {
        assert_eq!(exchange(tidegate.address, request).await.status, 200);
        let arrived = upstream.next_request().await;
        assert_eq!((arrived.version, arrived.header("host")), (Version::Http2, None));
        assert_eq!(arrived.header(":authority"), Some(upstream.address().to_string().as_str()));
    }
}

#[tokio::test]
async fn an_unreadable_ca_file_is_refused_at_startup() {
    let upstream = listening(Listen::Tls).await;
    for text in [None, Some(""), Some("-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n")]
    {
        let directory = tempfile::TempDir::new().unwrap();
        let config = format!("[upstreams.default]\nurl = \"{}\"\nca = \"ca.pem\"\n", upstream.url());
        std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
        if let Some(text) = text {
            std::fs::write(directory.path().join("ca.pem"), text).unwrap();
        }
        let mut serve = command(directory.path());
        let output = run(serve.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])).await;
        assert_eq!(output.code, Some(1), "{}", output.err);
        assert!(output.err.contains("ca.pem"), "{}", output.err);
    }
}
