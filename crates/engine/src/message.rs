use crate::{Digest, Tokens};

/// What the engine knows of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub kind: Kind,
    /// The digest of the conversation up to and including this message. System messages do not take part in it: theirs is
    /// that of the message before.
    pub digest: Digest,
    /// What the message costs as the client sent it.
    pub tokens: Tokens,
    /// How long it is in the unit that limits of blocks are given in: tokens, or words.
    pub size: Tokens,
    /// What it would cost with a placeholder for its content; absent where its content must stay.
    pub masked: Option<Tokens>,
    /// Whether a call from before this message is answered by it or behind it: nothing may be cut off in front of it.
    pub joined: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
    /// A role that nobody knows yet. Such a message is never edited.
    Other,
}

impl Role {
    /// Whether the message instructs rather than converses.
    #[must_use]
    pub fn is_instruction(self) -> bool {
        matches!(self, Role::System | Role::Developer)
    }
}

/// What a message is, besides who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Something said.
    Speech,
    /// The result of an action: a tool's answer, or a message that reports one.
    Observation,
}

impl Kind {
    /// What a message of this role is when nothing else is known.
    #[must_use]
    pub fn of(role: Role) -> Kind {
        match role {
            Role::Tool | Role::Function => Kind::Observation,
            Role::System | Role::Developer | Role::User | Role::Assistant | Role::Other => Kind::Speech,
        }
    }
}

impl Message {
    /// A message of a user that is not the report of an action.
    #[must_use]
    pub fn is_user_turn(&self) -> bool {
        self.role == Role::User && self.kind == Kind::Speech
    }

    /// How many tokens a placeholder would save; nothing where it would not shrink the message.
    #[must_use]
    pub fn saving(&self) -> Tokens {
        self.masked.map_or(Tokens::ZERO, |masked| self.tokens.saturating_sub(masked))
    }
}
