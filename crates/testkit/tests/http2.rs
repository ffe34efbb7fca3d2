//! The mock upstream on HTTP/2, in clear text and with TLS.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tidegate_testkit::{Answer, Ending, Framing, MockUpstream, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

async fn client(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> SendRequest<Full<Bytes>> {
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(io)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn clear_text(upstream: &MockUpstream) -> SendRequest<Full<Bytes>> {
    client(TcpStream::connect(upstream.address()).await.unwrap()).await
}

fn post(upstream: &MockUpstream, body: &'static str) -> Request<Full<Bytes>> {
    let url = format!("{}/v1/chat/completions?x=1", upstream.url());
    Request::post(url).header("x-a", "1").body(Full::from(body)).unwrap()
}

#[tokio::test]
async fn requests_are_recorded_and_answered() {
    let upstream = MockUpstream::start_h2c().await;
    upstream.then(Answer::json(201, "{}").header("x-b", "2")).then(Answer::sse(["1", "2"]).trailer("t", "3"));
    let mut sender = clear_text(&upstream).await;
    let response = sender.send_request(post(&upstream, "body")).await.unwrap();
    assert_eq!((response.status(), &response.headers()["x-b"]), (StatusCode::CREATED, &"2".parse().unwrap()));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "{}");

    let recorded = upstream.next_request().await;
    assert_eq!((recorded.version, recorded.body.as_slice()), (Version::Http2, b"body".as_slice()));
    assert_eq!(recorded.target, "/v1/chat/completions?x=1");
    assert_eq!(recorded.header(":authority"), Some(upstream.address().to_string().as_str()));
    assert_eq!(recorded.header("x-a"), Some("1"));

    let response = sender.send_request(post(&upstream, "")).await.unwrap();
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["t"], "3");
    assert_eq!(body.to_bytes(), "data: 1\n\ndata: 2\n\n");
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn streams_break_before_and_after_the_head() {
    let upstream = MockUpstream::start_h2c().await;
    upstream.then(Answer::new(200).break_off(Ending::Close));
    upstream.then(Answer::sse(["1"]).break_off(Ending::Reset));
    let mut sender = clear_text(&upstream).await;
    assert!(sender.send_request(post(&upstream, "")).await.is_err());
    let response = sender.send_request(post(&upstream, "")).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let upstream = MockUpstream::start_h2c().await;
    upstream.then(Answer::new(200).stall()).then(Answer::sse(["1"]).framing(Framing::Close).stall());
    let mut sender = clear_text(&upstream).await;
    let waiting = tokio::spawn(sender.send_request(post(&upstream, "")));
    upstream.next_request().await;
    waiting.abort();
    upstream.disconnected().await;

    let mut response = sender.send_request(post(&upstream, "")).await.unwrap();
    assert!(response.body_mut().frame().await.unwrap().is_ok());
    drop(response);
    upstream.disconnected().await;
    // Only the streams ended: the connection is still open.
    assert_eq!(sender.send_request(post(&upstream, "{}")).await.unwrap().status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn tls_offers_both_protocols_under_its_own_ca() {
    let upstream = MockUpstream::start_tls().await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(upstream.ca_pem().as_bytes()).unwrap()).unwrap();
    for (offer, version) in [("h2", Version::Http2), ("http/1.1", Version::Http11)] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![offer.into()];
        let tcp = TcpStream::connect(upstream.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
        assert_eq!(tls.get_ref().1.alpn_protocol(), Some(offer.as_bytes()));
        if version == Version::Http2 {
            client(tls).await.send_request(post(&upstream, "{}")).await.unwrap();
        } else {
            tokio::io::AsyncWriteExt::write_all(&mut tls, b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        }
        assert_eq!(upstream.next_request().await.version, version);
    }
}
