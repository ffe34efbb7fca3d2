use crate::Span;
use smallvec::SmallVec;
use tidegate_engine::Role;
use twox_hash::XxHash3_128;

/// What the engine and [`splice`](crate::splice()) need to know about a message. Small and without texts, so that it can be cached
/// for as long as clients resend the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFacts {
    pub role: Role,
    /// The hash of what the message says, independent of its JSON spelling. Input of [`chain`](crate::chain).
    pub canonical: [u8; 32],
    /// The values that a placeholder can replace, in order, counted from the message's first byte. Empty if the message has no
    /// content to mask.
    ///
    /// Each may be replaced with a JSON string. A chat message has at most one; in other dialects a message can hold several
    /// results.
    pub maskable: SmallVec<[Span; 1]>,
    /// The value of a cache marker of the message or of its content. A mask keeps it: the provider caches only up to its markers.
    pub breakpoint: Option<Span>,
    /// The bytes to cut to remove the `observation` tag. `None` if the message is not tagged.
    pub tag: Option<Span>,
    /// The calls that the message makes, in order.
    pub calls: Box<[Call]>,
    /// The calls that the message answers.
    pub answers: SmallVec<[CallId; 1]>,
    pub name: Option<Box<str>>,
}

/// The hash of a tool call's id. Equal ids have equal hashes in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u128);

/// A tool call: the tool's name, and the id that the result will refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub id: CallId,
    pub tool: Box<str>,
}

impl CallId {
    #[must_use]
    pub fn of(id: &str) -> CallId {
        CallId(XxHash3_128::oneshot_with_seed(0, id.as_bytes()))
    }

    /// The id of a call without one: old clients refer to it by the function's name. The different seed keeps such a name apart
    /// from an id with the same spelling.
    #[must_use]
    pub fn of_function(name: &str) -> CallId {
        CallId(XxHash3_128::oneshot_with_seed(1, name.as_bytes()))
    }
}
