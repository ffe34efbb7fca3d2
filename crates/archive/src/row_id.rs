use std::fmt;

/// The primary key of a row. The ids of messages and summaries are derived from content, so that a retry or another replica
/// writes the same row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub [u8; 16]);

impl RowId {
    /// The id of a message, identified by its conversation and the digest of the conversation up to it.
    #[must_use]
    pub fn of_message(conversation: [u8; 16], message: [u8; 32]) -> RowId {
        derive("tidegate archive message 1", conversation, message)
    }

    /// The id of a summary, identified by its conversation and the digest of the prefix that it covers.
    #[must_use]
    pub fn of_summary(conversation: [u8; 16], covers: [u8; 32]) -> RowId {
        derive("tidegate archive summary 1", conversation, covers)
    }
}

/// `purpose` separates a summary from the message at which it ends.
fn derive(purpose: &str, conversation: [u8; 16], digest: [u8; 32]) -> RowId {
    let mut hasher = blake3::Hasher::new_derive_key(purpose);
    hasher.update(&conversation).update(&digest);
    let mut id = RowId([0; 16]);
    hasher.finalize_xof().fill(&mut id.0);
    id
}

/// Formats the id as PostgreSQL prints a `uuid`.
impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 16] = [1; 16];
    const MESSAGE: [u8; 32] = [2; 32];

    #[test]
    fn an_id_depends_on_the_conversation_the_message_and_the_purpose() {
        let id = RowId::of_message(KEY, MESSAGE);
        assert_eq!(id, RowId::of_message(KEY, MESSAGE));
        assert_ne!(id, RowId::of_message([3; 16], MESSAGE));
        assert_ne!(id, RowId::of_message(KEY, [3; 32]));
        assert_ne!(id, RowId::of_summary(KEY, MESSAGE));
    }

    #[test]
    fn it_prints_as_a_uuid() {
        let id = RowId(*b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\xff");
        assert_eq!(id.to_string(), "00010203-0405-0607-0809-0a0b0c0d0eff");
    }
}
