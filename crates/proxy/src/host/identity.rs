use tidegate_store::{Branch, ConversationKey};
use tidegate_tokens::Model;

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
    /// Where summaries are made and stored, one at a time.
    pub(crate) fn fold_key(&self) -> ConversationKey {
        let branch = self.branch.as_ref();
        let folding = branch.and_then(|branch| branch.note.folding.or(branch.own.first().copied()));
        folding.unwrap_or(self.key)
    }
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

/// The key of a model's calibration. Each tenant has its own, so that nobody's traffic moves another tenant's budget.
pub(crate) fn calibration_key(identity: Option<&Identity>, model: &Model) -> String {
    let tenant = identity.map_or("", |identity| identity.tenant.as_str());
    format!("{tenant} {}", model.name)
}
