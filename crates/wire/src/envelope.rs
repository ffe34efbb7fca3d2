use crate::cursor::Value;
use crate::{Dialect, Span, Unreadable};

/// The meaning of a member of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Model,
    Stream,
    /// A name by which the client groups requests.
    Session,
    /// The client's limit on output tokens. If several are set, the first in the table wins.
    OutputLimit,
    /// A value that costs prompt tokens.
    Extra(ExtraKind),
    /// Not used, but refused if it occurs twice.
    Unused,
}

/// The members that a dialect gives a meaning. Each may occur once: parsers disagree on which of two values counts, so we might
/// act on another than the upstream does.
pub(crate) struct MemberTable(&'static [(&'static str, Meaning)]);

/// The maximum number of entries in a [`MemberTable`].
const MAX_MEMBERS: usize = 16;

impl MemberTable {
    pub(crate) const fn new(members: &'static [(&'static str, Meaning)]) -> MemberTable {
        assert!(members.len() <= MAX_MEMBERS);
        MemberTable(members)
    }
}

/// A value of the envelope that the model reads besides the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    pub kind: ExtraKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtraKind {
    /// Definitions of tools.
    Tools,
    /// The format or schema that the answer must have.
    ResponseFormat,
}

/// The client's limit on output tokens, and the member that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    pub key: &'static str,
    pub tokens: u64,
}

/// The members of a body's envelope that have been read so far.
pub(crate) struct Envelope {
    members: &'static [(&'static str, Meaning)],
    /// The value of each member, by its position in the table.
    values: [Option<Span>; MAX_MEMBERS],
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) session: Option<String>,
    /// The limit, with its position in the table.
    output_limit: Option<(usize, u64)>,
}

impl Envelope {
    pub(crate) fn new(dialect: Dialect) -> Envelope {
        Envelope {
            members: dialect.members().0,
            values: [None; MAX_MEMBERS],
            model: None,
            stream: false,
            session: None,
            output_limit: None,
        }
    }

    /// Reads a member if it has a meaning. Returns whether its value has been checked in full.
    pub(crate) fn read(&mut self, key: &str, value: Value<'_>) -> Result<bool, Unreadable> {
        let Some(position) = self.members.iter().position(|(known, _)| *known == key) else {
            return Ok(false);
        };
        let (key, meaning) = self.members[position];
        let is_checked = match meaning {
            Meaning::Model => {
                self.model = value.text()?.map(|text| text.into_owned());
                true
            }
            Meaning::Session => {
                self.session = value.text()?.map(|text| text.into_owned());
                true
            }
            Meaning::Stream => {
                value.check()?;
                self.stream = value.raw() == b"true";
                true
            }
            Meaning::OutputLimit => {
                let limit = value.integer()?.map(|tokens| (position, tokens));
                self.output_limit = [self.output_limit, limit].into_iter().flatten().min();
                true
            }
            Meaning::Extra(_) | Meaning::Unused => false,
        };
        match self.values[position].replace(value.span()) {
            None => Ok(is_checked),
            Some(_) => Err(Unreadable::Ambiguous(key)),
        }
    }

    pub(crate) fn output_limit(&self) -> Option<OutputLimit> {
        self.output_limit.map(|(position, tokens)| OutputLimit { key: self.members[position].0, tokens })
    }

    /// The values that cost prompt tokens, in the order of the table, whatever their order in the body.
    pub(crate) fn extras(&self) -> Vec<Extra> {
        let members = self.members.iter().zip(self.values);
        members
            .filter_map(|((_, meaning), span)| match meaning {
                Meaning::Extra(kind) => Some(Extra { kind: *kind, span: span? }),
                Meaning::Model
                | Meaning::Stream
                | Meaning::Session
                | Meaning::OutputLimit
                | Meaning::Unused => None,
            })
            .collect()
    }
}
