//! Compressed request bodies are read, forwarded unchanged, and limited in size.

use crate::support::client::{CHAT, QUESTION, exchange, post};
use crate::support::tidegate::Tidegate;
use std::io::Write;
use tidegate_testkit::{Answer, MockUpstream};

const LIMIT: &str = "[server]\nmax_body = \"64KiB\"\n";

fn compressed(coding: &str, text: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        "br" => {
            let mut bytes = Vec::new();
            brotli::CompressorWriter::new(&mut bytes, 4096, 5, 20).write_all(text).unwrap();
            bytes
        }
        "zstd" => zstd::encode_all(text, 3).unwrap(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn compressed_bodies_are_forwarded_unchanged() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start(LIMIT, &upstream).await;
    for coding in ["gzip", "br", "zstd"] {
        let body = compressed(coding, QUESTION.as_bytes());
        let reply = exchange(tidegate.address, post(CHAT, &[("content-encoding", coding)], &body)).await;
        assert_eq!(reply.status, 200, "{coding}: {}", reply.text());
        let arrived = upstream.next_request().await;
        assert_eq!(arrived.header("content-encoding"), Some(coding));
        assert_eq!(arrived.body, body, "{coding}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_routed_by_its_model() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let config =
        "[[routes]]\nname = \"four\"\nmatch = { models = [\"gpt-4*\"] }\n[[routes]]\nname = \"rest\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    for coding in ["gzip", "br", "zstd"] {
        let body = compressed(coding, QUESTION.as_bytes());
        let reply = exchange(tidegate.address, post(CHAT, &[("content-encoding", coding)], &body)).await;
        assert_eq!(reply.header("x-tidegate-route"), Some("four"), "{coding}");
    }
}

#[tokio::test]
async fn decompression_bombs_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(LIMIT, &upstream).await;
    let text = vec![b' '; 10 * 1024 * 1024];
    for coding in ["gzip", "br", "zstd"] {
        let bomb = compressed(coding, &text);
        assert!(bomb.len() < 32 * 1024, "{coding}: {}", bomb.len());
        let reply = exchange(tidegate.address, post(CHAT, &[("content-encoding", coding)], &bomb)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (413, "request_too_large"), "{coding}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn corrupt_bodies_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(LIMIT, &upstream).await;
    for coding in ["gzip", "br", "zstd"] {
        let whole = compressed(coding, QUESTION.as_bytes());
        for corrupt in [QUESTION.as_bytes(), &whole[..whole.len() - 6], b"\x1f\x8b\x08"] {
            let reply =
                exchange(tidegate.address, post(CHAT, &[("content-encoding", coding)], corrupt)).await;
            let code = reply.error_code();
            assert_eq!(
                (reply.status, code.as_str()),
                (400, "invalid_content_encoding"),
                "{coding} {corrupt:?}"
            );
        }
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn unknown_codings_and_other_paths_pass_unchanged() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start(LIMIT, &upstream).await;
    let cases = [(CHAT, "x-secret"), (CHAT, "gzip, br"), ("/v1/embeddings", "gzip"), ("/v1/files", "zstd")];
    for (path, coding) in cases {
        let reply =
            exchange(tidegate.address, post(path, &[("content-encoding", coding)], b"\xff not it")).await;
        assert_eq!(reply.status, 200, "{path} {coding}: {}", reply.text());
        let arrived = upstream.next_request().await;
        assert_eq!(
            (arrived.header("content-encoding"), arrived.body.as_slice()),
            (Some(coding), b"\xff not it".as_slice())
        );
    }
}
