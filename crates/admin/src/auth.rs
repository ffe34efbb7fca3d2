//! Who may ask.

use crate::problem::Problem;
use crate::session::is_signed_in;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Method, Uri};
use std::fmt;
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// The token that every request needs. Only its hash is kept: it cannot be printed, and a comparison says nothing about
/// its length.
#[derive(Clone)]
pub struct Token {
    hash: [u8; 32],
    /// What cookies are signed with.
    key: [u8; 32],
}

impl Token {
    #[must_use]
    pub fn new(token: &str) -> Token {
        let key = blake3::derive_key("tidegate admin session 1", token.as_bytes());
        Token { hash: hash(token.as_bytes()), key }
    }

    pub(crate) fn matches(&self, presented: &[u8]) -> bool {
        self.hash.ct_eq(&hash(presented)).into()
    }

    /// What a cookie that counts until then has to show.
    pub(crate) fn signature(&self, until: u64) -> String {
        blake3::keyed_hash(&self.key, &until.to_be_bytes()).to_hex().to_string()
    }

    pub(crate) fn has_signed(&self, until: u64, signature: &str) -> bool {
        self.signature(until).as_bytes().ct_eq(signature.as_bytes()).into()
    }

    /// Cookies do not tell ports apart: two processes with different tokens on one machine have different ones.
    pub(crate) fn cookie_name(&self) -> String {
        let name = blake3::keyed_hash(&self.key, b"cookie").to_hex();
        format!("tidegate_{}", name.split_at(8).0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

fn hash(token: &[u8]) -> [u8; 32] {
    *blake3::hash(token).as_bytes()
}

/// Lets a request pass that carries the token, or the cookie that was given for it. Without one to carry, the address is open to this machine alone; then the
/// danger is a web page in this machine's browser, which is kept out by what browsers cannot leave out.
pub(crate) fn admit(
    token: Option<&Token>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    now: u64,
) -> Result<(), Problem> {
    match (token, bearer(headers)) {
        (Some(token), Some(presented)) if !token.matches(presented) => return Err(Problem::WrongToken),
        (Some(token), None) if !is_signed_in(token, headers, now) => return Err(Problem::NoToken),
        (Some(_), _) | (None, _) => {}
    }
    admit_stranger(token, method, uri, headers)
}

/// Lets a request pass for what everybody may ask who can reach the address: the page that asks for the token, and signing in.
pub(crate) fn admit_stranger(
    token: Option<&Token>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let host = host(headers);
    // A name that a page's owner points at this machine is still that name in the header.
    let is_foreign = !host.as_ref().is_some_and(is_loopback) || !uri.authority().is_none_or(is_loopback);
    if token.is_none() && is_foreign {
        return Err(Problem::ForeignHost);
    }
    // One rule for all that changes something, with a token or without: a page that was told the token is still a page.
    if !method.is_safe() && is_from_elsewhere(headers, host.as_ref()) {
        return Err(Problem::ForeignSite);
    }
    Ok(())
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// The one host that the request names.
fn host(headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next()?.to_str().ok()?.parse().ok()?;
    hosts.next().is_none().then_some(host)
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host().to_ascii_lowercase();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
    let is_name = host == "localhost" || host.ends_with(".localhost");
    is_name || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a browser says that a page of another site asks. What is no browser says nothing.
fn is_from_elsewhere(headers: &HeaderMap, host: Option<&Authority>) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let same_site = matches!(site, None | Some(b"same-origin" | b"none"));
    let same_origin = headers.get(ORIGIN).is_none_or(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        let origin = origin.as_ref().and_then(Uri::authority);
        origin.is_some() && origin == host
    });
    !(same_site && same_origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(
        token: Option<&str>,
        method: Method,
        headers: &[(&'static str, &str)],
    ) -> Result<(), Problem> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        admit(token.map(Token::new).as_ref(), &method, &Uri::from_static("/metrics"), &map, 0)
    }

    #[test]
    fn the_token_must_be_the_one() {
        let with = |value: &str| admitted(Some("s3cret"), Method::GET, &[("authorization", value)]);
        assert_eq!(with("Bearer s3cret"), Ok(()));
        assert_eq!(with("bearer s3cret"), Ok(()));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "Bearer ", "Bearer S3CRET"] {
            assert_eq!(with(wrong), Err(Problem::WrongToken), "{wrong:?}");
        }
        for none in ["", "s3cret", "Basic s3cret", "Bearer"] {
            assert_eq!(with(none), Err(Problem::NoToken), "{none:?}");
        }
        assert_eq!(admitted(Some("s3cret"), Method::GET, &[("host", "localhost")]), Err(Problem::NoToken));
        assert!(!format!("{:?}", Token::new("s3cret")).contains("s3cret"));
    }

    #[test]
    fn without_one_only_loopback_names_are_answered() {
        let at = |host: &str| admitted(None, Method::GET, &[("host", host)]);
        for good in
            ["localhost", "LOCALHOST:9090", "a.localhost:1", "127.0.0.1:9090", "127.9.9.9", "[::1]:9090"]
        {
            assert_eq!(at(good), Ok(()), "{good}");
        }
        let bad = ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "10.0.0.1:9090", "[::2]", ""];
        for bad in bad {
            assert_eq!(at(bad), Err(Problem::ForeignHost), "{bad}");
        }
        assert_eq!(admitted(None, Method::GET, &[]), Err(Problem::ForeignHost));
        let two = [("host", "localhost"), ("host", "evil.test")];
        assert_eq!(admitted(None, Method::GET, &two), Err(Problem::ForeignHost));
    }

    #[test]
    fn the_name_in_the_request_line_counts_too() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        let uri = Uri::from_static("http://evil.test/metrics");
        assert_eq!(admit(None, &Method::GET, &uri, &headers, 0), Err(Problem::ForeignHost));
    }

    #[test]
    fn a_page_of_another_site_changes_nothing() {
        for (method, token) in [Method::DELETE, Method::PUT, Method::POST, Method::PATCH]
            .into_iter()
            .flat_map(|method| [(method.clone(), None), (method, Some("s3cret"))])
        {
            let change = |name, value| {
                let usual = [("host", "localhost:9090"), ("authorization", "Bearer s3cret"), (name, value)];
                admitted(token, method.clone(), &usual)
            };
            assert_eq!(change("origin", "http://localhost:9090"), Ok(()));
            assert_eq!(change("sec-fetch-site", "same-origin"), Ok(()));
            assert_eq!(change("accept", "*/*"), Ok(()));
            for origin in ["http://evil.test", "http://localhost:8080", "null", "http://localhost", "é"] {
                assert_eq!(change("origin", origin), Err(Problem::ForeignSite), "{method} {origin}");
            }
            for site in ["cross-site", "same-site", "?"] {
                assert_eq!(change("sec-fetch-site", site), Err(Problem::ForeignSite), "{method} {site}");
            }
        }
        let read = [("host", "localhost:9090"), ("origin", "http://evil.test")];
        assert_eq!(admitted(None, Method::GET, &read), Ok(()), "nothing lets the page see the answer");
    }

    #[test]
    fn who_has_no_token_does_not_learn_where_pages_may_come_from() {
        let page = [("host", "localhost"), ("origin", "http://evil.test"), ("authorization", "Bearer x")];
        assert_eq!(admitted(Some("s3cret"), Method::PUT, &page), Err(Problem::WrongToken));
        let nowhere = [("authorization", "Bearer s3cret"), ("origin", "http://evil.test")];
        assert_eq!(admitted(Some("s3cret"), Method::PUT, &nowhere), Err(Problem::ForeignSite));
    }
}
