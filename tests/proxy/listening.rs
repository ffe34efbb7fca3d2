//! HTTP/1.1 and HTTP/2 on one port, with and without TLS.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get, request};
use crate::support::http2::{Http2Client, whole_text};
use crate::support::tidegate::{Setup, Tidegate};
use crate::support::within;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use std::sync::Arc;
use tidegate_testkit::{Answer, MockUpstream};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[tokio::test]
async fn http1_and_http2_share_a_port() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    assert_eq!(exchange(tidegate.address, chat()).await.status, 200);
    assert_eq!(upstream.next_request().await.body, QUESTION.as_bytes());
    let client = Http2Client::connect(tidegate.address).await;
    let response = client.send("POST", CHAT, QUESTION).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["x-tidegate-route"].as_bytes()),
        (200, b"default".as_slice())
    );
    let arrived = upstream.next_request().await;
    assert_eq!(arrived.body, QUESTION.as_bytes());
    assert_eq!(arrived.authority(), Some(upstream.authority().as_str()));
}

#[tokio::test]
async fn many_requests_share_an_http2_connection() {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| Answer::json(200, &request.target));
    let tidegate = Tidegate::start("", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let paths: Vec<String> = (0..50).map(|number| format!("/v1/models/{number}")).collect();
    let mut asked = tokio::task::JoinSet::new();
    for path in paths.clone() {
        let client = client.clone();
        asked.spawn(async move {
            let text = whole_text(client.send("GET", &path, "").await.unwrap()).await;
            assert_eq!(text, path);
        });
    }
    within("all are answered", asked.join_all()).await;
    assert_eq!(upstream.requests().len(), paths.len());
}

#[tokio::test]
async fn http2_refusals_have_the_same_shape() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let bad_id = [("x-conversation-id", "a b")];
    let response = client.send_with("POST", CHAT, &bad_id, QUESTION).await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(whole_text(response).await.contains(r#""code":"invalid_conversation_id""#));
    let response = client.send("GET", "/v1/../x", "").await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn an_upgrade_request_is_answered_without_upgrading() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let headers = [
        ("connection", "upgrade, http2-settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA"),
    ];
    let reply = exchange(tidegate.address, request("GET", "/v1/models", &headers, b"")).await;
    assert_eq!(reply.status, 200);
    let arrived = upstream.next_request().await;
    assert_eq!((arrived.header("upgrade"), arrived.header("http2-settings")), (None, None));
}

const TLS: &str = "[server.tls]\ncert = \"server.pem\"\nkey = \"server.key\"\n";

/// Starts Tidegate with its own certificate. Also returns a client configuration that trusts it.
pub(crate) async fn with_tls(upstream: &MockUpstream, more: &str) -> (Tidegate, ClientConfig) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let setup = Setup::new(&format!("{more}{TLS}")).file("server.pem", &cert.pem());
    let setup = setup.file("server.key", &signing_key.serialize_pem());
    let tidegate = setup.before(upstream).start().await;
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    (tidegate, builder.with_root_certificates(roots).with_no_client_auth())
}

pub(crate) async fn tls_connect(
    tidegate: &Tidegate,
    mut config: ClientConfig,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(tidegate.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    within("the TLS handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap()
}

#[tokio::test]
async fn tls_serves_http1_and_http2() {
    let upstream = MockUpstream::start().await;
    let (tidegate, config) = with_tls(&upstream, "").await;
    let stream = tls_connect(&tidegate, config.clone(), b"http/1.1").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    let mut client = Client::over(stream);
    client.send(chat()).await;
    assert_eq!(client.reply().await.status, 200);
    let stream = tls_connect(&tidegate, config, b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let client = Http2Client::over(stream).await;
    assert_eq!(client.send("POST", CHAT, QUESTION).await.unwrap().status(), 200);
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn clear_text_on_a_tls_port_gets_no_response() {
    let upstream = MockUpstream::start().await;
    let (tidegate, config) = with_tls(&upstream, "").await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(chat()).await;
    let received = client.until_closed().await;
    assert!(!received.starts_with(b"HTTP/"), "{received:?}");
    assert_eq!(upstream.connections(), 0);
    // TLS clients are still served.
    let mut client = Client::over(tls_connect(&tidegate, config, b"http/1.1").await);
    client.send(chat()).await;
    assert_eq!(client.reply().await.status, 200);
}

#[tokio::test]
async fn a_slow_tls_handshake_is_closed() {
    let upstream = MockUpstream::start().await;
    let (tidegate, _) = with_tls(&upstream, "[server]\nheader_timeout = \"200ms\"\n").await;
    for start in [b"".as_slice(), b"\x16\x03\x01"] {
        let mut client = Client::connect(tidegate.address).await;
        client.send(start).await;
        client.until_closed().await;
    }
}

#[tokio::test]
async fn the_admin_address_is_not_the_proxy() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let reply = exchange(tidegate.admin, get("/healthz")).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "ok\n"));
    let reply = exchange(tidegate.admin, get("/readyz")).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "ready\n"));
    // An unknown host name could come from a web page that uses DNS rebinding.
    assert_eq!(exchange(tidegate.admin, chat()).await.status, 403);
    assert_eq!(upstream.connections(), 0);
    // On the public address an admin path is forwarded like any other path.
    exchange(tidegate.address, get("/healthz")).await;
    assert_eq!(upstream.next_request().await.target, "/healthz");
}
