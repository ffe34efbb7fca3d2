use crate::choice::choices;
use crate::section::Section;
use crate::tree::Node;
use crate::value::{self, InvalidValue};
use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

/// An OpenAI-compatible server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub name: String,
    pub url: UpstreamUrl,
    /// The environment variable that holds the API key; `None` to pass the client's own key through.
    pub api_key_env: Option<String>,
    pub connect_timeout: Duration,
    /// How long to wait for the response to begin.
    pub first_byte_timeout: Duration,
    /// The maximum pause within a response.
    pub idle_timeout: Duration,
    pub protocol: Protocol,
    /// A PEM file of certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
}

/// The parts of an upstream's base URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamUrl {
    pub https: bool,
    /// `host` or `host:port`.
    pub authority: String,
    /// Empty, or begins with a slash and does not end with one.
    pub path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 if TLS negotiates it, otherwise HTTP/1.1.
    Auto,
    Http1,
    Http2,
}

choices!(Protocol { "auto" => Auto, "http1" => Http1, "http2" => Http2 });

impl Upstream {
    pub(crate) fn read(name: &str, section: &mut Section<'_>) -> Upstream {
        let openai = UpstreamUrl { https: true, authority: "api.openai.com".to_owned(), path: String::new() };
        let url = if name == "default" {
            section.with_default("url", openai, UpstreamUrl::parse, |url| format!("\"{url}\""))
        } else {
            // A missing URL is an error, so this fallback is never used.
            let hint = "write the address of the upstream, for example `url = \"https://api.openai.com\"`";
            section.required("url", hint, UpstreamUrl::parse).unwrap_or(openai)
        };
        Upstream {
            name: name.to_owned(),
            url,
            api_key_env: section.optional("api_key_env", value::variable),
            connect_timeout: section.duration("connect_timeout", Duration::from_secs(5)),
            first_byte_timeout: section.duration("first_byte_timeout", Duration::from_secs(120)),
            idle_timeout: section.duration("idle_timeout", Duration::from_secs(60)),
            protocol: section.choice("protocol", Protocol::Auto),
            ca: section.optional("ca", section.path()),
        }
    }
}

impl UpstreamUrl {
    fn parse(node: &Node) -> Result<UpstreamUrl, InvalidValue> {
        let text = value::text(node)?;
        let (https, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => {
                let must = "must begin with `http://` or `https://`";
                return Err(InvalidValue::new(must, "for example, `https://api.openai.com`"));
            }
        };
        if rest.contains(['?', '#']) {
            return Err(InvalidValue::new(
                "must not have a query or a fragment",
                "remove everything after the path",
            ));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            let hint = "put the key in an environment variable, and its name in `api_key_env`";
            return Err(InvalidValue::new("must not contain a user name or password", hint));
        }
        let path = path.trim_end_matches('/');
        if !is_authority(authority) || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            let hint = "write a host, an optional port and an optional path: `http://127.0.0.1:8000/base`";
            return Err(InvalidValue::new("must be a URL with a valid host", hint));
        }
        Ok(UpstreamUrl { https, authority: authority.to_owned(), path: path.to_owned() })
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

fn is_authority(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) if host.parse::<Ipv6Addr>().is_ok() => (host, port),
        Some(_) => return false,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_host = !host.is_empty()
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':'));
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    is_host && is_port
}
