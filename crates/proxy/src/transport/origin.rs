//! Keeps web pages away from a listener that only this machine reaches.
//!
//! A page that someone on this machine visits can send requests to it, and, by having its own name resolve to this machine, read the
//! answers. Both show in the headers that browsers set.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};
use std::net::IpAddr;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    Host,
    Origin,
}

/// Checks a request to a loopback listener. `allowed` are further host names, `*` for all.
pub(crate) fn check(uri: &Uri, headers: &HeaderMap, allowed: &[String]) -> Result<(), Foreign> {
    if allowed.iter().any(|host| host == "*") {
        return Ok(());
    }
    // HTTP/2 has the host in the URI. In HTTP/1 browsers never put it there.
    let authority = || uri.authority().map(|authority| authority.as_str().as_bytes());
    let host = headers.get(HOST).map(|value| value.as_bytes()).or_else(authority);
    if host.is_some_and(|host| !is_local(host, allowed, Addresses::All)) {
        return Err(Foreign::Host);
    }
    match headers.get(ORIGIN).map(|value| value.as_bytes()) {
        Some(origin) => {
            let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
            let is_local =
                authority.is_some_and(|authority| is_local(authority, allowed, Addresses::Loopback));
            is_local.then_some(()).ok_or(Foreign::Origin)
        }
        // Browsers leave the origin out of some requests, such as those for images.
        None if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") => {
            Err(Foreign::Origin)
        }
        None => Ok(()),
    }
}

/// Which addresses are local.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Addresses {
    /// As a host: a website cannot have its name resolve to an address and be asked for by that address.
    All,
    /// As an origin: websites are also served under addresses.
    Loopback,
}

/// Whether no website can have this host: an address, a name that is not in the public DNS, or one that the operator allows.
fn is_local(authority: &[u8], allowed: &[String], addresses: Addresses) -> bool {
    let Ok(authority) = std::str::from_utf8(authority) else { return false };
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_reserved = host.ends_with(".localhost") || host.ends_with(".test");
    match host.parse::<IpAddr>() {
        Ok(address) => {
            addresses == Addresses::All || address.to_canonical().is_loopback() || allowed.contains(&host)
        }
        Err(_) => !host.contains('.') || is_reserved || allowed.contains(&host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_with(headers: &[(&'static str, &str)], allowed: &[&str]) -> Result<(), Foreign> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        let allowed: Vec<String> = allowed.iter().map(|host| (*host).to_owned()).collect();
        check(&Uri::from_static("/v1/models"), &headers, &allowed)
    }

    #[test]
    fn sdks_and_local_pages_are_served() {
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "app.localhost",
            "LOCALHOST.",
            "tidegate",
        ] {
            assert_eq!(check_with(&[("host", host)], &[]), Ok(()), "{host}");
        }
        assert_eq!(check_with(&[], &[]), Ok(()));
        let page = [
            ("host", "localhost:8080"),
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "same-site"),
        ];
        assert_eq!(check_with(&page, &[]), Ok(()));
        let address = [
            ("host", "localhost:8080"),
            ("origin", "http://127.0.0.1:3000"),
            ("sec-fetch-site", "cross-site"),
        ];
        assert_eq!(check_with(&address, &[]), Ok(()));
        for origin in ["http://127.0.0.2", "http://[::1]:3000", "http://[::ffff:127.0.0.1]"] {
            assert_eq!(check_with(&[("host", "localhost"), ("origin", origin)], &[]), Ok(()), "{origin}");
        }
        let lan = [("host", "localhost"), ("origin", "http://192.168.1.20:3000")];
        assert_eq!(check_with(&lan, &["192.168.1.20"]), Ok(()));
    }

    #[test]
    fn websites_are_refused_unless_they_are_allowed() {
        for host in ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.nip.io"] {
            assert_eq!(check_with(&[("host", host)], &[]), Err(Foreign::Host), "{host}");
        }
        assert_eq!(check_with(&[("host", "llm.example.com:8080")], &["llm.example.com"]), Ok(()));
        assert_eq!(check_with(&[("host", "evil.example")], &["*"]), Ok(()));
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "file://",
            "chrome-extension://x",
            "http://203.0.113.7",
            "https://[2001:db8::7]:8443",
            "http://192.168.1.20:3000",
        ] {
            assert_eq!(
                check_with(&[("host", "localhost"), ("origin", origin)], &[]),
                Err(Foreign::Origin),
                "{origin}"
            );
        }
        assert_eq!(
            check_with(&[("host", "localhost"), ("sec-fetch-site", "cross-site")], &[]),
            Err(Foreign::Origin)
        );
    }
}
