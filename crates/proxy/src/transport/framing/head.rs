//! Validates a request head and determines the length of its body.

use memchr::memchr;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes up to and including the empty line.
    pub(super) length: usize,
    pub(super) body: BodyLength,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    None,
    Known(u64),
    Chunked,
    /// The rest of the connection is HTTP/2.
    Http2,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    Malformed(&'static str),
    TooLarge,
}

/// hyper's own limit. Beyond it, hyper would refuse the request with a response of its own.
const MAX_HEADERS: usize = 100;

/// The first line of the HTTP/2 connection preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Parses the head at the start of `bytes`. Returns `None` if it is incomplete.
pub(super) fn read(bytes: &[u8], may_be_http2: bool, limit: usize) -> Result<Option<Head>, HeadError> {
    if may_be_http2 && PREFACE.starts_with(&bytes[..bytes.len().min(PREFACE.len())]) {
        let complete = bytes.len() >= PREFACE.len();
        return Ok(complete.then_some(Head { length: PREFACE.len(), body: BodyLength::Http2 }));
    }
    let mut facts = Facts::default();
    let mut at = 0;
    loop {
        if at > limit {
            return Err(HeadError::TooLarge);
        }
        let Some(line_length) = memchr(b'\n', &bytes[at..]) else {
            return if bytes.len() > limit { Err(HeadError::TooLarge) } else { Ok(None) };
        };
        let line = &bytes[at..at + line_length];
        at += line_length + 1;
        let Some(line) = line.strip_suffix(b"\r") else {
            return Err(HeadError::Malformed("a line of the head does not end in CR LF"));
        };
        if line.is_empty() && !facts.has_request_line {
            // Some clients send an empty line after a body. It is harmless.
            continue;
        }
        if line.is_empty() {
            return if at > limit {
                Err(HeadError::TooLarge)
            } else {
                Ok(Some(Head { length: at, body: facts.body()? }))
            };
        }
        facts.add_line(line)?;
    }
}

/// The framing facts collected from the lines of a head.
#[derive(Default)]
struct Facts {
    has_request_line: bool,
    is_http_10: bool,
    headers: usize,
    hosts: u32,
    content_length: Option<u64>,
    chunked: bool,
}

impl Facts {
    fn add_line(&mut self, line: &[u8]) -> Result<(), HeadError> {
        if line.iter().any(|&byte| byte == b'\r' || byte == 0) {
            return Err(HeadError::Malformed("the head contains a bare CR or a NUL"));
        }
        if !self.has_request_line {
            self.has_request_line = true;
            return self.add_request_line(line);
        }
        if line[0] == b' ' || line[0] == b'\t' {
            return Err(HeadError::Malformed("a header is continued on the next line"));
        }
        self.headers += 1;
        if self.headers > MAX_HEADERS {
            return Err(HeadError::TooLarge);
        }
        let colon = memchr(b':', line).ok_or(HeadError::Malformed("a header line has no colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) {
            return Err(HeadError::Malformed("a header name contains an invalid character"));
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.hosts += 1,
            14 if name.eq_ignore_ascii_case(b"content-length") => self.add_content_length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.add_transfer_encoding(value)?,
            _ => {}
        }
        Ok(())
    }

    fn add_request_line(&mut self, line: &[u8]) -> Result<(), HeadError> {
        let mut words = line.split(|&byte| byte == b' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let is_valid = words.next().is_none()
            && method.is_some_and(|method| !method.is_empty() && method.iter().all(|&byte| is_token(byte)))
            && target.is_some_and(|target| http::Uri::try_from(target).is_ok());
        match version {
            Some(b"HTTP/1.1") if is_valid => Ok(()),
            Some(b"HTTP/1.0") if is_valid => {
                self.is_http_10 = true;
                Ok(())
            }
            _ => Err(HeadError::Malformed("the request line must be `METHOD TARGET HTTP/1.1`")),
        }
    }

    fn add_content_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.content_length.is_some() {
            return Err(HeadError::Malformed("there is more than one Content-Length header"));
        }
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().filter(|_| digits).and_then(|text| text.parse().ok());
        self.content_length = Some(length.ok_or(HeadError::Malformed("Content-Length is not a number"))?);
        Ok(())
    }

    fn add_transfer_encoding(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(HeadError::Malformed("Transfer-Encoding must be exactly `chunked`"));
        }
        self.chunked = true;
        Ok(())
    }

    fn body(&self) -> Result<BodyLength, HeadError> {
        if self.chunked && self.content_length.is_some() {
            return Err(HeadError::Malformed("Content-Length and Transfer-Encoding cannot be combined"));
        }
        if self.chunked && self.is_http_10 {
            return Err(HeadError::Malformed("HTTP/1.0 does not allow Transfer-Encoding"));
        }
        if self.hosts > 1 || (self.hosts == 0 && !self.is_http_10) {
            return Err(HeadError::Malformed("there must be exactly one Host header"));
        }
        Ok(match self.content_length {
            _ if self.chunked => BodyLength::Chunked,
            None | Some(0) => BodyLength::None,
            Some(length) => BodyLength::Known(length),
        })
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
