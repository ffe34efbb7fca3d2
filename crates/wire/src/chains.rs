//! The digests of conversations that were seen before.
//!
//! A request is the one before it plus a few messages, so nearly all of its digests have been computed. They are found by the
//! fingerprints of the messages that they are made from.

use crate::{Dialect, Fingerprint, Known, chain};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use tidegate_engine::Digest;

#[derive(Debug)]
pub(crate) struct Chains {
    /// By a run of messages from the first one on, the digest at each of them.
    digests: Cache<u128, Arc<[Digest]>, Weigh>,
}

/// The most bytes of remembered digests.
const MEMORY: u64 = 16 << 20;

/// How many messages may have been added since the last request for it to be found.
const REACH: usize = 16;

impl Default for Chains {
    fn default() -> Chains {
        Chains { digests: Cache::with_weighter(1_024, MEMORY, Weigh) }
    }
}

impl Chains {
    /// The digest at each message. Instructions take no part in it and have that of the message before.
    pub(crate) fn digests(
        &self,
        dialect: Dialect,
        fingerprints: &[Fingerprint],
        known: &[Known],
    ) -> Arc<[Digest]> {
        let keys = keys(dialect, fingerprints);
        let recent = (1..=keys.len()).rev().take(REACH);
        let found = recent.filter_map(|length| self.digests.get(&keys[length - 1])).next();
        if let Some(whole) = found.as_ref().filter(|found| found.len() == known.len()) {
            return whole.clone();
        }
        let mut digests = Vec::with_capacity(known.len());
        digests.extend_from_slice(found.as_deref().unwrap_or_default());
        let mut digest = digests.last().copied().unwrap_or_default();
        for known in &known[digests.len()..] {
            if !known.facts.role.is_instruction() {
                digest = chain(digest, &known.facts.canonical);
            }
            digests.push(digest);
        }
        let digests: Arc<[Digest]> = digests.into();
        if let Some(key) = keys.last() {
            self.digests.insert(*key, digests.clone());
        }
        digests
    }
}

/// A key for each run of messages from the first one on. Fingerprints are made under a secret, so that mixing them needs no
/// cryptography: nobody can choose them.
fn keys(dialect: Dialect, fingerprints: &[Fingerprint]) -> Vec<u128> {
    const ODD: u128 = 0x2d99_7879_26d4_6932_a4c1_f326_80f7_0c55;
    let mut key = dialect as u128;
    let mut mix = |fingerprint: &Fingerprint| {
        key = (key.rotate_left(61) ^ fingerprint.0).wrapping_mul(ODD);
        key
    };
    fingerprints.iter().map(&mut mix).collect()
}

#[derive(Clone, Debug)]
struct Weigh;

impl Weighter<u128, Arc<[Digest]>> for Weigh {
    fn weight(&self, _: &u128, digests: &Arc<[Digest]>) -> u64 {
        64 + size_of_val(&**digests) as u64
    }
}
