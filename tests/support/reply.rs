//! An HTTP/1.1 response as a client sees it on the wire.

use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) reason: String,
    /// In order, with names in lower case. Values are decoded as Latin-1, so that every byte is visible.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) end: End,
}

/// How the body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As the framing announced.
    Complete,
    /// The connection ended before the body did.
    BrokenOff,
}

/// How the end of the body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Reply {
    /// Parses a head, up to and including its empty line.
    pub(crate) fn parse(head: &[u8]) -> Reply {
        let text: String = head.iter().map(|&byte| char::from(byte)).collect();
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let status_line = lines.next().unwrap();
        let mut words = status_line.splitn(3, ' ');
        assert_eq!(words.next(), Some("HTTP/1.1"), "{status_line}");
        let status = words.next().and_then(|status| status.parse().ok()).expect(status_line);
        let reason = words.next().unwrap_or_default().to_owned();
        let headers = lines.map(header).collect();
        Reply { status, reason, headers, body: Vec::new(), trailers: Vec::new(), end: End::BrokenOff }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn headers_named(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn framing(&self) -> Framing {
        if (100..200).contains(&self.status) || self.status == 204 || self.status == 304 {
            return Framing::Length(0);
        }
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (Some("chunked"), None) => Framing::Chunked,
            (None, Some(length)) => Framing::Length(length.parse().unwrap()),
            (None, None) => Framing::UntilClose,
            both => panic!("ambiguous framing: {both:?}"),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The code of an error in OpenAI's format. Panics if the body is not in that format.
    pub(crate) fn error_code(&self) -> String {
        let body = self.json();
        assert_eq!(self.header("content-type"), Some("application/json"));
        error_code(&body)
    }
}

/// A number in a header.
pub(crate) fn figure(reply: &Reply, name: &str) -> u64 {
    let value = reply.header(name).unwrap_or_else(|| panic!("no {name} in {:?}", reply.headers));
    value.parse().unwrap()
}

/// One of the numbers in `x-tidegate-edits`.
pub(crate) fn edited(reply: &Reply, what: &str) -> usize {
    let edits = reply.header("x-tidegate-edits").unwrap_or_else(|| panic!("no edits in {:?}", reply.headers));
    let figure = edits.split(',').find_map(|part| part.strip_prefix(what)?.strip_prefix('='));
    figure.unwrap().parse().unwrap()
}

/// The code of an error object. Checks the other fields that clients read.
pub(crate) fn error_code(body: &Value) -> String {
    let error = &body["error"];
    assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{body}");
    assert!(error["type"].is_string() && error.get("param").is_some(), "{body}");
    error["code"].as_str().unwrap().to_owned()
}

pub(crate) fn header(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').expect(line);
    (name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned())
}
