//! Canonical paths, so that an alternative spelling cannot bypass the route table.

use std::borrow::Cow;

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// A `.` or `..` segment, plain or percent-encoded. It could escape the upstream's base path.
    DotSegment,
    /// A NUL or a backslash, plain or percent-encoded. Servers interpret them differently.
    ForbiddenCharacter,
}

/// Returns the form of `path` that routes are matched against: percent-decoded once, repeated `/` merged, parameters after `;` removed, lower-cased,
/// without a trailing `/`. Many upstreams treat these spellings as the same path, so a client must not be able to choose
/// its policy by the spelling. The client's own spelling is forwarded.
pub(crate) fn canonical(path: &str) -> Result<Cow<'_, str>, BadPath> {
    if is_canonical(path) {
        return Ok(Cow::Borrowed(path));
    }
    let mut plain = Vec::with_capacity(path.len());
    for byte in decode(path) {
        if byte == 0 || byte == b'\\' {
            return Err(BadPath::ForbiddenCharacter);
        }
        if byte != b'/' || plain.last() != Some(&b'/') {
            plain.push(byte.to_ascii_lowercase());
        }
    }
    // Some servers ignore what follows a `;` in a segment.
    let mut plain = plain
        .split(|&byte| byte == b'/')
        .map(|segment| segment.split(|&byte| byte == b';').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(&b'/');
    if plain.split(|&byte| byte == b'/').any(|segment| segment == b"." || segment == b"..") {
        return Err(BadPath::DotSegment);
    }
    if plain.len() > 1 && plain.last() == Some(&b'/') {
        plain.pop();
    }
    Ok(Cow::Owned(String::from_utf8_lossy(&plain).into_owned()))
}

/// Whether `path` is canonical already, which is true for the paths that SDKs send.
fn is_canonical(path: &str) -> bool {
    let bytes = path.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/_-:".contains(byte);
    bytes.iter().all(plain) && !path.contains("//") && (bytes.len() == 1 || bytes.last() != Some(&b'/'))
}

fn decode(path: &str) -> impl Iterator<Item = u8> {
    let bytes = path.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let byte = *bytes.get(at)?;
        let encoded = (byte == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let decoded = encoded
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| !digits.starts_with('+'))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        at += if decoded.is_some() { 3 } else { 1 };
        Some(decoded.unwrap_or(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_path_have_one_canonical_form() {
        for spelling in [
            "/v1/chat/completions",
            "/v1/chat/completions/",
            "//v1///chat/completions",
            "/v1/%63hat/completions",
            "/v1%2Fchat%2fcompletions",
            "/V1/Chat/Completions",
            "/v1/chat/completions;x=1",
            "/v1;a/chat/completions%3Bb/",
        ] {
            assert_eq!(canonical(spelling).as_deref(), Ok("/v1/chat/completions"), "{spelling}");
        }
        assert_eq!(canonical("/").as_deref(), Ok("/"));
        assert_eq!(canonical("/v1/models/gpt-4.1").as_deref(), Ok("/v1/models/gpt-4.1"));
        assert_eq!(canonical("/%zz/%+1/%").as_deref(), Ok("/%zz/%+1/%"));
    }

    #[test]
    fn a_path_is_percent_decoded_once() {
        assert_eq!(canonical("/v1/%2563hat").as_deref(), Ok("/v1/%63hat"));
    }

    #[test]
    fn paths_that_could_escape_the_base_path_are_refused() {
        for path in ["/v1/../admin", "/..", "/./x", "/v1/%2e%2e/admin", "/v1/.%2E/x", "/a/..%2fb"] {
            assert_eq!(canonical(path), Err(BadPath::DotSegment), "{path}");
        }
        for path in ["/a%00b", "/a%5cb"] {
            assert_eq!(canonical(path), Err(BadPath::ForbiddenCharacter), "{path}");
        }
        assert_eq!(canonical("/v1/files/a..b").as_deref(), Ok("/v1/files/a..b"));
    }
}
