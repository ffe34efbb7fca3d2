use crate::tree::{Node, Value};
use tidegate_engine::Strategy;

/// What the schema has and this version cannot do. Such a value is refused, because a limit or a strategy that is read
/// and then ignored is worse than none.
///
/// An entry goes when what it names is built.
const UNAVAILABLE: [(&str, Values, &str); 7] = [
    (
        "context.strategy",
        Values::Words(&["window"]),
        "use `masking`, `summarization`, `hybrid` or `passthrough`",
    ),
    ("context.profile", Values::All, "leave it out, and set the keys of the profile one by one"),
    ("context.history", Values::Words(&["proxy"]), "use `client`: the client resends its history"),
    ("context.unit", Values::Words(&["words"]), "use `tokens`"),
    ("context.blocks.*", Values::All, "leave the section out"),
    ("context.limits.*", Values::All, "leave the limit out, and stop the conversation in the client"),
    ("archive.*", Values::All, "leave the section out: this version keeps no archive"),
];

enum Values {
    All,
    Words(&'static [&'static str]),
}

/// Whether this version can carry out a strategy. A request header that asks for one is held against it too.
#[must_use]
pub fn is_available(strategy: Strategy) -> bool {
    match strategy {
        Strategy::Passthrough | Strategy::Masking | Strategy::Summarization | Strategy::Hybrid => true,
        Strategy::Window => false,
    }
}

/// The hint to show if the key must not have this value in this version.
pub(crate) fn refusal(key: &str, node: &Node) -> Option<String> {
    let (_, values, hint) = UNAVAILABLE.iter().find(|(name, ..)| match name.strip_suffix('*') {
        Some(section) => key.starts_with(section),
        None => key == *name,
    })?;
    let refused = match (values, &node.value) {
        (Values::All, _) => true,
        (Values::Words(words), Value::Text(text)) => words.contains(&text.as_str()),
        (Values::Words(_), _) => false,
    };
    refused.then(|| (*hint).to_owned())
}
