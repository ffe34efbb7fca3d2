use crate::chains::Chains;
use crate::measure::{Measure, Meter};
use crate::{
    Content, Dialect, ExtraKind, Fingerprint, Fingerprinter, MessageFacts, MessageView, Outline, Part,
    Unreadable, chain, split_and_fingerprint,
};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;
use tidegate_engine::{Digest, Kind, Message, Role, Tokens};
use tidegate_tokens::chat::REPLY_PRIMING;
use tidegate_tokens::{Encoding, count, tools_tokens};

/// Reads requests, and remembers what it read: clients resend their whole history with every request, so nearly every
/// message of a request has been read, checked and counted before.
///
/// What is remembered is found by the exact bytes of a message. It holds no text, and it is bounded.
#[derive(Debug)]
pub struct Reader {
    fingerprinter: Fingerprinter,
    /// Messages, by their bytes and how they were measured.
    messages: Cache<(Fingerprint, u64), Known, Weigh>,
    /// The digests of messages that conversations begin with; none for instructions.
    openings: Cache<(Fingerprint, Dialect), Option<Digest>>,
    chains: Chains,
    /// Large values of the envelope that are valid JSON.
    checked: Cache<Fingerprint, ()>,
    /// What such a value costs.
    values: Cache<(Fingerprint, u64), Tokens>,
    hasher: RandomState,
}

/// What is remembered of one message, shared with the reader's memory.
#[derive(Clone, Debug)]
pub struct Known(Arc<Remembered>);

#[derive(Debug)]
pub struct Remembered {
    pub facts: MessageFacts,
    pub measure: Measure,
    pub kind: Kind,
}

impl Deref for Known {
    type Target = Remembered;

    fn deref(&self) -> &Remembered {
        &self.0
    }
}

/// Whether a text is one of those that are meant.
pub type Test<'a> = &'a dyn Fn(&str) -> bool;

/// How the messages of a request are looked at: what they are measured by, and which of them are observations that may be
/// masked.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    pub meter: Meter,
    /// Whether a user message with this text reports the result of an action. The first element names the rule, so that
    /// what was found by one rule is not taken for another's.
    pub observes: Option<(&'a str, Test<'a>)>,
    /// Whether the results of this tool are never masked.
    pub excludes: Option<Test<'a>>,
    /// What the placeholder costs.
    pub placeholder: Tokens,
    /// What counts are multiplied by, because this model has counted that much more or less before.
    pub factor: f64,
    /// Whether anybody wants to know where a conversation can be cut.
    pub cuts: bool,
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let observes = self.observes.map(|(name, _)| name);
        f.debug_struct("Reading")
            .field("meter", &self.meter)
            .field("observes", &observes)
            .finish_non_exhaustive()
    }
}

/// How far the reader's memory goes for one request.
#[derive(Debug)]
pub struct LookedUp {
    known: Vec<Option<Known>>,
    key: u64,
    /// Bytes of messages that have to be read and counted, because they were never seen before.
    pub unseen: usize,
}

/// A request, read.
#[derive(Debug)]
pub struct Chat {
    pub known: Vec<Known>,
    /// The same messages as the engine sees them.
    pub messages: Vec<Message>,
    /// What the request uses besides its messages: tool schemas, the answer's format, reply priming.
    pub fixed: Tokens,
}

/// So that what is known can be handed to [`splice`](crate::splice).
impl Borrow<MessageFacts> for Known {
    fn borrow(&self) -> &MessageFacts {
        &self.0.facts
    }
}

/// The most bytes of remembered messages.
const MEMORY: u64 = 48 << 20;

impl Default for Reader {
    fn default() -> Reader {
        let hasher = RandomState::new();
        Reader {
            fingerprinter: Fingerprinter::new(hasher.hash_one("tidegate")),
            messages: Cache::with_weighter(16_384, MEMORY, Weigh),
            openings: Cache::new(16_384),
            chains: Chains::default(),
            checked: Cache::new(4_096),
            values: Cache::new(4_096),
            hasher,
        }
    }
}

impl Reader {
    /// Cuts a body into its messages.
    pub fn outline(&self, dialect: Dialect, body: &[u8]) -> Result<Outline, Unreadable> {
        let is_checked = |value| self.checked.get(&value).is_some();
        let outline = split_and_fingerprint(dialect, body, &self.fingerprinter, is_checked)?;
        for value in &outline.newly_checked {
            self.checked.insert(*value, ());
        }
        Ok(outline)
    }

