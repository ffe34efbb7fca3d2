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
    /// The content to which texts of our own can be added: a JSON string, or an array of parts.
    pub extendable: Option<Span>,
    /// Whether the message holds results as blocks of its content. They stand first, and a text must not stand before them.
    pub results: Results,
    /// The value of a cache marker of the message or of its content. A mask keeps it: the provider caches only up to its markers.
    pub breakpoint: Option<Span>,
    /// The bytes to cut to remove the `observation` tag. `None` if the message is not tagged.
    pub tag: Option<Span>,
    /// The calls that the message makes, in order.
    pub calls: Box<[Call]>,
    /// The calls that the message answers.
    pub answers: SmallVec<[CallId; 1]>,
    pub name: Option<Box<str>>,
    /// Whether the provider has put a summary of earlier messages here.
    pub is_native: bool,
    /// Whether it holds reasoning that the provider has signed. Some bind it to everything before it.
    pub is_signed: bool,
    /// What ties the message to its neighbours, besides calls and results.
    pub bond: Bond,
}

/// What ties a message to its neighbours, besides calls and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bond {
    #[default]
    None,
    /// It holds reasoning, which a provider may want back with all of the answer that it belongs to.
    Reasons,
    /// It is part of an answer that the provider has named, and holds no reasoning: that may stand in an earlier part.
    MayRestOnReasons,
    /// It holds something that only the provider understands, such as a reference to what it keeps itself.
    Opaque,
}

/// Whether a message holds results as blocks of its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Results {
    /// None, or the whole message is one.
    #[default]
    None,
    /// It holds nothing but results.
    Only,
    /// It holds results, and words of the user's own.
    BesideSpeech,
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
