//! Finds the end of a JSON value by looking only at strings and brackets.
//!
//! The grammar is not checked: `{"a":]` has an end here. The slice is read by a real parser, now or when the same bytes were first
//! seen, and a slice that was cut wrongly fails there.

#[cfg(target_arch = "x86_64")]
mod avx2;

use memchr::memchr2;

/// Why the end of a value was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoEnd {
    /// The bytes end before the value does.
    Unfinished,
    /// The value nests deeper than allowed.
    TooDeep,
}

/// Returns the index after the object or array whose opening bracket is at `start`.
pub(crate) fn container_end(bytes: &[u8], start: usize, max_depth: usize) -> Result<usize, NoEnd> {
    #[cfg(target_arch = "x86_64")]
    if let Some(end) = avx2::container_end(bytes, start, max_depth) {
        return end;
    }
    scalar_container_end(bytes, start, max_depth)
}

/// Returns the index after the string whose opening quote is at `start`.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Result<usize, NoEnd> {
    #[cfg(target_arch = "x86_64")]
    if let Some(end) = avx2::string_end(bytes, start) {
        return end;
    }
    scalar_string_end(bytes, start)
}

fn scalar_string_end(bytes: &[u8], start: usize) -> Result<usize, NoEnd> {
    let mut at = start + 1;
    loop {
        let rest = bytes.get(at..).ok_or(NoEnd::Unfinished)?;
        let found = memchr2(b'"', b'\\', rest).ok_or(NoEnd::Unfinished)?;
        if rest[found] == b'"' {
            return Ok(at + found + 1);
        }
        at += found + 2;
    }
}

/// The equivalent of the vector code, for processors without AVX2. Both return the same for any bytes: a backslash escapes the quote
/// after it even outside strings, where only invalid JSON has one.
fn scalar_container_end(bytes: &[u8], start: usize, max_depth: usize) -> Result<usize, NoEnd> {
    let mut depth = 0;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = scalar_string_end(bytes, at)?;
                continue;
            }
            b'\\' => {
                // A backslash escapes a quote or another backslash, but not a bracket.
                if matches!(bytes.get(at + 1), Some(b'"' | b'\\')) {
                    at += 1;
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > max_depth {
                    return Err(NoEnd::TooDeep);
                }
            }
            b'}' | b']' => {
                if depth <= 1 {
                    return Ok(at + 1);
                }
                depth -= 1;
            }
            _ => {}
        }
        at += 1;
    }
    Err(NoEnd::Unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    #[cfg(target_arch = "x86_64")]
    use std::collections::BTreeSet;

    fn check(json: &str, tail: &str) {
        let text = format!("{json}{tail}");
        assert_eq!(container_end(text.as_bytes(), 0, 128), Ok(json.len()), "{text}");
        assert_eq!(scalar_container_end(text.as_bytes(), 0, 128), Ok(json.len()), "{text}");
    }

    #[test]
    fn brackets_in_strings_are_ignored() {
        check("{}", ",{}");
        check(r#"{"a":"}"}"#, "]}");
        check(r#"["\"]","\\",{"x":"\\\"]"}]"#, "]");
        check(&format!(r#"{{"a":"{}"}}"#, r"\\".repeat(100)), "}");
        check(&format!(r#"{{"a":"{}\""}}"#, "]".repeat(63)), "}");
    }

    #[test]
    fn a_string_ends_at_its_first_unescaped_quote() {
        assert_eq!(string_end(br#""a\"b\\"c""#, 0), Ok(8));
        assert_eq!(string_end(br#""a\"#, 0), Err(NoEnd::Unfinished));
        assert_eq!(string_end(br#"""#, 0), Err(NoEnd::Unfinished));
    }

    #[test]
    fn depth_is_limited_and_costs_no_stack() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert_eq!(container_end(deep.as_bytes(), 0, 10_000), Ok(20_000));
        assert_eq!(container_end(deep.as_bytes(), 0, 9_999), Err(NoEnd::TooDeep));
        assert_eq!(container_end(deep.as_bytes(), 0, 128), Err(NoEnd::TooDeep));
    }

    /// Calling a function compiled for a feature that the processor lacks is undefined behaviour.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_enabled_processor_feature_is_detected() {
        let source = include_str!("scan/avx2.rs");
        let arguments = |before: &'static str| {
            let calls = source.split(before).skip(1);
            calls.flat_map(|rest| rest.split('"').next().unwrap().split(',')).collect::<BTreeSet<_>>()
        };
        let enabled = arguments("#[target_feature(enable = \"");
        assert!(enabled.contains("lzcnt"));
        assert_eq!(enabled, arguments("is_x86_feature_detected!(\""));
    }

    /// Bytes with far more quotes, backslashes and brackets than random ones.
    fn dense_bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => prop::sample::select(&b"\"\\{}[]"[..]),
            4 => Just(b'a'),
            1 => any::<u8>(),
        ];
        prop::collection::vec(byte, 0..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn vector_and_scalar_code_agree_on_any_bytes(rest in dense_bytes(), start in 0_usize..70, max_depth in 1_usize..40) {
            let mut bytes = vec![b' '; start];
            bytes.push(b'{');
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(
                container_end(&bytes, start, max_depth),
                scalar_container_end(&bytes, start, max_depth)
            );
            prop_assert_eq!(string_end(&bytes, start), scalar_string_end(&bytes, start));
        }
    }
}
