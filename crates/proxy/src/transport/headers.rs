//! Removes headers that must not be forwarded.

use http::Version;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, HOST,
    HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

/// The prefix of headers addressed to Tidegate itself. They are not forwarded.
const OWN_PREFIX: &str = "x-tidegate-";

/// Headers that apply to one connection, in requests and responses.
static HOP_BY_HOP: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers that are kept even if `Connection` names them. Otherwise an attacker behind a proxy in front of us could have
/// the credentials or the framing of another client's request removed.
fn is_essential(name: &HeaderName) -> bool {
    [AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST].contains(name)
        || ["api-key", "x-api-key"].contains(&name.as_str())
}

/// The protocol that a client asks to switch to. It travels with the request as an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SwitchTo(HeaderValue);

impl SwitchTo {
    /// HTTP/2 is not switched to: we speak it to the client ourselves.
    pub(crate) fn requested(version: Version, headers: &HeaderMap) -> Option<SwitchTo> {
        let protocol = headers.get(UPGRADE).filter(|_| version == Version::HTTP_11)?;
        let is_http2 = protocol.as_bytes().get(..3).is_some_and(|name| name.eq_ignore_ascii_case(b"h2c"));
        let mut options = connection_options(headers);
        let is_asked = options.any(|option| option.eq_ignore_ascii_case("upgrade")) && !is_http2;
        is_asked.then(|| SwitchTo(protocol.clone()))
    }

    /// Adds what makes a request or a response switch protocols.
    pub(crate) fn put(self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.0);
    }
}

/// Removes request headers that must not reach the upstream.
pub(crate) fn clean_request(headers: &mut HeaderMap) {
    clean_connection(headers);
    headers.remove(TRAILER);
    headers.remove(HeaderName::from_static("proxy-authorization"));
    // hyper answers `Expect: 100-continue` when the body is read. The upstream's authority comes from the configuration,
    // not from the client.
    headers.remove(EXPECT);
    headers.remove(HOST);
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(OWN_PREFIX)).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    join_cookies(headers);
}

/// Removes response headers that must not reach the client.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    clean_connection(headers);
}

/// Removes headers of a response that switches protocols, except those that do it.
pub(crate) fn clean_switching(headers: &mut HeaderMap) {
    let protocol = headers.get(UPGRADE).cloned();
    clean_connection(headers);
    if let Some(protocol) = protocol {
        SwitchTo(protocol).put(headers);
    }
}

fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

fn clean_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = connection_options(headers)
        .filter_map(|name| name.parse().ok())
        .filter(|name| !is_essential(name))
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// HTTP/2 may split a cookie into several fields; HTTP/1 servers expect one.
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(cookie) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
        headers.insert(COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn connection_headers_are_removed() {
        let mut request = headers(&[
            ("connection", "keep-alive, X-Mine"),
            ("connection", "x-also"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic secret"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("expect", "100-continue"),
            ("x-mine", "1"),
            ("x-also", "2"),
            ("x-tidegate-strategy", "masking"),
            ("x-other", "3"),
            ("host", "tidegate.local"),
        ]);
        clean_request(&mut request);
        assert_eq!(request, headers(&[("x-other", "3")]));
    }

    #[test]
    fn connection_cannot_remove_credentials_or_framing() {
        let kept = [("authorization", "Bearer k"), ("api-key", "k"), ("content-type", "application/json")];
        let mut request = headers(&kept);
        let names = "authorization, api-key, content-type";
        request.insert(CONNECTION, HeaderValue::from_static(names));
        clean_request(&mut request);
        assert_eq!(request, headers(&kept));
    }

    #[test]
    fn cookie_fields_are_joined() {
        let mut request = headers(&[("cookie", "a=1"), ("cookie", "b=2")]);
        clean_request(&mut request);
        assert_eq!(request, headers(&[("cookie", "a=1; b=2")]));
    }
}
