//! A cache of placeholders and excerpts.
//!
//! A request usually repeats the previous one and adds a few messages, so nearly all of its substitutes have been made before.

use crate::substitute::{IdentifiersWeight, SubstitutesWeight, identifiers_of};
use crate::{Dialect, Fingerprint, Outline, ParsedMessage, Results, Shortening, Substitutes};
use quick_cache::sync::Cache;
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;
use tidegate_engine::{Digest, Kind};
use tidegate_tokens::Encoding;

#[derive(Debug)]
pub(crate) struct SubstituteCache {
    /// By the digest at the message, and a hash of how it is shortened.
    substitutes: Cache<(Digest, u64), Arc<Substitutes>, SubstitutesWeight>,
    /// The hashes of the identifiers in a message.
    identifiers: Cache<(Fingerprint, Dialect), Arc<[u64]>, IdentifiersWeight>,
    hasher: std::hash::RandomState,
}

/// A request whose messages have been read.
pub(crate) struct SubstituteRequest<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) outline: &'a Outline,
    pub(crate) parsed: &'a [Arc<ParsedMessage>],
    pub(crate) digests: &'a [Digest],
}

impl SubstituteCache {
    /// The maximum size of the caches by default.
    pub(crate) const BYTES: u64 = 56 << 20;

    pub(crate) fn new(bytes: u64) -> SubstituteCache {
        // Identifiers are shorter than what is made of them.
        let identifiers = bytes / 7 * 3;
        SubstituteCache {
            substitutes: Cache::with_weighter(4_096, bytes - identifiers, SubstitutesWeight),
            identifiers: Cache::with_weighter(4_096, identifiers, IdentifiersWeight),
            hasher: std::hash::RandomState::new(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.substitutes.weight() + self.identifiers.weight()
    }

    /// Returns what can stand for each message; `None` for messages that are not observations.
    pub(crate) fn get(
        &self,
        request: &SubstituteRequest<'_>,
        shortening: &Shortening<'_>,
        encoding: Encoding,
    ) -> Vec<Option<Arc<Substitutes>>> {
        let rule = self.hasher.hash_one((shortening, encoding));
        let known = request.parsed.iter().zip(request.digests).map(|(parsed, digest)| {
            let found = is_observation(parsed).then(|| self.substitutes.get(&(*digest, rule)));
            found.flatten().filter(|found| found.are_of(parsed))
        });
        let mut substitutes: Vec<Option<Arc<Substitutes>>> = known.collect();
        let is_missing =
            |index: &usize| is_observation(&request.parsed[*index]) && substitutes[*index].is_none();
        let missing: Vec<usize> = (0..request.parsed.len()).filter(is_missing).collect();
        let needs_identifiers = shortening.hint > 0 || shortening.trim.is_some();
        let (mut seen, mut read) = (HashSet::new(), 0);
        for index in missing {
            if needs_identifiers {
                (read..index).for_each(|earlier| self.add_identifiers(request, earlier, &mut seen));
                read = index;
            }
            let (parsed, digest) = (&request.parsed[index], request.digests[index]);
            let raw = request.outline.messages[index].of(request.body);
            let made = Arc::new(Substitutes::new(raw, parsed, digest, &seen, shortening, encoding));
            self.substitutes.insert((digest, rule), made.clone());
            substitutes[index] = Some(made);
        }
        substitutes
    }

    /// Adds the identifiers of a message. Instructions are not part of the digest, so they must not change what follows from it.
    fn add_identifiers(&self, request: &SubstituteRequest<'_>, index: usize, seen: &mut HashSet<u64>) {
        let SubstituteRequest { body, outline, parsed, .. } = request;
        if parsed[index].facts.role.is_instruction() {
            return;
        }
        let key = (outline.fingerprints[index], outline.dialect);
        let known = self.identifiers.get(&key).or_else(|| {
            let view = outline.dialect.read_message(outline.messages[index].of(body)).ok()?;
            let identifiers = identifiers_of(&view);
            self.identifiers.insert(key, identifiers.clone());
            Some(identifiers)
        });
        seen.extend(known.iter().flat_map(|known| known.iter().copied()));
    }
}

fn is_observation(parsed: &ParsedMessage) -> bool {
    let is_kind = parsed.kind == Kind::Observation || parsed.facts.results == Results::BesideSpeech;
    is_kind && !parsed.facts.maskable.is_empty()
}
