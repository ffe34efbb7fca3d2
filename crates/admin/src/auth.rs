//! Authorizes requests to the admin address.

use crate::error::ApiError;
use crate::session::is_signed_in;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Method, Uri};
use std::fmt;
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// The admin token. Only its hash is kept, so that it cannot be printed and comparing it reveals nothing
/// about its length.
#[derive(Clone)]
pub struct Token {
    hash: [u8; 32],
    /// Signs session cookies.
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

    /// The signature of a session cookie that expires at `until`.
    pub(crate) fn signature(&self, until: u64) -> String {
        blake3::keyed_hash(&self.key, &until.to_be_bytes()).to_hex().to_string()
    }

    pub(crate) fn verify(&self, until: u64, signature: &str) -> bool {
        self.signature(until).as_bytes().ct_eq(signature.as_bytes()).into()
    }

    /// The cookie's name depends on the token: cookies are not separated by port, and two processes with
    /// different tokens on one host must not overwrite each other's.
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

/// Authorizes a request by its bearer token or session cookie.
///
/// Without a configured token the address is open to loopback clients only. The danger then is a web page in
/// a local browser, which the `Host` and `Origin` checks keep out.
pub(crate) fn authorize(
    token: Option<&Token>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    now: u64,
) -> Result<(), ApiError> {
    match (token, bearer(headers)) {
        (Some(token), Some(presented)) if !token.matches(presented) => return Err(ApiError::WrongToken),
        (Some(token), None) if !is_signed_in(token, headers, now) => return Err(ApiError::MissingToken),
        (Some(_), _) | (None, _) => {}
    }
    authorize_public(token, method, uri, headers)
}

/// Authorizes a request that needs no token: the dashboard's files and signing in.
pub(crate) fn authorize_public(
    token: Option<&Token>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let host = host(headers);
    // A DNS name rebound to this machine still shows in the header.
    let is_remote_name = !host.as_ref().is_some_and(is_loopback) || !uri.authority().is_none_or(is_loopback);
    if token.is_none() && is_remote_name {
        return Err(ApiError::NonLoopbackHost);
    }
    // Applies with a token too: a page that has the token is still a page of another site.
    if !method.is_safe() && is_cross_site(headers, host.as_ref()) {
        return Err(ApiError::CrossSite);
    }
    Ok(())
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// Returns the request's host, or `None` unless there is exactly one valid `Host` header.
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

/// Whether a browser marks the request as coming from another site. Clients other than browsers send neither
/// header.
fn is_cross_site(headers: &HeaderMap, host: Option<&Authority>) -> bool {
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

    fn check(token: Option<&str>, method: Method, headers: &[(&'static str, &str)]) -> Result<(), ApiError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        authorize(token.map(Token::new).as_ref(), &method, &Uri::from_static("/metrics"), &map, 0)
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        let with = |value: &str| check(Some("s3cret"), Method::GET, &[("authorization", value)]);
        assert_eq!(with("Bearer s3cret"), Ok(()));
        assert_eq!(with("bearer s3cret"), Ok(()));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "Bearer ", "Bearer S3CRET"] {
            assert_eq!(with(wrong), Err(ApiError::WrongToken), "{wrong:?}");
        }
        for none in ["", "s3cret", "Basic s3cret", "Bearer"] {
            assert_eq!(with(none), Err(ApiError::MissingToken), "{none:?}");
        }
        assert_eq!(check(Some("s3cret"), Method::GET, &[("host", "localhost")]), Err(ApiError::MissingToken));
        assert!(!format!("{:?}", Token::new("s3cret")).contains("s3cret"));
    }

    #[test]
    fn without_a_token_only_loopback_hosts_are_accepted() {
        let at = |host: &str| check(None, Method::GET, &[("host", host)]);
        for good in
            ["localhost", "LOCALHOST:9090", "a.localhost:1", "127.0.0.1:9090", "127.9.9.9", "[::1]:9090"]
        {
            assert_eq!(at(good), Ok(()), "{good}");
        }
        let bad = ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "10.0.0.1:9090", "[::2]", ""];
        for bad in bad {
            assert_eq!(at(bad), Err(ApiError::NonLoopbackHost), "{bad}");
        }
        assert_eq!(check(None, Method::GET, &[]), Err(ApiError::NonLoopbackHost));
        let two = [("host", "localhost"), ("host", "evil.test")];
        assert_eq!(check(None, Method::GET, &two), Err(ApiError::NonLoopbackHost));
    }

    #[test]
    fn the_host_in_the_request_line_is_checked_too() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        let uri = Uri::from_static("http://evil.test/metrics");
        assert_eq!(authorize(None, &Method::GET, &uri, &headers, 0), Err(ApiError::NonLoopbackHost));
    }

    #[test]
    fn a_cross_site_page_cannot_change_anything() {
        for (method, token) in [Method::DELETE, Method::PUT, Method::POST, Method::PATCH]
            .into_iter()
            .flat_map(|method| [(method.clone(), None), (method, Some("s3cret"))])
        {
            let change = |name, value| {
                let usual = [("host", "localhost:9090"), ("authorization", "Bearer s3cret"), (name, value)];
                check(token, method.clone(), &usual)
            };
            assert_eq!(change("origin", "http://localhost:9090"), Ok(()));
            assert_eq!(change("sec-fetch-site", "same-origin"), Ok(()));
            assert_eq!(change("accept", "*/*"), Ok(()));
            for origin in ["http://evil.test", "http://localhost:8080", "null", "http://localhost", "é"] {
                assert_eq!(change("origin", origin), Err(ApiError::CrossSite), "{method} {origin}");
            }
            for site in ["cross-site", "same-site", "?"] {
                assert_eq!(change("sec-fetch-site", site), Err(ApiError::CrossSite), "{method} {site}");
            }
        }
        let read = [("host", "localhost:9090"), ("origin", "http://evil.test")];
        assert_eq!(
            check(None, Method::GET, &read),
            Ok(()),
            "the browser does not let the page read the response"
        );
    }

    #[test]
    fn the_token_is_checked_before_the_origin() {
        let page = [("host", "localhost"), ("origin", "http://evil.test"), ("authorization", "Bearer x")];
        assert_eq!(check(Some("s3cret"), Method::PUT, &page), Err(ApiError::WrongToken));
        let authorized = [("authorization", "Bearer s3cret"), ("origin", "http://evil.test")];
        assert_eq!(check(Some("s3cret"), Method::PUT, &authorized), Err(ApiError::CrossSite));
    }
}
