//! Encodes request heads and parses response heads.

use crate::transport::body::SendBody;
use crate::transport::http1::error::Http1Error;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::request;
use http::response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body;
use hyper::ext::ReasonPhrase;
use std::time::Duration;

/// A response head, and what follows from it.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) head: response::Parts,
    pub(super) framing: Framing,
    /// Whether the connection can be reused after the response.
    pub(super) reuse: bool,
    /// How long the upstream says that it keeps an idle connection.
    pub(super) keep_alive: Option<Duration>,
    /// Bytes that arrived after the head.
    pub(super) rest: Bytes,
}

/// How the end of a response body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
    /// The connection no longer speaks HTTP.
    Upgraded,
}

impl Framing {
    /// Some responses have no body, whatever their headers say.
    pub(super) fn for_request(self, method: &Method, status: StatusCode) -> Framing {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Framing::Upgraded;
        }
        let bodiless =
            method == Method::HEAD || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if bodiless { Framing::Length(0) } else { self }
    }
}

/// The maximum length of a response head.
const MAX_HEAD: usize = 256 * 1024;
const MAX_HEADERS: usize = 128;
/// The maximum number of interim responses before the response. Some servers send one every few seconds while they work.
pub(crate) const MAX_INTERIM: usize = 100;

/// Encodes a request head. `Host` is the upstream's, never the client's.
pub(super) fn encode(head: &request::Parts, body: &SendBody) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = head.uri.authority().map_or("", |authority| authority.as_str());
    let start = [head.method.as_str(), " ", path, " HTTP/1.1\r\nhost: ", authority, "\r\n"];
    start.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    let framing = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING];
    for (name, value) in head.headers.iter().filter(|(name, _)| !framing.contains(name)) {
        put(&mut out, name.as_str(), value.as_bytes());
    }
    match body.size_hint().exact() {
        // A method without a body needs no length. POST and the like send one even for an empty body.
        Some(0) if !head.headers.contains_key(CONTENT_LENGTH) && !may_have_body(&head.method) => {}
        Some(length) => put(&mut out, "content-length", length.to_string().as_bytes()),
        None => put(&mut out, "transfer-encoding", b"chunked"),
    }
    out.extend_from_slice(b"\r\n");
    out.into()
}

fn may_have_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

fn put(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Reads a response head as it arrives, skipping interim (1xx) responses.
#[derive(Debug)]
pub(super) struct HeadReader {
    arrived: Vec<u8>,
    /// How many interim responses there have been.
    interim: usize,
    /// Whether the request asks to switch protocols.
    may_upgrade: bool,
}

impl HeadReader {
    pub(super) fn new(may_upgrade: bool) -> HeadReader {
        HeadReader { arrived: Vec::new(), interim: 0, may_upgrade }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.arrived.extend_from_slice(bytes);
    }

    /// Returns `None` if the head is incomplete.
    pub(super) fn read(&mut self) -> Result<Option<ResponseHead>, Http1Error> {
        loop {
            let mut space = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut parsed = httparse::Response::new(&mut space);
            let length = match parsed.parse(&self.arrived) {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if self.arrived.len() <= MAX_HEAD => return Ok(None),
                Ok(httparse::Status::Partial) | Err(_) => return Err(Http1Error::Malformed),
            };
            let code = parsed.code.ok_or(Http1Error::Malformed)?;
            let is_switch = code == 101;
            // If we did not ask to switch protocols, whatever follows is not HTTP/1.
            if is_switch && !self.may_upgrade {
                return Err(Http1Error::Malformed);
            }
            if is_switch || !(100..200).contains(&code) {
                return assemble(&parsed, Bytes::copy_from_slice(&self.arrived[length..])).map(Some);
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(Http1Error::TooManyInterim);
            }
            self.arrived.drain(..length);
        }
    }
}

fn assemble(parsed: &httparse::Response<'_, '_>, rest: Bytes) -> Result<ResponseHead, Http1Error> {
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Http1Error::Malformed)?;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Http1Error::Malformed)?;
        let value = HeaderValue::from_bytes(header.value).map_err(|_| Http1Error::Malformed)?;
        headers.append(name, value);
    }
    let is_http_11 = parsed.version == Some(1);
    let framing = framing(&mut headers)?;
    let reuse = framing != Framing::UntilClose && stays_open(&headers, is_http_11);
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = status;
    head.headers = headers;
    head.version = if is_http_11 { Version::HTTP_11 } else { Version::HTTP_10 };
    let reason = parsed.reason.unwrap_or_default();
    if Some(reason) != status.canonical_reason()
        && let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes().to_vec())
    {
        head.extensions.insert(reason);
    }
    let keep_alive = keep_alive(&head.headers);
    Ok(ResponseHead { head, framing, reuse, keep_alive, rest })
}

