use tidegate_engine::Digest;

/// Returns the digest of a conversation extended by one message. The digest before the first message is `Digest::default()`.
#[must_use]
pub fn chain(previous: Digest, canonical: &[u8; 32]) -> Digest {
    let mut both = [0; 64];
    both[..32].copy_from_slice(&previous.0);
    both[32..].copy_from_slice(canonical);
    Digest(*blake3::hash(&both).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_depends_on_order() {
        let (a, b) = ([1; 32], [2; 32]);
        let forth = chain(chain(Digest::default(), &a), &b);
        assert_ne!(forth, chain(chain(Digest::default(), &b), &a));
    }
}
