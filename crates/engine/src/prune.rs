//! The prune pass: which of the messages that a summary covers have to go, if not all of them must.

use crate::turns::dialogue;
use crate::{FoldJob, FoldPolicy, Kind, Message, Role, Tokens};
use std::ops::Range;

/// The end of the messages that a summary covers, which is pruned only as far as necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRange {
    /// Its first message. Everything before it goes.
    pub from: usize,
    /// What the request uses if the whole range stays, not counting the summary.
    pub rest: Tokens,
    /// Prune only if the request reaches this many tokens.
    pub threshold: Tokens,
    /// If so, prune to at most this many tokens.
    pub target: Tokens,
    /// The input budget: the request must fit it even if anchors and user messages have to go.
    pub limit: Tokens,
}

/// How much information a unit carries, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    /// A tool call with its results, or an observation.
    ToolChatter,
    /// An assistant's text.
    Answer,
    /// A user message, or one of an unknown role.
    User,
}

impl PruneRange {
    /// Whether the whole range can stay even next to the longest summary.
    pub(crate) fn is_needless(&self, policy: &FoldPolicy) -> bool {
        self.rest + policy.max_summary_tokens < self.threshold
    }
}

impl FoldJob {
    /// Returns the covered messages that stay next to a summary of `summary` tokens, in order.
    ///
    /// All of the range stays if the request is below the threshold with the summary alone. Otherwise tool chatter goes first,
    /// then assistant text, the oldest first, until the target is met. User messages and the messages that the summary rests on
    /// (`anchors`) go only if the request would not fit otherwise.
    #[must_use]
    pub fn kept(&self, messages: &[Message], anchors: &[usize], summary: Tokens) -> Vec<usize> {
        let Some(PruneRange { from, rest, threshold, target, limit }) = self.spared else {
            return Vec::new();
        };
        let units = units(&messages[..self.messages.end], from);
        let is_anchor = |unit: &Range<usize>| unit.clone().any(|index| anchors.contains(&index));
        let mut goes = vec![false; units.len()];
        let mut used = rest + summary;
        let target = if used < threshold { used } else { target };
        let mut prune = |signal: Signal, anchored: bool, target: Tokens| {
            for (unit, goes) in units.iter().zip(&mut goes) {
                if used <= target {
                    return;
                }
                let matches = signal_of(&messages[unit.clone()]) == signal && is_anchor(unit) == anchored;
                if matches && !*goes {
                    *goes = true;
                    used = used.saturating_sub(messages[unit.clone()].iter().map(|one| one.tokens).sum());
                }
            }
        };
        prune(Signal::ToolChatter, false, target);
        prune(Signal::Answer, false, target);
        for anchored in [false, true] {
            for signal in [Signal::ToolChatter, Signal::Answer, Signal::User] {
                prune(signal, anchored, limit);
            }
        }
        let kept = units.into_iter().zip(goes).filter(|(_, goes)| !goes);
        kept.flat_map(|(unit, _)| unit).filter(|&index| !messages[index].role.is_instruction()).collect()
    }

    /// Whether more goes than the trigger alone would fold, if `kept` messages stay next to the summary.
    #[must_use]
    pub fn prunes(&self, messages: &[Message], kept: usize) -> bool {
        let beyond = messages.get(self.edge..self.messages.end).unwrap_or_default();
        dialogue(beyond).count() > kept
    }

    /// Converts indices into positions that do not count instructions, as [`Fold::kept`](crate::Fold::kept) has them.
    #[must_use]
    pub fn places(messages: &[Message], kept: &[usize]) -> Vec<usize> {
        kept.iter().map(|&index| dialogue(&messages[..index]).count()).collect()
    }
}

/// Groups the messages from `from` on into units that can only go together: a call with its results, or a single message.
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
        return Signal::ToolChatter;
    }
    match unit {
        [message] if message.role == Role::Assistant => Signal::Answer,
        _ => Signal::User,
    }
}
