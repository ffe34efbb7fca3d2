use crate::digest_cache::DigestCache;
use crate::engine_messages::{engine_messages, scale};
use crate::envelope::{attribution, instruction_text, without};
use crate::prompt_head::{cache_key, unmarked};
use crate::substitute::text_spans;
use crate::substitute_cache::{SubstituteCache, SubstituteRequest};
use crate::{
    Content, Dialect, ExtraKind, Fingerprint, Fingerprinter, Measure, MessageFacts, MessageView, Meter,
    Outline, Part, Results, Shortening, Span, Substitutes, Terms, TextSpan, Unreadable,
    split_and_fingerprint, split_envelope,
};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use tidegate_engine::{CacheKey, Kind, Message, Role, Tokens};
use tidegate_tokens::chat::REPLY_PRIMING;
use tidegate_tokens::{Encoding, count, tools_tokens};

/// Reads requests and caches what it has read. Clients resend their whole history with every request, so nearly every message has been
/// read, checked and counted before.
///
/// The caches are keyed by the exact bytes of a message or the digest of a conversation, and are bounded. They hold no texts, except for
/// excerpts and placeholders.
#[derive(Debug)]
pub struct Reader {
    fingerprinter: Fingerprinter,
    /// Messages, by their bytes and a hash of how they were read.
    messages: Cache<(Fingerprint, u64), Arc<ParsedMessage>, MessageWeight>,
    /// The role and the hash of a message.
    gist: Cache<(Fingerprint, Dialect), (Role, [u8; 32])>,
    digests: DigestCache,
    substitutes: SubstituteCache,
    /// Large values of the envelope that are valid JSON.
    checked: Cache<Fingerprint, ()>,
    /// Token counts of values of the envelope and of texts of our own.
    counts: Cache<(Fingerprint, u64), Tokens>,
    hasher: RandomState,
}

/// What is cached about one message.
#[derive(Debug)]
pub struct ParsedMessage {
    pub facts: MessageFacts,
    pub measure: Measure,
    pub kind: Kind,
    /// The words of the message, if it may have to be found again.
    pub terms: Option<Terms>,
    /// The texts in the values that a placeholder can replace.
    pub texts: SmallVec<[TextSpan; 1]>,
}

impl ParsedMessage {
    /// Equal for messages that a model sees the same, whatever their JSON spelling. Members that are not part of the digest, such as
    /// reasoning, change the tokens of a message but not its key.
    #[must_use]
    pub fn segment_key(&self) -> u128 {
        let [first, ..] = self.facts.canonical.as_chunks::<16>().0 else { return 0 };
        u128::from_le_bytes(*first)
    }
}

pub type Predicate<'a> = &'a dyn Fn(&str) -> bool;

/// How the messages of a request are measured, and which of them are observations that may be masked.
#[derive(Clone, Copy)]
pub struct ReadOptions<'a> {
    pub meter: Meter,
    /// Matches the text of user messages that are observations. The name identifies the rule in cache keys, so that a result found
    /// under one rule is not used under another.
    pub user_observations: Option<(&'a str, Predicate<'a>)>,
    /// Matches the names of tools whose results are never masked.
    pub excluded_tools: Option<Predicate<'a>>,
    /// The cost of the placeholder.
    pub placeholder: Tokens,
    /// How observations are shortened otherwise; `None` if one placeholder stands for each.
    pub shortening: Option<Shortening<'a>>,
    /// Matches the names of tools whose results are never trimmed.
    pub untrimmed_tools: Option<Predicate<'a>>,
    /// The calibration factor of the model. All counts are multiplied by it.
    pub factor: f64,
    /// Whether to find out where the conversation can be cut. Only folding and windows need it.
    pub finds_cuts: bool,
    /// Whether to index the words of the messages, so that those that leave the context can be found again.
    pub indexes: bool,
}

impl std::fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = self.user_observations.map(|(name, _)| name);
        f.debug_struct("ReadOptions")
            .field("meter", &self.meter)
            .field("user_observations", &rule)
            .finish_non_exhaustive()
    }
}

/// The cached messages of one request.
#[derive(Debug)]
pub struct CacheLookup {
    messages: Vec<Option<Arc<ParsedMessage>>>,
    key: u64,
    /// The total size of the messages that are not cached and must be read and counted.
    pub uncached_bytes: usize,
}

