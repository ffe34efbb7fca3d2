use super::*;
use tokio::io::AsyncReadExt;

const LIMITS: Limits =
    Limits { max_head: 1024, head_timeout: Duration::from_secs(10), write_timeout: Duration::from_secs(10) };

/// Passes `pieces` through a guard, one read each. Returns the output and the violation, if any.
async fn pass(pieces: &[&str]) -> (String, Option<Violation>) {
    let mut builder = tokio_test::io::Builder::new();
    for piece in pieces {
        builder.read(piece.as_bytes());
    }
    let violation = SharedState::default();
    let mut guard = Guard::new(builder.build(), LIMITS, violation.clone());
    let mut out = Vec::new();
    let mut space = [0u8; 64];
    loop {
        if matches!(guard.phase, Phase::Refused) && guard.checked == 0 {
            break;
        }
        match guard.read(&mut space).await {
            Ok(0) | Err(_) => break,
            Ok(count) => out.extend_from_slice(&space[..count]),
        }
    }
    if violation.violation().is_some() {
        // The mock panics if it is not read to its end, and a refused connection never is.
        std::mem::forget(guard);
    }
    (String::from_utf8(out).unwrap(), violation.violation())
}

fn refused(rule: &'static str) -> (String, Option<Violation>) {
    (String::from_utf8(REFUSED_HEAD.to_vec()).unwrap(), Some(Violation::Malformed(rule)))
}

#[tokio::test]
async fn valid_requests_pass_unchanged_however_they_are_split() {
    let requests = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\
        GET /b HTTP/1.1\r\nHost: x\r\n\r\n\
        POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n\
        5;ext=1\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n\
        \r\nPUT /d HTTP/1.1\r\nhost:x\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(pass(&[requests]).await, (requests.to_owned(), None));
    for cut in 1..requests.len() {
        let (left, right) = requests.split_at(cut);
        assert_eq!(pass(&[left, right]).await, (requests.to_owned(), None), "cut at {cut}");
    }
}

#[tokio::test]
async fn ambiguous_framing_is_refused() {
    let cases = [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Content-Length and Transfer-Encoding cannot be combined",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            "Content-Length and Transfer-Encoding cannot be combined",
        ),
        ("Content-Length: 5\r\nContent-Length: 5", "there is more than one Content-Length header"),
        ("Content-Length: 5\r\nContent-Length: 6", "there is more than one Content-Length header"),
        ("Content-Length: 5, 5", "Content-Length is not a number"),
        ("Content-Length: +5", "Content-Length is not a number"),
        ("Content-Length:", "Content-Length is not a number"),
        ("Content-Length: 99999999999999999999", "Content-Length is not a number"),
        ("Transfer-Encoding: gzip, chunked", "Transfer-Encoding must be exactly `chunked`"),
        ("Transfer-Encoding: identity", "Transfer-Encoding must be exactly `chunked`"),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding must be exactly `chunked`",
        ),
        ("X: a\r\n folded", "a header is continued on the next line"),
        ("Content-Length : 5", "a header name contains an invalid character"),
        ("X\x01: 5", "a header name contains an invalid character"),
        ("no colon here", "a header line has no colon"),
        ("X: a\rb", "the head contains a bare CR or a NUL"),
        ("X: a\0b", "the head contains a bare CR or a NUL"),
        ("X: a\nY: b", "a line of the head does not end in CR LF"),
        ("Host: other", "there must be exactly one Host header"),
    ];
    for (headers, rule) in cases {
        let request = format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\nhello");
        assert_eq!(pass(&[&request]).await, refused(rule), "{headers:?}");
    }
    assert_eq!(pass(&["GET / HTTP/1.1\r\n\r\n"]).await, refused("there must be exactly one Host header"));
    assert_eq!(
        pass(&["GET  / HTTP/1.1\r\nHost: x\r\n\r\n"]).await,
        refused("the request line must be `METHOD TARGET HTTP/1.1`")
    );
    assert_eq!(
        pass(&["POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"]).await,
        refused("HTTP/1.0 does not allow Transfer-Encoding")
    );
}

#[tokio::test]
async fn a_valid_request_before_a_refused_one_still_passes() {
    let valid = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
    let both = format!("{valid}GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n");
    let (out, violation) = pass(&[&both]).await;
    assert_eq!(out, format!("{valid}{}", String::from_utf8_lossy(REFUSED_HEAD)));
    assert_eq!(violation, Some(Violation::Malformed("there must be exactly one Host header")));
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused_before_it_is_complete() {
    let endless = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "a".repeat(1100));
    assert_eq!(pass(&[&endless]).await.1, Some(Violation::HeadTooLarge));
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: aaaaaaaaaaaaaaa\r\n".repeat(60));
    assert_eq!(pass(&[&many]).await.1, Some(Violation::HeadTooLarge));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_arrive_in_time_is_refused() {
    let slow = tokio_test::io::Builder::new()
        .read(b"GET / HTTP/1.1\r\nHo")
        .wait(Duration::from_secs(60))
        .read(b"st: x\r\n\r\n")
        .build();
    let violation = SharedState::default();
    let mut guard = Guard::new(slow, LIMITS, violation.clone());
    let mut space = [0u8; 256];
    let count = guard.read(&mut space).await.unwrap();
    assert_eq!(&space[..count], REFUSED_HEAD);
    assert_eq!(violation.violation(), Some(Violation::HeadTooSlow));
    std::mem::forget(guard);
}

#[tokio::test]
async fn malformed_chunks_end_the_connection() {
    let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "x\r\n",
        "5\nhello",
        "5\r\nhelloX",
        "\r\n",
        "5 \r\nhello\r\n",
        "11111111111111111\r\n",
        "0\r\n folded",
    ] {
        let (out, _) = pass(&[head, body]).await;
        assert_eq!(out, head, "{body:?}");
    }
}

#[tokio::test]
async fn http2_passes_unchecked() {
    let text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nanything: \n goes";
    assert_eq!(pass(&[text]).await, (text.to_owned(), None));
    assert_eq!(pass(&["PRI * HT", "TP/2.0\r\n\r\nSM\r\n\r\n"]).await.1, None);
}

#[tokio::test]
async fn the_opening_identifies_the_protocol_and_consumes_nothing() {
    let cases = [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", Opening::Http1),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Opening::Http2),
        ("PRI * HTTP/1.1\r\nHost: x\r\n\r\n", Opening::Http1),
    ];
    for (sent, expected) in cases {
        let (left, right) = sent.split_at(9);
        let stream = tokio_test::io::Builder::new().read(left.as_bytes()).read(right.as_bytes()).build();
        let mut guard = Guard::new(stream, LIMITS, SharedState::default());
        assert_eq!(guard.opening().await.unwrap(), expected, "{sent}");
        let mut read = String::new();
        guard.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, sent);
    }
    let mut guard = Guard::new(tokio_test::io::Builder::new().build(), LIMITS, SharedState::default());
    assert_eq!(guard.opening().await.unwrap(), Opening::Nothing);
}
