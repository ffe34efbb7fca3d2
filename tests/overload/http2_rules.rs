//! The cases of h2spec against the listener, in plain text and over TLS: what a server does with frames that break the rules.

use crate::proxy::listening::{tls_connect, with_tls};
use crate::support::client::CHAT;
use crate::support::raw_http2::{data, frame, headers};
use crate::support::tidegate::Tidegate;
use std::fmt::Write as _;
use std::time::Duration;
use tidegate_testkit::MockUpstream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// What the server must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// End the connection, with or without a word.
    EndConnection,
    /// End the stream, or answer with an error, or end the connection.
    EndStream,
    /// Go on, and answer a PING.
    GoOn,
}

/// What the server did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    EndedConnection,
    EndedStream,
    WentOn,
    /// It did not even answer the PING.
    Nothing,
}

impl Rule {
    fn allows(self, did: Did) -> bool {
        match self {
            Rule::EndConnection => did == Did::EndedConnection,
            Rule::EndStream => [Did::EndedConnection, Did::EndedStream].contains(&did),
            Rule::GoOn => did == Did::WentOn,
        }
    }
}

/// Cases that do not do what the specification says, each with the reason why that is accepted.
const ACCEPTED: &[(&str, &str)] = &[];

fn pairs<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let own = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", CHAT)];
    own.into_iter().chain(more.iter().copied()).collect()
}

fn without<'a>(name: &str) -> Vec<(&'a str, &'a str)> {
    pairs(&[]).into_iter().filter(|(own, _)| *own != name).collect()
}

fn request(stream: u32) -> Vec<u8> {
    headers(stream, true, &pairs(&[]))
}

