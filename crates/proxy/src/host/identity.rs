use tidegate_store::{Branch, ConversationKey};

/// A conversation: its name for the client, and its key in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Where it is recorded and, if it has a name, where its state is.
    pub(crate) key: ConversationKey,
    /// Where its state is if it is recognised by its content.
    pub(crate) branch: Option<Box<Branch>>,
    /// The client's own name for it, or a name derived from its first message.
    pub(crate) name: String,
    /// Stands for the tenant; reveals nothing about its credentials.
    pub(crate) tenant: String,
}

impl Identity {
    /// The id that the client gave, unless the name was derived from something else.
    pub(crate) fn client_id(&self) -> Option<&str> {
        let is_own = self.branch.is_none() && self.name != derived_name(&self.key);
        is_own.then_some(self.name.as_str())
    }

    /// Where summaries are made and stored, one at a time.
    pub(crate) fn fold_key(&self) -> ConversationKey {
        let branch = self.branch.as_ref();
        let folding = branch.and_then(|branch| branch.note.folding.or(branch.own.first().copied()));
        folding.unwrap_or(self.key)
    }
}

/// The name of a session whose own id cannot be shown.
pub(crate) fn derived_name(key: &ConversationKey) -> String {
    format!("session-{}", short(key))
}

/// The first digits of a key.
pub(crate) fn short(key: &ConversationKey) -> String {
    key.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The secret under which tenants and conversations are hashed. Processes that share a store must have the same.
#[derive(Clone)]
pub struct Secret(pub(crate) [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Derives the secret from what the operator gives. Without that, the hash still hides API keys, which cannot be guessed, from
    /// those who read the store; it does not hide tenants that can be guessed.
    #[must_use]
    pub fn new(given: Option<&str>) -> Secret {
        Secret(blake3::derive_key("tidegate tenants 1", given.unwrap_or_default().as_bytes()))
    }
}
