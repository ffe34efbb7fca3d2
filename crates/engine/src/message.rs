use crate::{Digest, Tokens};

/// What the engine knows about one message. It never sees the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub kind: Kind,
    /// The digest of the conversation up to and including this message. Instructions are not part of the chain: they have the
    /// digest of the message before them.
    pub digest: Digest,
    /// What the message costs as the client sent it.
    pub tokens: Tokens,
    /// Its length in the unit of the block limits: tokens or words.
    pub size: Tokens,
    /// What it would cost with a placeholder for its content; `None` if it must not be masked.
    pub masked: Option<Tokens>,
    /// What it would cost as an excerpt; `None` if it must not be trimmed.
    pub trimmed: Option<Tokens>,
    /// Whether a cut in front of this message would separate a call from one of its results.
    pub joined: bool,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
    /// An unknown role. Such a message is never masked.
    Other,
}

impl Role {
    /// Whether messages of this role are instructions rather than part of the dialogue.
    #[must_use]
    pub fn is_instruction(self) -> bool {
        matches!(self, Role::System | Role::Developer)
    }
}

/// Whether a message is part of the talk or the result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An instruction, a user message or an assistant message.
    Speech,
    /// The result of an action: a tool result, or a message that reports one.
    Observation,
}

impl Kind {
    /// The kind of a message of which only the role is known.
    #[must_use]
    pub fn of(role: Role) -> Kind {
        match role {
            Role::Tool | Role::Function => Kind::Observation,
            Role::System | Role::Developer | Role::User | Role::Assistant | Role::Other => Kind::Speech,
        }
    }
}

impl Message {
    /// Whether this is a user message that is not an observation.
    #[must_use]
    pub fn is_user_turn(&self) -> bool {
        self.role == Role::User && self.kind == Kind::Speech
    }

    /// The tokens that a placeholder would save; zero if masking would not shrink the message.
    #[must_use]
    pub fn saving(&self) -> Tokens {
        self.masked.map_or(Tokens::ZERO, |masked| self.tokens.saturating_sub(masked))
    }

    /// The tokens that an excerpt would save; zero if trimming would not shrink the message, or would leave nothing for a later
    /// placeholder to save.
    #[must_use]
    pub fn trim_saving(&self) -> Tokens {
        let trimmed = self.trimmed.filter(|trimmed| self.masked.is_none_or(|masked| masked < *trimmed));
        trimmed.map_or(Tokens::ZERO, |trimmed| self.tokens.saturating_sub(trimmed))
    }

    /// What the message costs as an excerpt; its full cost if trimming would not shrink it.
    pub(crate) fn trimmed_cost(&self) -> Tokens {
        self.tokens.saturating_sub(self.trim_saving())
    }

    /// What the message costs if it is masked; its full cost if masking would not shrink it.
    pub(crate) fn masked_cost(&self) -> Tokens {
        self.tokens.saturating_sub(self.saving())
    }
}