fn framing(headers: &mut HeaderMap) -> Result<Framing, Http1Error> {
    if let Some(coding) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
        let last = coding.as_bytes().rsplit(|&byte| byte == b',').next().unwrap_or_default();
        let is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        // `Transfer-Encoding` overrides the length, so the client must not see it.
        headers.remove(CONTENT_LENGTH);
        return Ok(if is_chunked { Framing::Chunked } else { Framing::UntilClose });
    }
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let digits = !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit);
        let stated: u64 = value
            .to_str()
            .ok()
            .filter(|_| digits)
            .and_then(|text| text.parse().ok())
            .ok_or(Http1Error::Malformed)?;
        if length.is_some_and(|length| length != stated) {
            return Err(Http1Error::Malformed);
        }
        length = Some(stated);
    }
    Ok(length.map_or(Framing::UntilClose, Framing::Length))
}

fn stays_open(headers: &HeaderMap, is_http_11: bool) -> bool {
    let has_option = |name: &str| {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case(name))
    };
    !has_option("close") && (is_http_11 || has_option("keep-alive"))
}

/// Reads `Keep-Alive: timeout=5, max=100`.
fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("keep-alive")?.to_str().ok()?;
    let timeout = value.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
    timeout.trim_matches('"').parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_head(text: &str) -> Result<Option<ResponseHead>, Http1Error> {
        let mut reader = HeadReader::new(false);
        reader.add(text.as_bytes());
        reader.read()
    }

    fn read(text: &str) -> Result<Option<(u16, Framing, bool, String)>, Http1Error> {
        let head = read_head(text)?;
        Ok(head.map(|head| {
            (
                head.head.status.as_u16(),
                head.framing,
                head.reuse,
                String::from_utf8(head.rest.to_vec()).unwrap(),
            )
        }))
    }

    #[test]
    fn the_head_determines_the_end_of_the_response() {
        let cases = [
            ("content-length: 5", Framing::Length(5), true),
            ("content-length: 5\r\ncontent-length: 5", Framing::Length(5), true),
            ("transfer-encoding: Chunked", Framing::Chunked, true),
            ("transfer-encoding: gzip, chunked", Framing::Chunked, true),
            ("transfer-encoding: chunked\r\ncontent-length: 5", Framing::Chunked, true),
            ("transfer-encoding: gzip", Framing::UntilClose, false),
            ("content-length: 5\r\nconnection: x, Close", Framing::Length(5), false),
            ("x: y", Framing::UntilClose, false),
        ];
        for (headers, framing, reuse) in cases {
            let text = format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\nrest");
            assert_eq!(read(&text).unwrap(), Some((200, framing, reuse, "rest".to_owned())), "{headers}");
            for cut in 0..text.len() - 4 {
                assert!(read(&text[..cut]).unwrap().is_none(), "{headers} cut at {cut}");
            }
        }
        assert!(!read("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n").unwrap().unwrap().2);
        assert!(
            read("HTTP/1.0 200 OK\r\ncontent-length: 1\r\nconnection: keep-alive\r\n\r\n")
                .unwrap()
                .unwrap()
                .2
        );
    }

    #[test]
    fn interim_responses_are_skipped() {
        let text =
            "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 404 Not Here\r\ncontent-length: 0\r\n\r\n";
        let head = read_head(text).unwrap().unwrap();
        assert_eq!(head.head.status, 404);
        assert_eq!(head.head.extensions.get::<ReasonPhrase>().unwrap().as_bytes(), b"Not Here");
        assert!(head.head.headers.get("link").is_none());
    }

    #[test]
    fn interim_responses_have_a_bound() {
        let text = |count| {
            "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count) + "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
        };
        assert_eq!(read_head(&text(MAX_INTERIM)).unwrap().unwrap().head.status, 200);
        assert!(matches!(read_head(&text(MAX_INTERIM + 1)), Err(Http1Error::TooManyInterim)));
    }

    #[test]
    fn malformed_heads_are_an_error() {
        for text in [
            "GARBAGE\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn some_responses_have_no_body() {
        let length = Framing::Length(5);
        assert_eq!(length.for_request(&Method::HEAD, StatusCode::OK), Framing::Length(0));
        assert_eq!(length.for_request(&Method::GET, StatusCode::NOT_MODIFIED), Framing::Length(0));
        assert_eq!(length.for_request(&Method::GET, StatusCode::OK), length);
    }
}
