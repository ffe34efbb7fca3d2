use std::cell::Cell;

/// A hasher of fields. Each field is written as its tag, its length and its bytes, so that no two different messages produce the same
/// input.
///
/// BLAKE3 hashes several kilobytes at once in half the time, but only from a kilobyte boundary of its input, and short fields come
/// before long ones. So fields are collected in a buffer first.
pub(crate) struct FieldHasher {
    hasher: blake3::Hasher,
    pending: Vec<u8>,
}

/// The capacity of the buffer. A larger field is hashed in place: alignment matters little then, and copying an image would cost more.
pub(crate) const MAX_PENDING: usize = 64 << 10;

thread_local! {
    /// One buffer per thread. Allocating one per message makes hashing a sixth slower.
    static PENDING: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl FieldHasher {
    /// `domain` names what is hashed, and the version of its format.
    pub(crate) fn new(domain: &[u8]) -> FieldHasher {
        let mut pending = PENDING.take();
        pending.clear();
        pending.extend_from_slice(domain);
        FieldHasher { hasher: blake3::Hasher::new(), pending }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.pending.len() + bytes.len() > MAX_PENDING {
            self.hasher.update(&self.pending);
            self.pending.clear();
        }
        if bytes.len() > MAX_PENDING {
            self.hasher.update(bytes);
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    pub(crate) fn finish(mut self) -> [u8; 32] {
        let hash = *self.hasher.update(&self.pending).finalize().as_bytes();
        PENDING.set(self.pending);
        hash
    }

    pub(crate) fn field(&mut self, tag: u8, bytes: &[u8]) {
        self.count(tag, bytes.len());
        self.bytes(bytes);
    }

    pub(crate) fn count(&mut self, tag: u8, count: usize) {
        let mut head = [tag; 9];
        head[1..].copy_from_slice(&(count as u64).to_le_bytes());
        self.bytes(&head);
    }

    pub(crate) fn optional(&mut self, tag: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.field(tag, text.as_bytes());
        }
    }
}