    /// The digest of the first message that is not an instruction: what a conversation without a name is known by.
    #[must_use]
    pub fn opening(&self, body: &[u8], outline: &Outline) -> Option<Digest> {
        outline.messages.iter().zip(&outline.fingerprints).find_map(|(span, fingerprint)| {
            let key = (*fingerprint, outline.dialect);
            let opening = self.openings.get(&key).or_else(|| {
                let facts = outline.dialect.read_facts(span.of(body)).ok()?;
                let opening =
                    (!facts.role.is_instruction()).then(|| chain(Digest::default(), &facts.canonical));
                self.openings.insert(key, opening);
                Some(opening)
            });
            opening.flatten()
        })
    }

    /// What is known of the request's messages already.
    #[must_use]
    pub fn look_up(&self, outline: &Outline, reading: &Reading<'_>) -> LookedUp {
        let key = self.key(outline.dialect, reading);
        let known: Vec<Option<Known>> =
            outline.fingerprints.iter().map(|fingerprint| self.messages.get(&(*fingerprint, key))).collect();
        let unseen = outline.messages.iter().zip(&known).filter(|(_, known)| known.is_none());
        LookedUp { unseen: unseen.map(|(span, _)| span.range().len()).sum(), known, key }
    }

    /// Reads what is not known yet of the request that `outline` was made from.
    pub fn read(
        &self,
        body: &[u8],
        outline: &Outline,
        reading: &Reading<'_>,
        looked_up: LookedUp,
    ) -> Result<Chat, Unreadable> {
        let LookedUp { known, key, .. } = looked_up;
        let places = outline.messages.iter().zip(&outline.fingerprints);
        let known = known.into_iter().zip(places).map(|(known, (span, fingerprint))| {
            known.map_or_else(
                || self.remember(outline.dialect, span.of(body), (*fingerprint, key), reading),
                Ok,
            )
        });
        let known = known.collect::<Result<Vec<Known>, Unreadable>>()?;
        let digests = self.chains.digests(outline.dialect, &outline.fingerprints, &known);
        let messages = engine_messages(&known, &digests, reading);
        Ok(Chat { known, messages, fixed: scale(self.fixed(body, outline, reading, key), reading.factor) })
    }

    fn remember(
        &self,
        dialect: Dialect,
        raw: &[u8],
        key: (Fingerprint, u64),
        reading: &Reading<'_>,
    ) -> Result<Known, Unreadable> {
        // The same message twice in one request, or in two at once: the first to come has done the work.
        if let Some(known) = self.messages.get(&key) {
            return Ok(known);
        }
        let known = Known(Arc::new(remember(dialect, raw, reading)?));
        self.messages.insert(key, known.clone());
        Ok(known)
    }

    fn key(&self, dialect: Dialect, reading: &Reading<'_>) -> u64 {
        self.hasher.hash_one((dialect, reading.meter, reading.observes.map(|(name, _)| name)))
    }

    fn fixed(&self, body: &[u8], outline: &Outline, reading: &Reading<'_>, key: u64) -> Tokens {
        let encoding = reading.meter.encoding;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let extras = outline.extras.iter().map(|extra| match extra.kind {
            ExtraKind::Tools => {
                self.value(extra.span.of(body), key, |raw| tools_tokens(encoding, &text(raw)))
            }
            ExtraKind::ResponseFormat => {
                self.value(extra.span.of(body), key ^ 1, |raw| count(encoding, &text(raw)))
            }
        });
        extras.sum::<Tokens>() + REPLY_PRIMING
    }

    /// What a text costs that is asked for again and again, such as a placeholder.
    #[must_use]
    pub fn counted(&self, encoding: Encoding, text: &str) -> Tokens {
        let key = self.hasher.hash_one(encoding);
        self.value(text.as_bytes(), key, |_| count(encoding, text))
    }

    fn value(&self, raw: &[u8], key: u64, count: impl Fn(&[u8]) -> Tokens) -> Tokens {
        let key = (self.fingerprinter.of(raw), key);
        self.values.get(&key).unwrap_or_else(|| {
            let tokens = count(raw);
            self.values.insert(key, tokens);
            tokens
        })
    }
}

