//! Converts parsed messages into those of the engine.

use crate::{ParsedMessage, ReadOptions};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_engine::{Digest, Kind, Message, Role, Tokens};

pub(crate) fn engine_messages(
    parsed: &[Arc<ParsedMessage>],
    digests: &[Digest],
    options: &ReadOptions<'_>,
) -> Vec<Message> {
    let excluded = excluded(parsed, options);
    let joined = if options.finds_cuts { joined(parsed) } else { Vec::new() };
    let convert = |(index, (parsed, digest)): (usize, (&Arc<ParsedMessage>, &Digest))| {
        let ParsedMessage { facts, measure, kind } = &**parsed;
        let is_maskable = *kind == Kind::Observation
            && matches!(facts.role, Role::User | Role::Tool | Role::Function)
            && !facts.maskable.is_empty()
            && !excluded.get(index).copied().unwrap_or(false);
        let placeholders = Tokens(options.placeholder.0 * facts.maskable.len() as u64);
        let masked = is_maskable.then(|| measure.tokens.saturating_sub(measure.content) + placeholders);
        // Each part is scaled on its own. Scaling the sums could round a saving of one token away, and a message masked at one turn
        // would come back at the next, when the factor has changed.
        let saving = masked.map_or(Tokens::ZERO, |masked| measure.tokens.saturating_sub(masked));
        let rest = scale(measure.tokens.saturating_sub(saving), options.factor);
        let scaled_mask = |masked| if saving > Tokens::ZERO { rest } else { scale(masked, options.factor) };
        let tokens = rest + scale(saving, options.factor);
        Message {
            role: facts.role,
            kind: *kind,
            digest: *digest,
            tokens,
            size: measure.words.unwrap_or(tokens),
            masked: masked.map(scaled_mask),
            joined: joined.get(index).copied().unwrap_or(false),
        }
    };
    parsed.iter().zip(digests).enumerate().map(convert).collect()
}

/// Returns, for each message, whether a call before it is answered by it or after it. The conversation must not be cut there.
fn joined(parsed: &[Arc<ParsedMessage>]) -> Vec<bool> {
    let mut joined = vec![false; parsed.len()];
    let mut calls = HashMap::new();
    for (index, message) in parsed.iter().enumerate() {
        for call in message.facts.answers.iter().filter_map(|id| calls.get(id)) {
            joined[call + 1..=index].fill(true);
        }
        calls.extend(message.facts.calls.iter().map(|call| (call.id, index)));
    }
    joined
}

/// Returns, for each message, whether it is the result of a tool that is never masked. Empty if there is no such tool.
fn excluded(parsed: &[Arc<ParsedMessage>], options: &ReadOptions<'_>) -> Vec<bool> {
    let Some(is_excluded) = options.excluded_tools else { return Vec::new() };
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
