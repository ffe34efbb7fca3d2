//! A cache of the digests of conversations.
//!
//! A request usually repeats the previous one and adds a few messages, so nearly all of its digests have been computed before. They are
//! found by the fingerprints of the messages that they cover.

use crate::{Dialect, Fingerprint, ParsedMessage, chain};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use tidegate_engine::Digest;

#[derive(Debug)]
pub(crate) struct DigestCache {
    /// The digest at each message of a prefix, by the key of that prefix.
    prefixes: Cache<u128, Arc<[Digest]>, PrefixWeight>,
}

/// A prefix is found if fewer than this many messages have been added to it.
const REACH: usize = 16;

impl DigestCache {
    /// The maximum size of the cached digests by default.
    pub(crate) const BYTES: u64 = 16 << 20;

    pub(crate) fn new(bytes: u64) -> DigestCache {
        DigestCache { prefixes: Cache::with_weighter(1_024, bytes, PrefixWeight) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.prefixes.weight()
    }

    /// Returns the digest at each message. Instructions do not change the digest and have that of the message before.
    pub(crate) fn digests(
        &self,
        dialect: Dialect,
        fingerprints: &[Fingerprint],
        parsed: &[Arc<ParsedMessage>],
    ) -> Arc<[Digest]> {
        let keys = prefix_keys(dialect, fingerprints);
        let longest = (1..=keys.len()).rev().take(REACH);
        let found = longest.filter_map(|length| self.prefixes.get(&keys[length - 1])).next();
        if let Some(whole) = found.as_ref().filter(|found| found.len() == parsed.len()) {
            return whole.clone();
        }
        let mut digests = Vec::with_capacity(parsed.len());
        digests.extend_from_slice(found.as_deref().unwrap_or_default());
        let mut digest = digests.last().copied().unwrap_or_default();
        for message in &parsed[digests.len()..] {
            if !message.facts.role.is_instruction() {
                digest = chain(digest, &message.facts.canonical);
            }
            digests.push(digest);
        }
        let digests: Arc<[Digest]> = digests.into();
        if let Some(key) = keys.last() {
            self.prefixes.insert(*key, digests.clone());
        }
        digests
    }
}

/// Returns a key for each prefix. Fingerprints depend on a secret seed, so clients cannot choose them, and combining them needs
/// no cryptographic hash.
fn prefix_keys(dialect: Dialect, fingerprints: &[Fingerprint]) -> Vec<u128> {
    const MULTIPLIER: u128 = 0x2d99_7879_26d4_6932_a4c1_f326_80f7_0c55;
    let mut key = dialect as u128;
    let mut mix = |fingerprint: &Fingerprint| {
        key = (key.rotate_left(61) ^ fingerprint.0).wrapping_mul(MULTIPLIER);
        key
    };
    fingerprints.iter().map(&mut mix).collect()
}

#[derive(Clone, Debug)]
struct PrefixWeight;

impl Weighter<u128, Arc<[Digest]>> for PrefixWeight {
    fn weight(&self, _: &u128, digests: &Arc<[Digest]>) -> u64 {
        64 + size_of_val(&**digests) as u64
    }
}