/// The head of a request whose body follows.
fn opened(stream: u32) -> Vec<u8> {
    headers(stream, false, &pairs(&[]))
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// The sections are those of RFC 9113.
fn cases() -> Vec<(&'static str, Rule, Vec<u8>)> {
    use Rule::{EndConnection, EndStream, GoOn};
    let block = request(1)[9..].to_vec();
    let mut cases = vec![
        ("4.1 a frame of an unknown type is ignored", GoOn, frame(0xbb, 0, 0, b"whatever")),
        ("4.1 undefined flags are ignored", GoOn, frame(PING, 0xfe & !ACK, 0, &[7; 8])),
        ("4.1 the reserved bit is ignored", GoOn, frame(PING, 0, 1 << 31, &[7; 8])),
        (
            "4.2 DATA larger than a frame may be",
            EndStream,
            [opened(1), frame(DATA, 0, 1, &[0; 16_385])].concat(),
        ),
        (
            "4.2 HEADERS larger than a frame may be",
            EndConnection,
            frame(HEADERS, END_HEADERS, 1, &[0; 16_385]),
        ),
        ("4.3 a header block that cannot be decoded", EndConnection, frame(HEADERS, 5, 1, &[0xff; 8])),
        (
            "4.3 a header block interrupted by another frame",
            EndConnection,
            [frame(HEADERS, 1, 1, &block), frame(PRIORITY, 0, 1, &[0; 5])].concat(),
        ),
        (
            "4.3 a header block interrupted by another stream",
            EndConnection,
            [frame(HEADERS, 1, 1, &block), request(3)].concat(),
        ),
        ("5.1 DATA on an idle stream", EndConnection, data(1, true, "x")),
        ("5.1 RST_STREAM on an idle stream", EndConnection, frame(RST_STREAM, 0, 1, &[0; 4])),
        ("5.1 WINDOW_UPDATE on an idle stream", EndConnection, window(1, 10)),
        ("5.1 CONTINUATION on an idle stream", EndConnection, frame(CONTINUATION, END_HEADERS, 1, &block)),
        ("5.1 DATA after the end of a stream", EndStream, [request(1), data(1, true, "x")].concat()),
        ("5.1 HEADERS after the end of a stream", EndStream, [request(1), request(1)].concat()),
        (
            "5.1 DATA after RST_STREAM",
            EndStream,
            [opened(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]), data(1, true, "x")].concat(),
        ),
        ("5.1.1 a stream with an even number", EndConnection, request(2)),
        ("5.1.1 a stream with a lower number", EndConnection, [request(5), request(3)].concat()),
        ("5.3 a stream that depends on itself", EndStream, frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 0])),
        ("6.1 DATA on stream 0", EndConnection, frame(DATA, END_STREAM, 0, b"x")),
        (
            "6.1 DATA with more padding than payload",
            EndConnection,
            [opened(1), frame(DATA, PADDED, 1, &[9, b'x'])].concat(),
        ),
        ("6.2 HEADERS on stream 0", EndConnection, frame(HEADERS, 5, 0, &block)),
        (
            "6.2 HEADERS with more padding than payload",
            EndConnection,
            frame(HEADERS, 5 | PADDED, 1, &[200, 0x82]),
        ),
        ("6.3 PRIORITY on stream 0", EndConnection, frame(PRIORITY, 0, 0, &[0; 5])),
        ("6.3 PRIORITY of the wrong length", EndStream, frame(PRIORITY, 0, 1, &[0; 4])),
        ("6.4 RST_STREAM on stream 0", EndConnection, frame(RST_STREAM, 0, 0, &[0; 4])),
        (
            "6.4 RST_STREAM of the wrong length",
            EndConnection,
            [opened(1), frame(RST_STREAM, 0, 1, &[0; 3])].concat(),
        ),
        ("6.5 SETTINGS on a stream", EndConnection, frame(SETTINGS, 0, 1, &setting(3, 100))),
        ("6.5 an acknowledgement of SETTINGS with a payload", EndConnection, frame(SETTINGS, ACK, 0, &[0])),
        ("6.5 SETTINGS of the wrong length", EndConnection, frame(SETTINGS, 0, 0, &[0; 5])),
        ("6.5.2 ENABLE_PUSH that is neither 0 nor 1", EndConnection, frame(SETTINGS, 0, 0, &setting(2, 2))),
        (
            "6.5.2 INITIAL_WINDOW_SIZE that is too large",
            EndConnection,
            frame(SETTINGS, 0, 0, &setting(4, 1 << 31)),
        ),
        ("6.5.2 MAX_FRAME_SIZE that is too small", EndConnection, frame(SETTINGS, 0, 0, &setting(5, 16_383))),
        (
            "6.5.2 MAX_FRAME_SIZE that is too large",
            EndConnection,
            frame(SETTINGS, 0, 0, &setting(5, 1 << 24)),
        ),
        ("6.5.2 an unknown setting is ignored", GoOn, frame(SETTINGS, 0, 0, &setting(0xff, 1))),
        (
            "6.6 PUSH_PROMISE of a client",
            EndConnection,
            [opened(1), frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82])].concat(),
        ),
        ("6.7 PING on a stream", EndConnection, frame(PING, 0, 1, &[0; 8])),
        ("6.7 PING of the wrong length", EndConnection, frame(PING, 0, 0, &[0; 6])),
        ("6.7 an acknowledgement that nobody asked for is ignored", GoOn, frame(PING, ACK, 0, &[1; 8])),
        ("6.8 GOAWAY on a stream", EndConnection, frame(GOAWAY, 0, 1, &[0; 8])),
        ("6.9 WINDOW_UPDATE of nothing for the connection", EndConnection, window(0, 0)),
        ("6.9 WINDOW_UPDATE of nothing for a stream", EndStream, [opened(1), window(1, 0)].concat()),
        ("6.9 WINDOW_UPDATE of the wrong length", EndConnection, frame(WINDOW_UPDATE, 0, 0, &[0; 3])),
        (
            "6.9.1 a window of the connection beyond its limit",
            EndConnection,
            [window(0, i32::MAX as u32), window(0, i32::MAX as u32)].concat(),
        ),
        (
            "6.9.1 a window of a stream beyond its limit",
            EndStream,
            [opened(1), window(1, i32::MAX as u32), window(1, i32::MAX as u32)].concat(),
        ),
        (
            "6.10 CONTINUATION after the end of a header block",
            EndConnection,
            [opened(1), frame(CONTINUATION, END_HEADERS, 1, &block)].concat(),
        ),
        (
            "6.10 CONTINUATION on stream 0",
            EndConnection,
            [frame(HEADERS, 1, 1, &block), frame(CONTINUATION, END_HEADERS, 0, &block)].concat(),
        ),
        (
            "8.1 a second head without the end of the stream",
            EndStream,
            [opened(1), headers(1, false, &[("x-trailer", "1")])].concat(),
        ),
    ];
    // RFC 7541.
    for (name, block) in [
        ("HPACK 6.1 a field with the index 0", vec![0x80]),
        ("HPACK 2.3.3 an index behind the tables", vec![0xff, 0x80, 0x01]),
        ("HPACK 6.3 a table larger than the limit", [&[0x3f, 0xe1, 0xff, 0x03][..], &block].concat()),
        ("HPACK 4.2 a change of the table behind the first field", [&block[..], &[0x20]].concat()),
        (
            "HPACK 5.1 an integer that does not end",
            [&block[..], &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff]].concat(),
        ),
        ("HPACK 5.2 a text longer than its block", [&block[..], &[0x00, 0x05, b'x']].concat()),
    ] {
        cases.push((name, EndConnection, frame(HEADERS, 5, 1, &block)));
    }
    for (name, pairs) in [
        ("8.2.1 a header name in upper case", pairs(&[("X-Test", "ok")])),
        ("8.2.2 a header of the connection", pairs(&[("connection", "keep-alive")])),
        ("8.2.2 `te` other than `trailers`", pairs(&[("te", "trailers, deflate")])),
        ("8.3 an unknown pseudo-header", pairs(&[(":test", "ok")])),
        ("8.3 a pseudo-header of a response", pairs(&[(":status", "200")])),
        ("8.3 a pseudo-header after others", pairs(&[("x-test", "ok"), (":path", "/")])),
        ("8.3.1 an empty path", [without(":path"), vec![(":path", "")]].concat()),
        ("8.3.1 no method", without(":method")),
        ("8.3.1 no scheme", without(":scheme")),
        ("8.3.1 no path", without(":path")),
        ("8.3.1 two methods", pairs(&[(":method", "GET")])),
        ("8.3.1 two schemes", pairs(&[(":scheme", "http")])),
        ("8.3.1 two paths", pairs(&[(":path", "/")])),
    ] {
        cases.push((name, EndStream, headers(1, true, &pairs)));
    }
    let sized = headers(1, false, &pairs(&[("content-length", "1")]));
    cases.push((
        "8.1.1 more content than `content-length` says",
        EndStream,
        [sized.clone(), data(1, true, "too long")].concat(),
    ));
    cases.push((
        "8.1.1 less content than `content-length` says",
        EndStream,
        [sized, frame(DATA, END_STREAM, 1, &[])].concat(),
    ));
    cases
}

