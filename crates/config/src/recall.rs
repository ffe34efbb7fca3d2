use crate::section::Section;
use crate::value;
use std::num::NonZeroU32;
use std::time::Duration;
use tidegate_engine::Tokens;

/// How messages that have left the context are brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Whether the passages that bear on the newest user message are put into it.
    pub auto: bool,
    /// The maximum length of the excerpts in one message.
    pub max_tokens: Tokens,
    /// Whether the model can ask for the original of what was shortened, by a reference, if it has tools.
    pub tool: bool,
    /// How often the model can ask before it has to answer.
    pub max_calls: NonZeroU32,
    /// For how long it can ask in one request.
    pub timeout: Duration,
}

const MAX_CALLS: NonZeroU32 = NonZeroU32::new(4).unwrap();

impl Recall {
    /// `stores_raw` says whether raw messages may be kept at all. Where they may not, none are brought back.
    pub(crate) fn read(section: &mut Section<'_>, stores_raw: bool) -> Recall {
        let auto = section.flag("auto", stores_raw);
        let max = |tokens: &Tokens| tokens.0.to_string();
        let max_tokens = section.with_default("max_tokens", Tokens(2000), value::positive_tokens, max);
        Recall {
            auto: auto && stores_raw,
            max_tokens,
            tool: section.flag("tool", false),
            max_calls: section.count("max_calls", MAX_CALLS),
            timeout: section.duration("timeout", Duration::from_secs(60)),
        }
    }
}
