//! Converts parsed messages into those of the engine.

use crate::{Bond, ParsedMessage, Predicate, ReadOptions, Results, Substitutes};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_engine::{Digest, Kind, Message, Role, Tokens};

pub(crate) fn engine_messages(
    parsed: &[Arc<ParsedMessage>],
    digests: &[Digest],
    substitutes: &[Option<Arc<Substitutes>>],
    options: &ReadOptions<'_>,
) -> Vec<Message> {
    let unmasked = excluded(parsed, options.excluded_tools);
    let untrimmed = excluded(parsed, options.untrimmed_tools);
    let joined = if options.finds_cuts { joined(parsed) } else { Vec::new() };
    let is_in = |flags: &[bool], index: usize| flags.get(index).copied().unwrap_or(false);
    let convert = |(index, (parsed, digest)): (usize, (&Arc<ParsedMessage>, &Digest))| {
        let ParsedMessage { facts, measure, kind, .. } = &**parsed;
        let is_result = match facts.role {
            Role::User | Role::Tool | Role::Function => {
                *kind == Kind::Observation || facts.results == Results::BesideSpeech
            }
            // Results of calls that the provider has made itself stand in the answer.
            Role::Assistant => facts.results == Results::BesideSpeech,
            Role::System | Role::Developer | Role::Other => false,
        };
        let is_result = is_result && !facts.maskable.is_empty();
        let substitutes = substitutes.get(index).and_then(Option::as_ref).filter(|_| is_result);
        let placeholders = match substitutes {
            Some(substitutes) => substitutes.masked,
            None => Tokens(options.placeholder.0 * facts.maskable.len() as u64),
        };
        let is_maskable = is_result && !is_in(&unmasked, index);
        let masked = is_maskable.then(|| measure.tokens.saturating_sub(measure.content) + placeholders);
        let saved = substitutes.map_or(Tokens::ZERO, |substitutes| substitutes.saved);
        let can_trim = saved > Tokens::ZERO && !is_in(&untrimmed, index);
        let trimmed = can_trim.then(|| measure.tokens.saturating_sub(saved));
        let scaled = Scaled::of(measure.tokens, masked, trimmed, options.factor);
        Message {
            role: facts.role,
            kind: *kind,
            digest: *digest,
            tokens: scaled.tokens,
            size: measure.words.unwrap_or(scaled.tokens),
            masked: scaled.masked,
            trimmed: scaled.trimmed,
            joined: is_in(&joined, index),
        }
    };
    parsed.iter().zip(digests).enumerate().map(convert).collect()
}

/// The costs of a message, whole and shortened, in calibrated tokens.
struct Scaled {
    tokens: Tokens,
    masked: Option<Tokens>,
    trimmed: Option<Tokens>,
}

impl Scaled {
    /// Each step between two costs is scaled on its own. Scaling the sums could round a saving of one token away, and a message masked at
    /// one turn would come back at the next, when the factor has changed.
    fn of(tokens: Tokens, masked: Option<Tokens>, trimmed: Option<Tokens>, factor: f64) -> Scaled {
        let mut steps = [masked, trimmed, Some(tokens)].map(|cost| cost.filter(|cost| *cost <= tokens));
        steps.sort();
        let (mut sum, mut below) = (Tokens::ZERO, Tokens::ZERO);
        let scaled = steps.map(|cost| {
            let cost = cost?;
            sum += scale(cost.saturating_sub(below), factor);
            below = cost;
            Some((cost, sum))
        });
        let find =
            |wanted: Tokens| scaled.iter().flatten().find(|(cost, _)| *cost == wanted).map(|(_, sum)| *sum);
        let shortened =
            |cost: Option<Tokens>| cost.map(|cost| find(cost).unwrap_or_else(|| scale(cost, factor)));
        Scaled { tokens: find(tokens).unwrap_or(sum), masked: shortened(masked), trimmed: shortened(trimmed) }
    }
}

/// Returns, for each message, whether a call before it is answered by it or after it, or whether it belongs to the message before for
/// another reason. The conversation must not be cut there.
fn joined(parsed: &[Arc<ParsedMessage>]) -> Vec<bool> {
    let mut joined = vec![false; parsed.len()];
    let mut calls = HashMap::new();
    for (index, message) in parsed.iter().enumerate() {
        for call in message.facts.answers.iter().filter_map(|id| calls.get(id)) {
            joined[call + 1..=index].fill(true);
        }
        calls.extend(message.facts.calls.iter().map(|call| (call.id, index)));
    }
    join_bonds(parsed, &mut joined);
    joined
}

fn join_bonds(parsed: &[Arc<ParsedMessage>], joined: &mut [bool]) {
    // Where the last reasoning is that what follows may rest on.
    let mut reasons = None;
    for (index, message) in parsed.iter().enumerate() {
        match (message.facts.bond, reasons) {
            (Bond::None, _) if message.facts.role == Role::User => reasons = None,
            (Bond::None, _) | (Bond::MayRestOnReasons, None) => {}
            (Bond::MayRestOnReasons, Some(at)) => joined[at + 1..=index].fill(true),
            (Bond::Reasons, _) => reasons = Some(index),
            (Bond::Opaque, _) => {
                reasons = Some(index);
                joined[index..parsed.len().min(index + 2)].fill(true);
            }
        }
    }
}

/// Returns, for each message, whether it is the result of a tool that `is_excluded` matches. Empty if there is no such tool.
fn excluded(parsed: &[Arc<ParsedMessage>], is_excluded: Option<Predicate<'_>>) -> Vec<bool> {
    let Some(is_excluded) = is_excluded else { return Vec::new() };
    let mut tools = HashMap::new();
    let one = |message: &Arc<ParsedMessage>| {
        let facts = &message.facts;
        for call in &facts.calls {
            tools.insert(call.id, is_excluded(&call.tool));
        }
        let by_call = facts.answers.iter().filter_map(|id| tools.get(id).copied()).reduce(|a, b| a | b);
        by_call.unwrap_or_else(|| facts.name.as_deref().is_some_and(is_excluded))
    };
    parsed.iter().map(one).collect()
}

pub(crate) fn scale(tokens: Tokens, factor: f64) -> Tokens {
    if factor == 1.0 { tokens } else { Tokens((tokens.0 as f64 * factor).ceil() as u64) }
}
