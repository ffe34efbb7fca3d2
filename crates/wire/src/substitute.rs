//! What can stand for an observation: placeholders that name what is in it, and excerpts of its long texts.
//!
//! Both depend on nothing but the messages up to the observation, so they are found by its digest and stay the same for as long as
//! the conversation does.

mod excerpt;
mod identifiers;

pub use identifiers::identifiers;

use crate::cursor::Value;
use crate::text::text;
use crate::{Content, MAX_DEPTH, MessageView, ParsedMessage, Part, Placeholder, Span};
use excerpt::{Source, excerpt};
use quick_cache::Weighter;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use tidegate_engine::{Digest, Reference, Tokens};
use tidegate_tokens::{Encoding, count};

/// How observations are shortened, where it takes more than one placeholder for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shortening<'a> {
    pub placeholder: &'a str,
    /// The most identifiers that a placeholder names; zero for none.
    pub hint: usize,
    /// Whether placeholders and excerpts name the reference of their message.
    pub names_reference: bool,
    pub trim: Option<TrimLimits>,
}

/// Which results become excerpts, and how long those are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrimLimits {
    /// Shorter results stay whole.
    pub min_tokens: Tokens,
    pub keep_tokens: Tokens,
}

/// What can stand for one observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitutes {
    /// One for each of the values that a placeholder can replace.
    pub placeholders: Box<[Placeholder]>,
    /// The cost of all placeholders.
    pub masked: Tokens,
    /// One for each text in those values; `None` for a text that stays. Empty if the observation cannot be trimmed.
    pub excerpts: Box<[Option<Placeholder>]>,
    /// What the excerpts save.
    pub saved: Tokens,
}

/// A text in a value that a placeholder can replace, counted from the message's first byte. Both are JSON strings or parts of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSpan {
    /// The index of the value among the message's maskable ones.
    pub result: usize,
    pub span: Span,
}

/// A placeholder names no more identifiers than fit into this share of what it replaces: an old result is asked for rarely, and every
/// request pays for its placeholder.
const MAX_HINT: f64 = 0.25;

impl Substitutes {
    /// Makes the substitutes of an observation. `seen` has the identifiers of all messages before it.
    pub(crate) fn new(
        raw: &[u8],
        parsed: &ParsedMessage,
        digest: Digest,
        seen: &HashSet<u64>,
        shortening: &Shortening<'_>,
        encoding: Encoding,
    ) -> Substitutes {
        let reference = shortening.names_reference.then(|| Reference::of(digest).to_string());
        let texts: Vec<(usize, Cow<'_, str>)> = parsed
            .texts
            .iter()
            .map(|found| (found.result, text(found.span.of(raw)).unwrap_or_default()))
            .collect();
        let new = new_identifiers(&texts, seen, shortening);
        let writer =
            Writer { shortening, encoding, reference: reference.as_deref(), texts: &texts, new: &new };
        let results = parsed.facts.maskable.len();
        let (excerpts, saved) = writer.excerpts(parsed, results);
        let content = parsed.measure.content;
        let mut placeholders = writer.placeholders(results, shortening.hint);
        // A placeholder takes less room than an excerpt. If its hints are what makes it longer, it goes without.
        if saved > Tokens::ZERO && placeholders.1 >= content.saturating_sub(saved) {
            placeholders = writer.placeholders(results, 0);
        }
        let (placeholders, masked) = placeholders;
        Substitutes { placeholders, masked, excerpts, saved }
    }

    /// The texts of the excerpts, each with the place that it goes to.
    #[must_use]
    pub fn excerpts_in(&self, message: &ParsedMessage) -> Vec<(Span, Placeholder)> {
        let pairs = message.texts.iter().zip(&self.excerpts);
        pairs.filter_map(|(text, excerpt)| Some((text.span, excerpt.clone()?))).collect()
    }

    /// The placeholders, each with the place that it goes to.
    #[must_use]
    pub fn placeholders_in(&self, message: &ParsedMessage) -> Vec<(Span, Placeholder)> {
        message.facts.maskable.iter().copied().zip(self.placeholders.iter().cloned()).collect()
    }

    /// Whether they were made for a message that holds as many texts.
    pub(crate) fn are_of(&self, message: &ParsedMessage) -> bool {
        self.placeholders.len() == message.facts.maskable.len()
            && (self.excerpts.is_empty() || self.excerpts.len() == message.texts.len())
    }
}

struct Writer<'a> {
    shortening: &'a Shortening<'a>,
    encoding: Encoding,
    reference: Option<&'a str>,
    /// The texts of the observation, each with the index of its result.
    texts: &'a [(usize, Cow<'a, str>)],
    /// The identifiers of each text that are in no earlier one.
    new: &'a [Vec<&'a str>],
}