/// A request whose messages have all been read.
#[derive(Debug)]
pub struct ParsedRequest {
    pub parsed: Vec<Arc<ParsedMessage>>,
    /// The same messages as the engine sees them.
    pub messages: Vec<Message>,
    /// What can stand for each message; empty if that is one placeholder for all.
    pub substitutes: Vec<Option<Arc<Substitutes>>>,
    /// What the provider's cache is looked up by. The same in every process.
    pub cache: CacheKey,
    /// The cost of everything besides the messages: tool schemas, response format, reply priming.
    pub fixed: Tokens,
    /// The part of it that is counted by a rule of thumb: tool schemas and the response format. Without the factor.
    pub rough: Tokens,
}

impl ParsedRequest {
    /// The indexes of the messages with a cache breakpoint.
    pub fn breakpoints(&self) -> impl Iterator<Item = usize> {
        let marked = |(index, message): (usize, &Arc<ParsedMessage>)| message.facts.breakpoint.map(|_| index);
        self.parsed.iter().enumerate().filter_map(marked)
    }

    /// The tokens of parts that are counted by a rule of thumb.
    #[must_use]
    pub fn estimated(&self) -> Tokens {
        self.parsed.iter().map(|message| message.measure.estimated).sum::<Tokens>() + self.rough
    }
}

/// Lets [`splice`](crate::splice()) take parsed messages.
impl Borrow<MessageFacts> for Arc<ParsedMessage> {
    fn borrow(&self) -> &MessageFacts {
        &self.facts
    }
}

/// The maximum size of the cached messages, in bytes.
const MESSAGE_CACHE_BYTES: u64 = 48 << 20;

impl Default for Reader {
    fn default() -> Reader {
        Reader::with_cache(Reader::CACHE_BYTES)
    }
}

impl Reader {
    /// What the caches take at most by default, but for some megabytes of entries of one size.
    pub const CACHE_BYTES: u64 = MESSAGE_CACHE_BYTES + DigestCache::BYTES + SubstituteCache::BYTES;

    /// A reader whose caches take at most this many bytes instead.
    #[must_use]
    pub fn with_cache(bytes: u64) -> Reader {
        // Every cache keeps its share.
        let share = |default: u64| default * (bytes >> 10) / (Reader::CACHE_BYTES >> 10);
        let hasher = RandomState::new();
        Reader {
            fingerprinter: Fingerprinter::new(hasher.hash_one("tidegate")),
            messages: Cache::with_weighter(16_384, share(MESSAGE_CACHE_BYTES), MessageWeight),
            gist: Cache::new(65_536),
            digests: DigestCache::new(share(DigestCache::BYTES)),
            substitutes: SubstituteCache::new(share(SubstituteCache::BYTES)),
            checked: Cache::new(4_096),
            counts: Cache::new(4_096),
            hasher,
        }
    }

    /// About how many bytes the caches take. Those that are limited by their number of entries have entries of one size.
    pub fn cache_bytes(&self) -> u64 {
        const ENTRY: u64 = 96;
        let entries = self.gist.len() + self.checked.len() + self.counts.len();
        self.messages.weight() + self.digests.bytes() + self.substitutes.bytes() + entries as u64 * ENTRY
    }

    /// Cuts a body into its messages.
    pub fn outline(&self, dialect: Dialect, body: &[u8]) -> Result<Outline, Unreadable> {
        let is_checked = |value| self.checked.get(&value).is_some();
        split_and_fingerprint(dialect, body, &self.fingerprinter, is_checked).inspect(|it| self.remember(it))
    }

    /// Cuts a body into its messages for a request that will probably be forwarded as it is. Call [`Reader::fingerprint`] if it is
    /// edited after all.
    pub fn survey(&self, dialect: Dialect, body: &[u8]) -> Result<Outline, Unreadable> {
        let is_checked = |value| self.checked.get(&value).is_some();
        split_envelope(dialect, body, &self.fingerprinter, is_checked).inspect(|it| self.remember(it))
    }

    /// Adds the fingerprints that [`Reader::survey`] has left out. The other methods need them.
    pub fn fingerprint(&self, body: &[u8], outline: &mut Outline) {
        if outline.fingerprints.len() != outline.messages.len() {
            let prints = outline.messages.iter().map(|message| self.fingerprinter.of(message.of(body)));
            outline.fingerprints = prints.collect();
        }
    }