/// Sends a case and then a PING, and watches until the server has done what the rule demands.
async fn watch(mut stream: impl AsyncRead + AsyncWrite + Unpin, case: &[u8], rule: Rule) -> Did {
    const MARK: [u8; 8] = *b"tidegate";
    let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[]), case, &frame(PING, 0, 0, &MARK)].concat();
    // The server may have ended the connection in the middle.
    let _ = stream.write_all(&opening).await;
    let _ = stream.flush().await;
    let mut did = Did::Nothing;
    let watching = async {
        while !rule.allows(did) {
            let mut head = [0; 9];
            if stream.read_exact(&mut head).await.is_err() {
                return Did::EndedConnection;
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            if stream.read_exact(&mut payload).await.is_err() {
                return Did::EndedConnection;
            }
            match head[3] {
                GOAWAY if payload[4..8] != [0; 4] => return Did::EndedConnection,
                RST_STREAM => did = Did::EndedStream,
                // `:status: 400` from the static table, or any other status as a literal.
                HEADERS if payload.first() == Some(&0x8c) => did = Did::EndedStream,
                PING if head[4] & ACK != 0 && payload == MARK && did == Did::Nothing => did = Did::WentOn,
                _ => {}
            }
        }
        did
    };
    match timeout(LONG, watching).await {
        Ok(did) => did,
        Err(_) => did,
    }
}

/// Only a server that breaks a rule takes so long.
const LONG: Duration = Duration::from_secs(20);

async fn assert_rules<S: AsyncRead + AsyncWrite + Unpin>(what: &str, connect: impl AsyncFn() -> S) {
    let mut broken = String::new();
    for (name, rule, case) in cases() {
        let did = watch(connect().await, &case, rule).await;
        let is_accepted = ACCEPTED.iter().any(|(accepted, _)| *accepted == name);
        if rule.allows(did) == is_accepted {
            let _ = writeln!(broken, "{name}: {rule:?} is the rule, and it {did:?}");
        }
    }
    assert!(broken.is_empty(), "{what}:\n{broken}");
}

#[tokio::test]
async fn the_rules_hold_in_plain_text() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    assert_rules("plain text", async || TcpStream::connect(tidegate.address).await.unwrap()).await;
    assert!(!tidegate.stop().await.contains("panicked"));
}

#[tokio::test]
async fn the_rules_hold_over_tls() {
    let upstream = MockUpstream::start().await;
    let (tidegate, config) = with_tls(&upstream, "").await;
    assert_rules("TLS", async || tls_connect(&tidegate, config.clone(), b"h2").await).await;
    assert!(!tidegate.stop().await.contains("panicked"));
}
