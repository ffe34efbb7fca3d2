//! The dashboard's files, embedded in the binary.
//!
//! A debug build reads them from the source tree instead, so that a change shows on the next reload of the
//! page.

use crate::response::{self, FullResponse};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use rust_embed::RustEmbed;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

#[derive(RustEmbed)]
#[folder = "assets/"]
struct Assets;

const PREFIX: &str = "/assets/";

/// Allows only the dashboard's own files and API, forbids markup built from strings, and forbids framing.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Returns the name of the asset that `path` refers to, or `None` if there is none.
pub(crate) fn find(path: &str) -> Option<&str> {
    match path {
        "/" | "/index.html" => Some("index.html"),
        _ => path.strip_prefix(PREFIX).filter(|name| Assets::iter().any(|known| known == *name)),
    }
}

pub(crate) fn respond(name: &str, headers: &HeaderMap) -> Option<FullResponse> {
    let file = Assets::get(name)?;
    let tag = format!("\"{}\"", blake3::hash(&file.data).to_hex().split_at(32).0);
    let is_fresh = headers.get_all(IF_NONE_MATCH).iter().any(|tags| {
        let tags = tags.to_str().unwrap_or_default();
        tags.split(',').any(|candidate| candidate.trim().trim_start_matches("W/") == tag)
    });
    let is_gzipped = accepts_gzip(headers);
    let mut response = if is_fresh {
        response::empty(StatusCode::NOT_MODIFIED)
    } else if is_gzipped {
        response::with_body(StatusCode::OK, content_type(name), gzipped(&tag, &file.data))
    } else {
        response::with_body(StatusCode::OK, content_type(name), file.data.into_owned())
    };
    let response_headers = response.headers_mut();
    if is_gzipped && !is_fresh {
        response_headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response_headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // Revalidated on every load, so that an upgrade shows at once.
    response_headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response_headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response_headers.insert(ETAG, tag);
    }
    Some(response)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let is_refused = weight.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Compresses each file once and caches the result by its tag.
fn gzipped(tag: &str, data: &[u8]) -> Bytes {
    static CACHE: LazyLock<Mutex<HashMap<String, Bytes>>> = LazyLock::new(Mutex::default);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let compressed = cache.entry(tag.to_owned()).or_insert_with(|| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing into memory does not fail.
        let _ = encoder.write_all(data);
        encoder.finish().unwrap_or_default().into()
    });
    compressed.clone()
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<(String, Vec<u8>)> {
        Assets::iter().map(|name| (name.to_string(), Assets::get(&name).unwrap().data.into_owned())).collect()
    }

    #[test]
    fn all_assets_together_stay_under_the_size_limit() {
        let size: usize = all().iter().map(|(name, data)| gzipped(name, data).len()).sum();
        assert!(size < 300 * 1024, "{size}");
    }

    #[test]
    fn assets_load_nothing_external_and_never_build_markup_from_strings() {
        for (name, data) in all() {
            if name.starts_with("vendor/") {
                continue;
            }
            let text = String::from_utf8(data).unwrap().replace("http://www.w3.org/2000/svg", "");
            for forbidden in [
                "https://",
                "//cdn",
                "@import",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "setAttribute('style'",
                "style=",
                "<script>",
                "onclick=",
                "javascript:",
            ] {
                assert!(!text.contains(forbidden), "{name}: {forbidden}");
            }
        }
    }

    #[test]
    fn every_asset_the_page_refers_to_exists() {
        let page = String::from_utf8(Assets::get("index.html").unwrap().data.into_owned()).unwrap();
        let mut paths = page.split('"').filter(|part| part.starts_with(PREFIX)).peekable();
        assert!(paths.peek().is_some());
        for path in paths {
            assert!(find(path).is_some(), "{path}");
        }
        assert_eq!(find("/assets/../Cargo.toml"), None);
        assert_eq!(find("/assets/"), None);
    }

    #[test]
    fn a_cached_asset_is_revalidated_without_resending_it() {
        let mut headers = HeaderMap::new();
        let first = respond("index.html", &headers).unwrap();
        assert!(first.headers().contains_key(CONTENT_SECURITY_POLICY));
        assert_eq!(first.headers().get(CONTENT_ENCODING), None);
        headers.insert(ACCEPT_ENCODING, "br, gzip;q=0.8".parse().unwrap());
        assert_eq!(respond("index.html", &headers).unwrap().headers()[CONTENT_ENCODING], "gzip");
        headers.insert(ACCEPT_ENCODING, "gzip;q=0".parse().unwrap());
        assert_eq!(respond("index.html", &headers).unwrap().headers().get(CONTENT_ENCODING), None);
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(respond("index.html", &headers).unwrap().status(), StatusCode::NOT_MODIFIED);
    }
}