impl Writer<'_> {
    fn excerpts(&self, parsed: &ParsedMessage, results: usize) -> (Box<[Option<Placeholder>]>, Tokens) {
        let Some(trim) = self.shortening.trim else { return (Box::default(), Tokens::ZERO) };
        if parsed.measure.content < trim.min_tokens {
            return (Box::default(), Tokens::ZERO);
        }
        // A lone string has been counted already.
        let tokens: Vec<Tokens> = match self.texts {
            [_] if parsed.measure.estimated == Tokens::ZERO => vec![parsed.measure.content],
            texts => texts.iter().map(|(_, text)| count(self.encoding, text)).collect(),
        };
        let mut of_result = vec![Tokens::ZERO; results];
        for ((result, _), tokens) in self.texts.iter().zip(&tokens) {
            of_result[*result] += *tokens;
        }
        let mut saved = Tokens::ZERO;
        let each = self.texts.iter().zip(&tokens).zip(self.new).map(|(((result, text), &tokens), new)| {
            let whole = of_result[*result];
            if whole < trim.min_tokens {
                return None;
            }
            let keep = Tokens(trim.keep_tokens.0 * tokens.0 / whole.0.max(1));
            let (identifiers, reference, encoding) = (new.as_slice(), self.reference, self.encoding);
            let (excerpt, cost) = excerpt(&Source { text, tokens, identifiers, reference, encoding }, keep)?;
            saved += tokens.saturating_sub(cost);
            Some(Placeholder::new(&excerpt))
        });
        let excerpts: Box<[Option<Placeholder>]> = each.collect();
        if saved == Tokens::ZERO { (Box::default(), saved) } else { (excerpts, saved) }
    }

    fn placeholders(&self, results: usize, hint: usize) -> (Box<[Placeholder]>, Tokens) {
        let mut masked = Tokens::ZERO;
        let each = (0..results).map(|result| {
            let text = self.placeholder(result, hint);
            masked += count(self.encoding, &text);
            Placeholder::new(&text)
        });
        (each.collect(), masked)
    }

    fn placeholder(&self, result: usize, hint: usize) -> String {
        let mut placeholder = self.shortening.placeholder.to_owned();
        let of_result = || self.texts.iter().zip(self.new).filter(|((of, _), _)| *of == result);
        let mut room =
            (of_result().map(|((_, text), _)| text.len()).sum::<usize>() as f64 * MAX_HINT) as usize;
        let mut named: Vec<&str> = Vec::new();
        for identifier in of_result().flat_map(|(_, new)| new).take(hint) {
            let Some(rest) = room.checked_sub(identifier.len() + 2) else { break };
            room = rest;
            named.push(identifier);
        }
        let named = (!named.is_empty()).then(|| format!("it named {}", named.join(", ")));
        let reference = self.reference.map(|reference| format!("ref {reference}"));
        let extras: Vec<String> = named.into_iter().chain(reference).collect();
        if !extras.is_empty() {
            placeholder.push_str(&format!(" [{}]", extras.join("; ")));
        }
        placeholder
    }
}

/// The identifiers of each text that are in no message before it, and in no text before it.
fn new_identifiers<'a>(
    texts: &'a [(usize, Cow<'a, str>)],
    seen: &HashSet<u64>,
    shortening: &Shortening<'_>,
) -> Vec<Vec<&'a str>> {
    if shortening.hint == 0 && shortening.trim.is_none() {
        return vec![Vec::new(); texts.len()];
    }
    let mut own = HashSet::new();
    let mut is_new = |identifier: &&str| {
        let hash = identifiers::hash(identifier);
        !seen.contains(&hash) && own.insert(hash)
    };
    texts.iter().map(|(_, text)| identifiers(text).filter(&mut is_new).collect()).collect()
}

