use crate::Tokens;

/// A model's context window, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextWindow {
    /// The operator has set it.
    Configured(Tokens),
    /// The model's provider has published it.
    Known(Tokens),
    /// The upstream has named it, in an error or in its list of models.
    Learnt(Tokens),
    /// It is typical of the model's family. The model or its host may have another.
    Typical(Tokens),
    /// `budget.fallback_window`: nobody knows, and the operator wants this to be assumed.
    Fallback(Tokens),
    /// Nobody knows.
    Unknown,
}

impl ContextWindow {
    /// Its size; `None` if it is unknown.
    #[must_use]
    pub fn tokens(self) -> Option<Tokens> {
        match self {
            ContextWindow::Configured(tokens)
            | ContextWindow::Known(tokens)
            | ContextWindow::Learnt(tokens)
            | ContextWindow::Typical(tokens)
            | ContextWindow::Fallback(tokens) => Some(tokens),
            ContextWindow::Unknown => None,
        }
    }

    /// Its size if there is no doubt about it, so that a request that exceeds it can be refused.
    ///
    /// A learnt window is no reason to refuse: behind a gateway, another host may answer the next request.
    #[must_use]
    pub fn certain(self) -> Option<Tokens> {
        match self {
            ContextWindow::Configured(tokens) | ContextWindow::Known(tokens) => Some(tokens),
            ContextWindow::Learnt(_)
            | ContextWindow::Typical(_)
            | ContextWindow::Fallback(_)
            | ContextWindow::Unknown => None,
        }
    }

    /// The name of the source in records and JSON.
    #[must_use]
    pub fn source(self) -> &'static str {
        match self {
            ContextWindow::Configured(_) => "configured",
            ContextWindow::Known(_) => "known",
            ContextWindow::Learnt(_) => "learnt",
            ContextWindow::Typical(_) => "typical",
            ContextWindow::Fallback(_) => "fallback",
            ContextWindow::Unknown => "unknown",
        }
    }

    /// The inverse of [`source`](ContextWindow::source) and [`tokens`](ContextWindow::tokens).
    #[must_use]
    pub fn from_source(source: &str, tokens: Tokens) -> ContextWindow {
        match source {
            "configured" => ContextWindow::Configured(tokens),
            "known" => ContextWindow::Known(tokens),
            "learnt" => ContextWindow::Learnt(tokens),
            "typical" => ContextWindow::Typical(tokens),
            "fallback" => ContextWindow::Fallback(tokens),
            _ => ContextWindow::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_reads_back() {
        let size = Tokens(8_192);
        for window in [
            ContextWindow::Configured(size),
            ContextWindow::Known(size),
            ContextWindow::Learnt(size),
            ContextWindow::Typical(size),
            ContextWindow::Fallback(size),
        ] {
            assert_eq!(ContextWindow::from_source(window.source(), size), window);
            assert_eq!(window.tokens(), Some(size));
        }
        assert_eq!(ContextWindow::from_source("unknown", size), ContextWindow::Unknown);
        assert_eq!(ContextWindow::Unknown.tokens(), None);
    }
}
