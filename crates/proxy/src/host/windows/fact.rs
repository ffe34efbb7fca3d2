//! One learnt window, and how it is stored.

use std::fmt;
use tidegate_engine::Tokens;

/// A window that an upstream has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearntWindow {
    /// `None` if what was known has turned out to be wrong.
    tokens: Option<Tokens>,
    source: Source,
    /// When, in milliseconds since the Unix epoch.
    at: u64,
}

/// Where an upstream has named a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In an error about a request that was too long.
    Error,
    /// In its list of models.
    List,
}

/// How long a window is believed, in milliseconds.
const LIFE: u64 = 24 * 60 * 60 * 1_000;

/// How long a list of models does not correct what an error has named: what is advertised may be the largest of several hosts.
const ERROR_STANDS: u64 = 60 * 60 * 1_000;

/// A window that is named again is written again after this time, so that it does not expire.
const REPEAT: u64 = 60 * 60 * 1_000;

impl LearntWindow {
    #[must_use]
    pub fn new(tokens: Tokens, source: Source, at: u64) -> LearntWindow {
        LearntWindow { tokens: Some(tokens), source, at }
    }

    /// The end of what was known.
    pub(crate) fn forgotten(at: u64) -> LearntWindow {
        LearntWindow { tokens: None, source: Source::List, at }
    }

    /// Its size, if it is still believed.
    #[must_use]
    pub fn tokens(&self, now: u64) -> Option<Tokens> {
        self.tokens.filter(|_| self.is_alive(now))
    }

    pub(crate) fn is_alive(&self, now: u64) -> bool {
        now < self.at.saturating_add(LIFE)
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Whether `self` takes the place of `known`.
    pub(crate) fn corrects(&self, known: &LearntWindow) -> bool {
        match (self.source, known.source) {
            (Source::Error, _) | (Source::List, Source::List) => true,
            (Source::List, Source::Error) => {
                self.tokens.is_none() || self.at >= known.at.saturating_add(ERROR_STANDS)
            }
        }
    }

    /// Whether `self` says what `known` does, and says it soon after.
    pub(crate) fn repeats(&self, known: &LearntWindow) -> bool {
        self.tokens == known.tokens
            && self.source == known.source
            && self.at < known.at.saturating_add(REPEAT)
    }

    /// Reads what [`Display`](fmt::Display) writes. Earlier versions wrote the tokens alone; those were learnt too easily.
    #[must_use]
    pub fn of_fact(fact: &[u8]) -> Option<LearntWindow> {
        let mut words = std::str::from_utf8(fact).ok()?.split(' ');
        let tokens = match words.next()? {
            "none" => None,
            tokens => Some(Tokens(tokens.parse().ok()?)),
        };
        let source = match words.next()? {
            "error" => Source::Error,
            "list" => Source::List,
            _ => return None,
        };
        Some(LearntWindow { tokens, source, at: words.next()?.parse().ok()? })
    }
}

impl fmt::Display for LearntWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tokens {
            Some(tokens) => write!(f, "{tokens}")?,
            None => f.write_str("none")?,
        }
        let source = match self.source {
            Source::Error => "error",
            Source::List => "list",
        };
        write!(f, " {source} {}", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60 * 1_000;

    #[test]
    fn facts_read_back() {
        for window in [
            LearntWindow::new(Tokens(20_000), Source::Error, 7),
            LearntWindow::new(Tokens(1), Source::List, u64::MAX),
            LearntWindow::forgotten(9),
        ] {
            assert_eq!(LearntWindow::of_fact(window.to_string().as_bytes()), Some(window));
        }
        for bad in ["", "20000", "many error 7", "20000 rumour 7", "20000 list", "20000 list x"] {
            assert_eq!(LearntWindow::of_fact(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_window_is_believed_for_a_day() {
        let window = LearntWindow::new(Tokens(20_000), Source::Error, HOUR);
        assert_eq!(window.tokens(24 * HOUR), Some(Tokens(20_000)));
        assert_eq!(window.tokens(25 * HOUR), None);
    }

    #[test]
    fn an_error_stands_for_an_hour_and_a_list_until_the_next() {
        let window = |tokens, source, at| LearntWindow::new(Tokens(tokens), source, at);
        let (error, list) = (window(20_000, Source::Error, 0), window(20_000, Source::List, 0));
        for larger in [30_000, 10_000] {
            assert!(window(larger, Source::Error, 1).corrects(&error));
            assert!(window(larger, Source::Error, 1).corrects(&list));
            assert!(window(larger, Source::List, 1).corrects(&list));
            assert!(!window(larger, Source::List, HOUR - 1).corrects(&error));
            assert!(window(larger, Source::List, HOUR).corrects(&error));
        }
        assert!(LearntWindow::forgotten(1).corrects(&error), "an answer is more than a word");
    }
}
