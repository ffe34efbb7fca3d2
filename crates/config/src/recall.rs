use crate::section::Section;
use crate::value;
use tidegate_engine::Tokens;

/// How messages that have left the context are brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Whether the passages that bear on the newest user message are put into it.
    pub auto: bool,
    /// The maximum length of the excerpts in one message.
    pub max_tokens: Tokens,
    /// Whether placeholders and excerpts name a reference, by which the model can ask for the original.
    pub tool: bool,
}

impl Recall {
    /// `stores_raw` says whether raw messages may be kept at all. Where they may not, none are brought back.
    pub(crate) fn read(section: &mut Section<'_>, stores_raw: bool) -> Recall {
        let auto = section.flag("auto", stores_raw);
        let max = |tokens: &Tokens| tokens.0.to_string();
        let max_tokens = section.with_default("max_tokens", Tokens(2000), value::positive_tokens, max);
        Recall { auto: auto && stores_raw, max_tokens, tool: section.flag("tool", false) }
    }
}
