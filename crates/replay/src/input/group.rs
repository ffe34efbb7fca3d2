//! Requests of a log, put together to the conversations that they were part of.

use super::InputError;
use super::line::Logged;
use super::recorded::{Recorded, Sent};
use std::collections::HashMap;
use tidegate_engine::Digest;
use tidegate_wire::{Dialect, Fingerprint, Reader, chain};

/// The conversations of a file so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Groups {
    reader: Reader,
    /// What is known of messages by their bytes: nothing for instructions, which take no part in a digest.
    known: HashMap<Fingerprint, Option<[u8; 32]>>,
    /// Which conversation has had a request that ended here.
    ends: HashMap<Digest, usize>,
    named: HashMap<String, usize>,
    conversations: Vec<(String, Vec<Sent>)>,
}

impl Groups {
    /// A request continues the conversation that it names, else the one whose request it begins with, the longest first. The digests are
    /// the proxy's own.
    pub(super) fn add(&mut self, logged: Logged) -> Result<(), InputError> {
        let digests = self.digests(&logged)?;
        let Logged { line, body, conversation, at } = logged;
        let known = match &conversation {
            Some(name) => self.named.get(name).copied(),
            None => digests.iter().rev().find_map(|digest| self.ends.get(digest).copied()),
        };
        let number = known.unwrap_or_else(|| {
            let id = conversation.clone().unwrap_or_else(|| format!("{}:{}", line.file, line.line));
            self.conversations.push((id, Vec::new()));
            self.conversations.len() - 1
        });
        match conversation {
            Some(name) => {
                self.named.insert(name, number);
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
        self.conversations.into_iter().map(|(id, requests)| Recorded::of_requests(id, requests))
    }

    /// The digest of the conversation at each message that takes part in it.
    fn digests(&mut self, logged: &Logged) -> Result<Vec<Digest>, InputError> {
        let hint = "a request is the body of a chat completion: `{\"model\", \"messages\": [{\"role\", \"content\"}, …]}`";
        let outline = self
            .reader
            .outline(Dialect::Chat, &logged.body)
            .map_err(|error| logged.line.wrong(error.to_string(), hint))?;
        let (mut digest, mut digests) = (Digest::default(), Vec::new());
        for (span, fingerprint) in outline.messages.iter().zip(&outline.fingerprints) {
            let canonical = match self.known.get(fingerprint) {
                Some(canonical) => *canonical,
                None => {
                    let facts = outline.dialect.read_facts(span.of(&logged.body));
                    let facts = facts.map_err(|error| logged.line.wrong(error.to_string(), hint))?;
                    let canonical = (!facts.role.is_instruction()).then_some(facts.canonical);
                    self.known.insert(*fingerprint, canonical);
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
