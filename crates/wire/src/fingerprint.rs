use twox_hash::XxHash3_128;

/// Stands for the exact bytes of a message in the cache of facts. Means nothing outside this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u128);

/// Makes fingerprints under a secret of this process.
///
/// The hash is fast, not cryptographic. Two messages with one fingerprint would share their facts, so a client that
/// could compute collisions could have one of its messages taken for another; without the seed it cannot.
#[derive(Clone)]
pub struct Fingerprinter {
    seed: u64,
}

impl Fingerprinter {
    /// The seed must be drawn at random when the process starts.
    #[must_use]
    pub fn new(seed: u64) -> Fingerprinter {
        Fingerprinter { seed }
    }

    #[must_use]
    pub fn of(&self, raw: &[u8]) -> Fingerprint {
        Fingerprint(XxHash3_128::oneshot_with_seed(self.seed, raw))
    }
}

/// The seed stays out of logs.
impl std::fmt::Debug for Fingerprinter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fingerprinter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_and_every_byte_count() {
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
