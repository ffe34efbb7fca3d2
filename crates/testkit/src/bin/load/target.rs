//! The address under load, and what is sent to it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{SystemTime, UNIX_EPOCH};

use tidegate_testkit::flags::Flags;

use crate::spelling::Spelling;

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// The request that is sent repeatedly, unless conversations grow.
    pub(crate) request: Vec<u8>,
    /// Up to the value of `content-length`.
    head: String,
    /// The turns of a growing conversation.
    pub(crate) turns: Option<usize>,
    /// Only what is new is sent, of so many bytes: the proxy has the rest.
    pub(crate) held: Option<usize>,
    pub(crate) spelling: Spelling,
    /// Makes the conversations of this run different from those of other runs.
    pub(crate) seed: u64,
    /// The position of the unique number of an open-loop request.
    number_at: Option<usize>,
}

/// The placeholder for the number, with as many digits.
const NUMBER: &[u8] = b"@@@@@@@@@@@@";

const LENGTH: &str = "content-length: ";

impl Target {
    pub(crate) fn from_flags(flags: &mut Flags) -> io::Result<Self> {
        let url: String = flags.value("url").ok_or_else(|| invalid("`--url` is required".to_owned()))?;
        let stream = flags.switch("stream");
        let body = match (flags.value::<String>("body"), flags.value::<usize>("body-bytes")) {
            (Some(file), _) => std::fs::read(file)?,
            (None, bytes) => chat_request(bytes.unwrap_or(1000), stream).into_bytes(),
        };
        let header: Option<String> = flags.value("header");
        let mut target = Self::new(&url, &body, header.as_deref())?;
        target.turns = flags.value("growing");
        target.held = flags.value("held");
        target.spelling = Spelling::of_path(&url);
        target.seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        Ok(target)
    }

    /// Puts a request with this body at the end of a buffer.
    pub(crate) fn write(&self, request: &mut Vec<u8>, body: &[u8]) {
        self.write_with(request, "", body);
    }

    /// The same with more headers, each with its line end.
    pub(crate) fn write_with(&self, request: &mut Vec<u8>, headers: &str, body: &[u8]) {
        let (start, length) = self.head.split_at(self.head.len() - LENGTH.len());
        request.extend_from_slice(start.as_bytes());
        request.extend_from_slice(headers.as_bytes());
        request.extend_from_slice(length.as_bytes());
        request.extend_from_slice(format!("{}\r\n\r\n", body.len()).as_bytes());
        request.extend_from_slice(body);
    }

    fn new(url: &str, body: &[u8], header: Option<&str>) -> io::Result<Self> {
        let rest =
            url.strip_prefix("http://").ok_or_else(|| invalid(format!("`{url}` is not an http:// URL")))?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let address = authority.to_socket_addrs()?.next().filter(|address| address.ip().is_loopback());
        let address = address.ok_or_else(|| {
            invalid(format!("`{authority}` is not on loopback, the only address that this tool loads"))
        })?;
        let mut head =
            format!("POST {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n");
        head += "authorization: Bearer sk-bench\r\naccept: */*\r\n";
        if let Some(header) = header {
            head += &format!("{header}\r\n");
        }
        head += LENGTH;
        let mut target = Target {
            address,
            request: Vec::new(),
            head,
            turns: None,
            held: None,
            spelling: Spelling::Chat,
            seed: 0,
            number_at: None,
        };
        let mut request = Vec::new();
        target.write(&mut request, body);
        target.number_at = request.windows(NUMBER.len()).position(|window| window == NUMBER);
        target.request = request;
        Ok(target)
    }

    #[cfg(test)]
    pub(crate) fn growing(url: &str, turns: usize, seed: u64) -> io::Result<Self> {
        let spelling = Spelling::of_path(url);
        Ok(Target { turns: Some(turns), seed, spelling, ..Self::new(url, b"", None)? })
    }

    /// Makes a request unique, if its body has the placeholder.
    pub(crate) fn number(&self, request: &mut [u8], number: u64) {
        if let Some(at) = self.number_at {
            let digits = format!("{:0width$}", number % 10u64.pow(NUMBER.len() as u32), width = NUMBER.len());
            request[at..at + NUMBER.len()].copy_from_slice(digits.as_bytes());
        }
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// A chat request of this many bytes: a short system message, then messages of 400 bytes.
fn chat_request(bytes: usize, stream: bool) -> String {
    let stream = if stream { r#","stream":true"# } else { "" };
    let start =
        r#"{"model":"gpt-4o-mini","messages":[{"role":"system","content":"You are a careful assistant."}"#;
    let end = format!("]{stream}}}");
    let mut text = start.to_owned();
    let mut user = true;
    loop {
        let role = if user { "user" } else { "assistant" };
        let shell = format!(r#",{{"role":"{role}","content":""}}"#);
        let left = bytes.saturating_sub(text.len() + end.len() + shell.len());
        // The last message is the user's, and has the rest.
        let last = left < 900 && user;
        let words = "lorem ipsum dolor sit amet ".repeat(40);
        let content = &words[..if last { left.min(words.len()) } else { 400.min(left) }];
        text += &format!(r#",{{"role":"{role}","content":"{content}"}}"#);
        if last {
            return text + &end;
        }
        user = !user;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_request_is_json_of_the_given_size() {
        for bytes in [1000, 1001, 2345, 50_000] {
            let text = chat_request(bytes, true);
            assert_eq!(text.len(), bytes);
            let body: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(body["stream"], true);
            assert_eq!(body["messages"].as_array().unwrap().last().unwrap()["role"], "user");
        }
    }

    #[test]
    fn a_placeholder_becomes_a_number() {
        let target = Target::new("http://127.0.0.1:80/v1", b"{\"n\":\"@@@@@@@@@@@@\"}", None).unwrap();
        let mut request = target.request.clone();
        target.number(&mut request, 42);
        assert!(request.ends_with(b"{\"n\":\"000000000042\"}"));
    }

    #[test]
    fn only_loopback_is_loaded() {
        assert!(Target::new("http://127.0.0.1:80/v1", b"", None).is_ok());
        let refused = Target::new("http://192.0.2.1:80/v1", b"", None).unwrap_err();
        assert!(refused.to_string().contains("not on loopback"));
    }
}