fn remember(dialect: Dialect, raw: &[u8], reading: &Reading<'_>) -> Result<Remembered, Unreadable> {
    let view = dialect.read_message(raw)?;
    let facts = dialect.facts(&view);
    let reports = || reading.observes.is_some_and(|(_, observes)| says(&view, observes));
    let kind = match Kind::of(facts.role) {
        Kind::Observation => Kind::Observation,
        Kind::Speech if facts.tag.is_some() => Kind::Observation,
        Kind::Speech if facts.role == Role::User && reports() => Kind::Observation,
        Kind::Speech => Kind::Speech,
    };
    Ok(Remembered { measure: reading.meter.measure(&view), facts, kind })
}

/// Whether any text of the message satisfies `test`.
fn says(view: &MessageView<'_>, test: Test<'_>) -> bool {
    match &view.content {
        Content::Text(text) => test(text),
        Content::Parts(parts) => parts.iter().any(|part| matches!(part, Part::Text(text) if test(text))),
        Content::Absent | Content::Null | Content::Unexpected(_) => false,
    }
}

fn engine_messages(known: &[Known], digests: &[Digest], reading: &Reading<'_>) -> Vec<Message> {
    let excluded = excluded(known, reading);
    let joined = if reading.cuts { joined(known) } else { Vec::new() };
    let one = |(index, (known, digest)): (usize, (&Known, &Digest))| {
        let Remembered { facts, measure, kind } = &**known;
        let is_maskable = *kind == Kind::Observation
            && matches!(facts.role, Role::User | Role::Tool | Role::Function)
            && !facts.maskable.is_empty()
            && !excluded.get(index).copied().unwrap_or(false);
        let placeholders = Tokens(reading.placeholder.0 * facts.maskable.len() as u64);
        let masked = is_maskable.then(|| measure.tokens.saturating_sub(measure.content) + placeholders);
        // Corrected part by part: rounding must not let a message that shrinks by one count stop shrinking by another, or
        // what was masked at one turn would come back at the next.
        let saving = masked.map_or(Tokens::ZERO, |masked| measure.tokens.saturating_sub(masked));
        let rest = scale(measure.tokens.saturating_sub(saving), reading.factor);
        let placeholder = |masked| if saving > Tokens::ZERO { rest } else { scale(masked, reading.factor) };
        let tokens = rest + scale(saving, reading.factor);
        Message {
            role: facts.role,
            kind: *kind,
            digest: *digest,
            tokens,
            size: measure.words.unwrap_or(tokens),
            masked: masked.map(placeholder),
            joined: joined.get(index).copied().unwrap_or(false),
        }
    };
    known.iter().zip(digests).enumerate().map(one).collect()
}

/// In front of which messages a call waits for its result, so that nothing may be cut off there.
fn joined(known: &[Known]) -> Vec<bool> {
    let mut joined = vec![false; known.len()];
    let mut calls = HashMap::new();
    for (index, known) in known.iter().enumerate() {
        for call in known.facts.answers.iter().filter_map(|id| calls.get(id)) {
            joined[call + 1..=index].fill(true);
        }
        calls.extend(known.facts.calls.iter().map(|call| (call.id, index)));
    }
    joined
}

/// Which messages are results of tools that are never masked; empty where there are no such tools.
fn excluded(known: &[Known], reading: &Reading<'_>) -> Vec<bool> {
    let Some(excludes) = reading.excludes else { return Vec::new() };
    let mut tools = HashMap::new();
    let one = |known: &Known| {
        for call in &known.facts.calls {
            tools.insert(call.id, excludes(&call.tool));
        }
        let by_call = known.facts.answers.iter().filter_map(|id| tools.get(id).copied()).reduce(|a, b| a | b);
        by_call.unwrap_or_else(|| known.facts.name.as_deref().is_some_and(excludes))
    };
    known.iter().map(one).collect()
}

fn scale(tokens: Tokens, factor: f64) -> Tokens {
    if factor == 1.0 { tokens } else { Tokens((tokens.0 as f64 * factor).ceil() as u64) }
}

#[derive(Clone, Debug)]
struct Weigh;

impl Weighter<(Fingerprint, u64), Known> for Weigh {
    fn weight(&self, _: &(Fingerprint, u64), known: &Known) -> u64 {
        let calls = known.facts.calls.iter().map(|call| size_of_val(call) + call.tool.len());
        let name = known.facts.name.as_deref().map_or(0, str::len);
        // The entry of the cache itself and what the allocator adds are about as large as the key.
        (size_of::<Remembered>() + 2 * size_of::<(Fingerprint, u64)>() + calls.sum::<usize>() + name) as u64
    }
}
