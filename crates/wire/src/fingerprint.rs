use twox_hash::XxHash3_128;

/// A hash of the exact bytes of a message. Valid only within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u128);

/// Computes fingerprints with a secret seed.
///
/// The hash is fast, not cryptographic. Messages with equal fingerprints share one cache entry, so a client that knew the seed could
/// craft two messages that are taken for each other.
#[derive(Clone)]
pub struct Fingerprinter {
    seed: u64,
}

impl Fingerprinter {
    /// `seed` must be random and new in every process.
    #[must_use]
    pub fn new(seed: u64) -> Fingerprinter {
        Fingerprinter { seed }
    }

    #[must_use]
    pub fn of(&self, raw: &[u8]) -> Fingerprint {
        Fingerprint(XxHash3_128::oneshot_with_seed(self.seed, raw))
    }
}

/// Keeps the seed out of logs.
impl std::fmt::Debug for Fingerprinter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fingerprinter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_depends_on_the_seed_and_the_bytes() {
        let fingerprinter = Fingerprinter::new(7);
        for length in [1, 16, 17, 128, 129, 240, 241, 5000] {
            let raw = vec![b'x'; length];
            let mut other = raw.clone();
            other[length / 2] ^= 1;
            assert_eq!(fingerprinter.of(&raw), fingerprinter.of(&raw));
            assert_ne!(fingerprinter.of(&raw), fingerprinter.of(&other));
            assert_ne!(fingerprinter.of(&raw), Fingerprinter::new(8).of(&raw));
        }
        assert!(!format!("{fingerprinter:?}").contains('7'));
    }
}