    fn remember(&self, outline: &Outline) {
        for value in &outline.newly_checked {
            self.checked.insert(*value, ());
        }
    }

    /// The number of bytes that [`Reader::branch_points`] would have to read.
    #[must_use]
    pub fn unread_bytes(&self, outline: &Outline) -> usize {
        let messages = outline.messages.iter().zip(&outline.fingerprints);
        let unread = messages.filter(|(_, print)| self.gist.get(&(**print, outline.dialect)).is_none());
        unread.map(|(span, _)| span.len()).sum()
    }

    /// The role of each message, and the hash of what it says. `None` if one cannot be read.
    #[must_use]
    pub fn gists(&self, body: &[u8], outline: &Outline) -> Option<Vec<(Role, [u8; 32])>> {
        let messages = outline.messages.iter().zip(&outline.fingerprints);
        let gist = |(span, fingerprint): (&Span, &Fingerprint)| {
            let key = (*fingerprint, outline.dialect);
            if let Some(known) = self.gist.get(&key) {
                return Some(known);
            }
            let facts = outline.dialect.read_facts(span.of(body)).ok()?;
            self.gist.insert(key, (facts.role, facts.canonical));
            Some((facts.role, facts.canonical))
        };
        messages.map(gist).collect()
    }

    /// Looks up the request's messages in the cache.
    #[must_use]
    pub fn look_up(&self, outline: &Outline, options: &ReadOptions<'_>) -> CacheLookup {
        debug_assert_eq!(outline.fingerprints.len(), outline.messages.len(), "call `fingerprint` first");
        let key = self.key(outline.dialect, options);
        let messages: Vec<Option<Arc<ParsedMessage>>> =
            outline.fingerprints.iter().map(|fingerprint| self.messages.get(&(*fingerprint, key))).collect();
        let uncached = outline.messages.iter().zip(&messages).filter(|(_, cached)| cached.is_none());
        CacheLookup { uncached_bytes: uncached.map(|(span, _)| span.len()).sum(), messages, key }
    }

    /// Reads the messages that were not cached. `outline` is that of `body`, and `lookup` that of `outline` under these options.
    pub fn read(
        &self,
        body: &[u8],
        outline: &Outline,
        options: &ReadOptions<'_>,
        lookup: CacheLookup,
    ) -> Result<ParsedRequest, Unreadable> {
        let CacheLookup { messages, key, .. } = lookup;
        let places = outline.messages.iter().zip(&outline.fingerprints);
        let parsed = messages.into_iter().zip(places).map(|(cached, (span, fingerprint))| {
            let read = || self.read_message(outline.dialect, span.of(body), (*fingerprint, key), options);
            cached.map_or_else(read, Ok)
        });
        let parsed = parsed.collect::<Result<Vec<Arc<ParsedMessage>>, Unreadable>>()?;
        let digests = self.digests.digests(outline.dialect, &outline.fingerprints, &parsed);
        let substitutes = match &options.shortening {
            Some(shortening) => {
                let request = SubstituteRequest { body, outline, parsed: &parsed, digests: &digests };
                self.substitutes.get(&request, shortening, options.meter.encoding)
            }
            None => Vec::new(),
        };
        let messages = engine_messages(&parsed, &digests, &substitutes, options);
        let (exact, rough) = self.fixed(body, outline, options, key);
        let fixed = scale(exact + rough, options.factor);
        let cache = cache_key(body, outline, &parsed);
        Ok(ParsedRequest { parsed, messages, substitutes, cache, fixed, rough })
    }

    fn read_message(
        &self,
        dialect: Dialect,
        raw: &[u8],
        key: (Fingerprint, u64),
        options: &ReadOptions<'_>,
    ) -> Result<Arc<ParsedMessage>, Unreadable> {
        // The same message may occur twice in a request, or in two requests at once, and be cached by now.
        if let Some(cached) = self.messages.get(&key) {
            return Ok(cached);
        }
        let parsed = Arc::new(parse(dialect, raw, options)?);
        // Who has been read needs no reading to be recognised either, even if it never had to be.
        self.gist.insert((key.0, dialect), (parsed.facts.role, parsed.facts.canonical));
        self.messages.insert(key, parsed.clone());
        Ok(parsed)
    }

    fn key(&self, dialect: Dialect, options: &ReadOptions<'_>) -> u64 {
        let rule = options.user_observations.map(|(name, _)| name);
        self.hasher.hash_one((dialect, options.meter, rule, options.indexes))
    }

