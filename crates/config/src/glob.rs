use std::fmt;

/// A pattern in which `*` matches any number of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Glob {
        Glob(pattern.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        matches(self.0.as_bytes(), text.as_bytes(), |a, b| a == b)
    }

    /// Like [`Glob::matches`], but ignores the case of ASCII letters.
    #[must_use]
    pub fn matches_ignore_case(&self, text: &str) -> bool {
        matches(self.0.as_bytes(), text.as_bytes(), |a, b| a.eq_ignore_ascii_case(&b))
    }

    /// Whether the pattern matches every text.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte == b'*')
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Matches with backtracking to the last star only: if a later star fails, moving an earlier one cannot help. So the worst case is
/// pattern × text, and a hostile model name cannot stall a route. Comparing bytes is enough for UTF-8.
fn matches(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(&byte) if same(byte, text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match star.as_mut() {
                Some((after, from)) => {
                    *from += 1;
                    (p, t) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_star_matches_any_number_of_characters() {
        for (pattern, text) in [
            ("gpt-*", "gpt-"),
            ("gpt-*", "gpt-5-mini"),
            ("*", ""),
            ("*mini*", "gpt-5-mini-2025"),
            ("/openai/deployments/*/chat/completions", "/openai/deployments/a/chat/b/chat/completions"),
            ("a*é", "a→é"),
            ("", ""),
        ] {
            assert!(Glob::new(pattern).matches(text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("gpt-*", "GPT-5"), ("gpt", "gpt-5"), ("*mini", "mini-x"), ("", "a"), ("a*b*c", "acb")]
        {
            assert!(!Glob::new(pattern).matches(text), "{pattern} {text}");
        }
        assert!(Glob::new("Get_*").matches_ignore_case("gEt_weather"));
    }

    #[test]
    fn many_stars_take_polynomial_time() {
        let pattern = Glob::new(format!("{}b", "*a".repeat(200)));
        let text = "a".repeat(100_000);
        let start = Instant::now();
        assert!(!pattern.matches(&text));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    #[test]
    fn only_stars_match_everything() {
        assert!(Glob::new("*").is_everything());
        assert!(Glob::new("**").is_everything());
        assert!(!Glob::new("").is_everything());
        assert!(!Glob::new("*a").is_everything());
    }
}