/// The hashes of the identifiers in a message: in what it says, and in the calls that it makes.
pub(crate) fn identifiers_of(view: &MessageView<'_>) -> Arc<[u64]> {
    identifiers::hashes(message_texts(view).iter().map(|text| &**text)).into()
}

/// Returns the texts of a message: its contents, and the names and arguments of its calls.
///
/// Only what is part of the digest counts. What a client may send at one turn and not at the next, such as reasoning, must not
/// change what an excerpt says.
#[must_use]
pub fn message_texts<'a>(view: &'a MessageView<'_>) -> Vec<Cow<'a, str>> {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    for content in view.contents() {
        match content {
            Content::Text(text) => texts.push(Cow::Borrowed(text)),
            Content::Parts(parts) => texts.extend(parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(Cow::Borrowed(&**text)),
                _ => None,
            })),
            Content::Absent | Content::Null | Content::Unexpected(_) => {}
        }
    }
    for call in view.calls() {
        texts.push(Cow::Borrowed(&*call.name));
        match serde_json::from_str(&call.arguments) {
            // The same arguments may be spelled with other escapes at the next turn.
            Ok(arguments) => strings(&arguments, &mut texts),
            Err(_) => texts.push(Cow::Borrowed(&*call.arguments)),
        }
    }
    texts
}

/// Collects the keys, strings and numbers of a JSON value.
fn strings<'a>(value: &serde_json::Value, texts: &mut Vec<Cow<'a, str>>) {
    match value {
        serde_json::Value::String(text) => texts.push(text.clone().into()),
        serde_json::Value::Number(number) => texts.push(number.to_string().into()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        serde_json::Value::Object(members) => members.iter().for_each(|(key, value)| {
            texts.push(key.clone().into());
            strings(value, texts);
        }),
        serde_json::Value::Null | serde_json::Value::Bool(_) => {}
    }
}

/// Finds the texts in the values that a placeholder can replace: a string, or the texts of a list of parts.
pub(crate) fn text_spans(raw: &[u8], maskable: &[Span]) -> SmallVec<[TextSpan; 1]> {
    let mut texts = SmallVec::new();
    for (result, place) in maskable.iter().enumerate() {
        match place.of(raw).first() {
            Some(b'"') => texts.push(TextSpan { result, span: *place }),
            Some(b'[') => {
                let start = place.range().start;
                let found = part_texts(&raw[..place.range().end], start);
                texts.extend(found.into_iter().map(|span| TextSpan { result, span }));
            }
            _ => {}
        }
    }
    texts
}

/// The texts of the parts of a list that has been read before.
fn part_texts(bytes: &[u8], start: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    // The list was valid when its message was read, so this does not fail.
    let _ = Value::at(bytes, start, MAX_DEPTH).elements(|part| {
        let (mut is_text, mut text) = (false, None);
        part.members_of_object(|key, value| {
            match key {
                "type" => {
                    is_text = matches!(value.text()?.as_deref(), Some("text" | "input_text" | "output_text"))
                }
                "text" => text = (value.first() == Some(b'"')).then(|| value.span()),
                _ => {}
            }
            Ok(())
        })?;
        spans.extend(text.filter(|_| is_text));
        Ok(())
    });
    spans
}

#[derive(Clone, Debug)]
pub(crate) struct SubstitutesWeight;

impl Weighter<(Digest, u64), Arc<Substitutes>> for SubstitutesWeight {
    fn weight(&self, _: &(Digest, u64), substitutes: &Arc<Substitutes>) -> u64 {
        let excerpts = substitutes.excerpts.iter().flatten();
        let texts: usize = substitutes.placeholders.iter().chain(excerpts).map(Placeholder::len).sum();
        (160 + 40 * substitutes.placeholders.len() + texts) as u64
    }
}

#[derive(Clone, Debug)]
pub(crate) struct IdentifiersWeight;

impl<K> Weighter<K, Arc<[u64]>> for IdentifiersWeight {
    fn weight(&self, _: &K, identifiers: &Arc<[u64]>) -> u64 {
        96 + size_of_val(&**identifiers) as u64
    }
}
