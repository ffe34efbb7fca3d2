//! The dashboard's files, which are in the binary.
//!
//! A debug build reads them from the source tree instead, so that a change shows with the next reload of the page.

use crate::reply::{self, Answer};
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

/// Nothing but our own files and our own API, no markup made of texts, and no other page around ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The file that a path means; none if it means none.
pub(crate) fn named(path: &str) -> Option<&str> {
    match path {
        "/" | "/index.html" => Some("index.html"),
        _ => path.strip_prefix(PREFIX).filter(|name| Assets::iter().any(|known| known == *name)),
    }
}

pub(crate) fn answer(name: &str, headers: &HeaderMap) -> Option<Answer> {
    let file = Assets::get(name)?;
    let tag = format!("\"{}\"", blake3::hash(&file.data).to_hex().split_at(32).0);
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|tags| {
        let tags = tags.to_str().unwrap_or_default();
        tags.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let is_zipped = accepts_gzip(headers);
    let mut answer = if is_known {
        reply::empty(StatusCode::NOT_MODIFIED)
    } else if is_zipped {
        reply::of(StatusCode::OK, kind(name), zipped(&tag, &file.data))
    } else {
        reply::of(StatusCode::OK, kind(name), file.data.into_owned())
    };
    let head = answer.headers_mut();
    if is_zipped && !is_known {
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    head.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // It is asked for every time, and sent only when it is another one: an upgrade shows at once.
    head.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    head.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        head.insert(ETAG, tag);
    }
    Some(answer)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let is_refused = weight.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Each file is compressed once.
fn zipped(tag: &str, data: &[u8]) -> Bytes {
    static DONE: LazyLock<Mutex<HashMap<String, Bytes>>> = LazyLock::new(Mutex::default);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let zipped = done.entry(tag.to_owned()).or_insert_with(|| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing into memory does not fail.
        let _ = encoder.write_all(data);
        encoder.finish().unwrap_or_default().into()
    });
    zipped.clone()
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
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
    fn everything_together_is_small() {
        let size: usize = all().iter().map(|(name, data)| zipped(name, data).len()).sum();
        assert!(size < 300 * 1024, "{size}");
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_no_markup_is_made_of_texts() {
        for (name, data) in all() {
            if name.starts_with("vendor/") {
                continue;
            }
            let text = String::from_utf8(data).unwrap().replace("http://www.w3.org/2000/svg", "");
            for way in [
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
                assert!(!text.contains(way), "{name}: {way}");
            }
        }
    }

    #[test]
    fn what_the_page_names_is_there() {
        let page = String::from_utf8(Assets::get("index.html").unwrap().data.into_owned()).unwrap();
        let mut named = page.split('"').filter(|part| part.starts_with(PREFIX)).peekable();
        assert!(named.peek().is_some());
        for path in named {
            assert!(super::named(path).is_some(), "{path}");
        }
        assert_eq!(super::named("/assets/../Cargo.toml"), None);
        assert_eq!(super::named("/assets/"), None);
    }

    #[test]
    fn a_file_that_is_known_is_not_sent_again() {
        let mut headers = HeaderMap::new();
        let first = answer("index.html", &headers).unwrap();
        assert!(first.headers().contains_key(CONTENT_SECURITY_POLICY));
        assert_eq!(first.headers().get(CONTENT_ENCODING), None);
        headers.insert(ACCEPT_ENCODING, "br, gzip;q=0.8".parse().unwrap());
        assert_eq!(answer("index.html", &headers).unwrap().headers()[CONTENT_ENCODING], "gzip");
        headers.insert(ACCEPT_ENCODING, "gzip;q=0".parse().unwrap());
        assert_eq!(answer("index.html", &headers).unwrap().headers().get(CONTENT_ENCODING), None);
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(answer("index.html", &headers).unwrap().status(), StatusCode::NOT_MODIFIED);
    }
}
