use crate::Glob;
use crate::section::Section;
use crate::value;
use tidegate_engine::{Tokens, TrimPolicy};

/// How long observations become excerpts.
#[derive(Clone, Debug, PartialEq)]
pub struct Trim {
    pub policy: TrimPolicy,
    /// Shorter observations stay whole.
    pub min_tokens: Tokens,
    /// The maximum length of an excerpt.
    pub keep_tokens: Tokens,
    /// Tools whose results are never trimmed, besides those that are never masked.
    pub exclude_tools: Vec<Glob>,
}

impl Default for Trim {
    fn default() -> Trim {
        Trim {
            policy: TrimPolicy::default(),
            min_tokens: Tokens(1500),
            keep_tokens: Tokens(400),
            exclude_tools: Vec::new(),
        }
    }
}

/// There is no room for a head, a tail and a marker in less.
const LEAST_EXCERPT: Tokens = Tokens(80);

impl Trim {
    /// Returns `None` if there is no such section, or if it is switched off.
    pub(crate) fn read(section: &mut Section<'_>) -> Option<Trim> {
        if !section.exists() {
            section.declare(&["enabled", "after", "min_tokens", "keep_tokens", "exclude_tools", "pace"]);
            return None;
        }
        let is_enabled = section.flag("enabled", true);
        let Trim { policy: TrimPolicy { after, pace }, min_tokens, keep_tokens, .. } = Trim::default();
        let trim = Trim {
            policy: TrimPolicy { after: section.keep("after", after), pace: section.pace("pace", pace) },
            min_tokens: section.with_default(
                "min_tokens",
                min_tokens,
                value::positive_tokens,
                Tokens::to_string,
            ),
            keep_tokens: section.with_default(
                "keep_tokens",
                keep_tokens,
                value::positive_tokens,
                Tokens::to_string,
            ),
            exclude_tools: section
                .with_default("exclude_tools", Vec::new(), value::globs, |_| "[]".to_owned()),
        };
        if trim.keep_tokens < LEAST_EXCERPT || trim.keep_tokens >= trim.min_tokens {
            let must =
                format!("`keep_tokens` must be at least {} and less than `min_tokens`", LEAST_EXCERPT.0);
            section.reject(
                &["keep_tokens", "min_tokens"],
                must,
                "for example, `keep_tokens = 400` and `min_tokens = 1500`",
            );
        }
        is_enabled.then_some(trim)
    }
}
