//! Which of the messages that a summary covers have to go, where not all of them must.

use crate::{FoldJob, FoldPolicy, Kind, Message, Role, Tokens};
use std::ops::Range;

/// The end of what a summary covers that goes only as far as it has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spared {
    /// Its first message. Everything before it goes.
    pub from: usize,
    /// What the request uses if everything from there on stays, the summary not counted.
    pub rest: Tokens,
    /// From how much on anything has to go.
    pub mark: Tokens,
    /// What the request should use at most then, and what it may.
    pub goal: Tokens,
    pub most: Tokens,
}

/// How little is lost with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    /// A call with its results, or the report of an action.
    Chatter,
    /// What the assistant said.
    Answer,
    /// What the user said, and what nobody knows.
    Word,
}

impl Spared {
    /// Whether nothing of it has to go, however long the summary gets.
    pub(crate) fn is_needless(&self, policy: &FoldPolicy) -> bool {
        self.rest + policy.longest_summary < self.mark
    }
}

impl FoldJob {
    /// The messages that stay beside a summary that costs so much, in order: all of them where the summary alone makes it short enough.
    /// Else the oldest go first, chatter of tools before what the assistant said, until the request is as short as it should be; never what the summary rests on (`anchors`) and never
    /// what the user said, unless the request would not fit otherwise.
    #[must_use]
    pub fn kept(&self, messages: &[Message], anchors: &[usize], summary: Tokens) -> Vec<usize> {
        let Some(Spared { from, rest, mark, goal, most }) = self.spared else { return Vec::new() };
        let units = units(&messages[..self.messages.end], from);
        let is_anchor = |unit: &Range<usize>| unit.clone().any(|index| anchors.contains(&index));
        let mut goes = vec![false; units.len()];
        let mut used = rest + summary;
        // With the summary alone it may be short enough already.
        let goal = if used < mark { used } else { goal };
        let mut take = |signal: Signal, anchored: bool, most: Tokens, used: &mut Tokens| {
            for (unit, goes) in units.iter().zip(&mut goes) {
                let fits = *used <= most;
                let is_meant = signal_of(&messages[unit.clone()]) == signal && is_anchor(unit) == anchored;
                if !fits && is_meant && !*goes {
                    *goes = true;
                    *used = used.saturating_sub(messages[unit.clone()].iter().map(|one| one.tokens).sum());
                }
            }
        };
        take(Signal::Chatter, false, goal, &mut used);
        take(Signal::Answer, false, goal, &mut used);
        for anchored in [false, true] {
            for signal in [Signal::Chatter, Signal::Answer, Signal::Word] {
                take(signal, anchored, most, &mut used);
            }
        }
        let kept = units.into_iter().zip(goes).filter(|(_, goes)| !goes);
        kept.flat_map(|(unit, _)| unit).filter(|&index| !messages[index].role.is_instruction()).collect()
    }

    /// Whether more goes than folding alone takes, where so many messages stay beside the summary.
    #[must_use]
    pub fn prunes(&self, messages: &[Message], kept: usize) -> bool {
        let beyond = messages.get(self.edge..self.messages.end).unwrap_or_default();
        beyond.iter().filter(|one| !one.role.is_instruction()).count() > kept
    }

    /// The same messages by how many come before each, instructions not counted: what stays true when instructions change.
    #[must_use]
    pub fn places(messages: &[Message], kept: &[usize]) -> Vec<usize> {
        let talk = |upto: usize| messages[..upto].iter().filter(|one| !one.role.is_instruction()).count();
        kept.iter().map(|&index| talk(index)).collect()
    }
}

/// The messages from here on in runs that can only go together: a call and its results.
fn units(messages: &[Message], from: usize) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    for (index, message) in messages.iter().enumerate().skip(from) {
        match units.last_mut() {
            Some(unit) if message.joined => unit.end = index + 1,
            _ => units.push(index..index + 1),
        }
    }
    units
}

fn signal_of(unit: &[Message]) -> Signal {
    if unit.iter().any(|message| message.kind == Kind::Observation) {
        return Signal::Chatter;
    }
    match unit {
        [message] if message.role == Role::Assistant => Signal::Answer,
        _ => Signal::Word,
    }
}
