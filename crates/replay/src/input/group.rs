//! Groups the requests of a log into conversations.

use super::InputError;
use super::line::LoggedRequest;
use super::recorded::{Recorded, TimedRequest};
use std::collections::HashMap;
use tidegate_engine::Digest;
use tidegate_wire::{Dialect, Fingerprint, Reader, chain};

/// The conversations of a file so far, in order of their first requests.
#[derive(Debug, Default)]
pub(super) struct Groups {
    reader: Reader,
    /// Canonical hashes of messages by their bytes; `None` for instructions, which are not part of a digest.
    canonical_hashes: HashMap<Fingerprint, Option<[u8; 32]>>,
    /// The conversation that had a request ending at this digest.
    ends: HashMap<Digest, usize>,
    by_name: HashMap<String, usize>,
    conversations: Vec<(String, Vec<TimedRequest>)>,
}

impl Groups {
    /// Adds a request to the conversation that it names, or else to the one with the longest earlier request
    /// that it begins with. The digests are the proxy's own.
    pub(super) fn add(&mut self, logged: LoggedRequest) -> Result<(), InputError> {
        let digests = self.digests(&logged)?;
        let LoggedRequest { line, body, conversation, at } = logged;
        let known = match &conversation {
            Some(name) => self.by_name.get(name).copied(),
            None => digests.iter().rev().find_map(|digest| self.ends.get(digest).copied()),
        };
        let number = known.unwrap_or_else(|| {
            let id = conversation.clone().unwrap_or_else(|| format!("{}:{}", line.file, line.line));
            self.conversations.push((id, Vec::new()));
            self.conversations.len() - 1
        });
        match conversation {
            Some(name) => {
                self.by_name.insert(name, number);
            }
            None => {
                if let Some(end) = digests.last() {
                    self.ends.insert(*end, number);
                }
            }
        }
        self.conversations[number].1.push((body, at));
        Ok(())
    }

    pub(super) fn finish(self) -> impl Iterator<Item = Recorded> {
        self.conversations.into_iter().map(|(id, requests)| Recorded::from_requests(id, requests))
    }

    /// The digest of the conversation at each message that is part of the chain.
    fn digests(&mut self, logged: &LoggedRequest) -> Result<Vec<Digest>, InputError> {
        let hint = "a request is the body of a chat completion: `{\"model\", \"messages\": [{\"role\", \"content\"}, …]}`";
        let outline = self
            .reader
            .outline(Dialect::of_body(&logged.body), &logged.body)
            .map_err(|error| logged.line.error(error.to_string(), hint))?;
        let (mut digest, mut digests) = (Digest::default(), Vec::new());
        for (span, fingerprint) in outline.messages.iter().zip(&outline.fingerprints) {
            let canonical = match self.canonical_hashes.get(fingerprint) {
                Some(canonical) => *canonical,
                None => {
                    let facts = outline.dialect.read_facts(span.of(&logged.body));
                    let facts = facts.map_err(|error| logged.line.error(error.to_string(), hint))?;
                    let canonical = (!facts.role.is_instruction()).then_some(facts.canonical);
                    self.canonical_hashes.insert(*fingerprint, canonical);
                    canonical
                }
            };
            if let Some(canonical) = canonical {
                digest = chain(digest, &canonical);
                digests.push(digest);
            }
        }
        Ok(digests)
    }
}