    /// The cost of everything besides the messages: what is counted, and what is counted by a rule of thumb.
    fn fixed(&self, body: &[u8], outline: &Outline, options: &ReadOptions<'_>, key: u64) -> (Tokens, Tokens) {
        let encoding = options.meter.encoding;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut exact, mut rough) = (REPLY_PRIMING, Tokens::ZERO);
        for extra in &outline.extras {
            let raw = &*unmarked(extra, body);
            let tokens = match extra.kind {
                ExtraKind::Tools => self.cached_count(raw, key, || tools_tokens(encoding, &text(raw))),
                ExtraKind::Instructions => {
                    let counted = |raw: &[u8]| {
                        self.cached_count(raw, key ^ 2, || count(encoding, &instruction_text(raw)))
                    };
                    match attribution(raw) {
                        // Only the small block is counted anew in every request.
                        Some(block) => {
                            let own = [b"[", block.of(raw), b"]"].concat();
                            counted(&without(raw, block)) + count(encoding, &instruction_text(&own))
                        }
                        None => counted(raw),
                    }
                }
                ExtraKind::ResponseFormat => self.cached_count(raw, key ^ 1, || count(encoding, &text(raw))),
            };
            match extra.kind {
                ExtraKind::Tools | ExtraKind::ResponseFormat => rough += tokens,
                ExtraKind::Instructions => exact += tokens,
            }
        }
        (exact, rough)
    }

    /// Counts a text that occurs in many requests, such as a placeholder, and caches the count.
    #[must_use]
    pub fn count(&self, encoding: Encoding, text: &str) -> Tokens {
        let key = self.hasher.hash_one(encoding);
        self.cached_count(text.as_bytes(), key, || count(encoding, text))
    }

    fn cached_count(&self, raw: &[u8], key: u64, count: impl FnOnce() -> Tokens) -> Tokens {
        let key = (self.fingerprinter.of(raw), key);
        self.counts.get(&key).unwrap_or_else(|| {
            let tokens = count();
            self.counts.insert(key, tokens);
            tokens
        })
    }
}

fn parse(dialect: Dialect, raw: &[u8], options: &ReadOptions<'_>) -> Result<ParsedMessage, Unreadable> {
    let view = dialect.read_message(raw)?;
    let facts = dialect.facts(&view);
    let matches_rule = || options.user_observations.is_some_and(|(_, matches)| any_text(&view, matches));
    let kind = match Kind::of(facts.role) {
        Kind::Observation => Kind::Observation,
        Kind::Speech if facts.tag.is_some() || facts.results == Results::Only => Kind::Observation,
        Kind::Speech if facts.role == Role::User && matches_rule() => Kind::Observation,
        Kind::Speech => Kind::Speech,
    };
    let terms = (options.indexes && !facts.role.is_instruction()).then(|| Terms::of(&view.text()));
    // Nothing else is ever shortened.
    let is_result = kind == Kind::Observation || facts.results == Results::BesideSpeech;
    let texts = if is_result { text_spans(raw, &facts.maskable) } else { SmallVec::new() };
    Ok(ParsedMessage { measure: options.meter.measure(&view), facts, kind, terms, texts })
}

/// Returns whether any text of the message's content matches.
fn any_text(view: &MessageView<'_>, matches: Predicate<'_>) -> bool {
    match &view.content {
        Content::Text(text) => matches(text),
        Content::Parts(parts) => parts.iter().any(|part| matches!(part, Part::Text(text) if matches(text))),
        Content::Absent | Content::Null | Content::Unexpected(_) => false,
    }
}

#[derive(Clone, Debug)]
struct MessageWeight;

impl Weighter<(Fingerprint, u64), Arc<ParsedMessage>> for MessageWeight {
    fn weight(&self, _: &(Fingerprint, u64), message: &Arc<ParsedMessage>) -> u64 {
        let facts = &message.facts;
        let calls = facts.calls.iter().map(|call| size_of_val(call) + call.tool.len());
        let name = facts.name.as_deref().map_or(0, str::len);
        // The cache entry and the allocator's overhead are each about as large as the key.
        let terms = message.terms.as_ref().map_or(0, Terms::bytes);
        (size_of::<ParsedMessage>()
            + 2 * size_of::<(Fingerprint, u64)>()
            + calls.sum::<usize>()
            + name
            + terms) as u64
    }
}
