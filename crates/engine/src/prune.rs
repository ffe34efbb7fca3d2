//! The prune pass: which of the messages that a summary covers have to go, if not all of them must.

use crate::role_order::Bridge;
use crate::turns::dialogue;
use crate::{FoldJob, FoldPolicy, Kind, Message, Role, RoleOrder, SummaryLimit, Tokens};
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
        matches!(policy.max_summary, SummaryLimit::Tokens(most) if self.rest + most < self.threshold)
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
        let signals: Vec<Signal> = units.iter().map(|unit| signal_of(&messages[unit.clone()])).collect();
        let is_anchor = |unit: &Range<usize>| unit.clone().any(|index| anchors.contains(&index));
        let mut goes = vec![false; units.len()];
        let mut used = rest + summary;
        let target = if used < threshold { used } else { target };
        let mut prune = |signal: Signal, anchored: bool, target: Tokens| {
            for at in (0..units.len()).filter(|&at| signals[at] == signal) {
                if used <= target {
                    return;
                }
                let staying: Vec<usize> = self.exchange(&signals, at).filter(|&at| !goes[at]).collect();
                if goes[at] || staying.iter().any(|&at| is_anchor(&units[at])) != anchored {
                    continue;
                }
                for at in staying {
                    goes[at] = true;
                    let unit = &messages[units[at].clone()];
                    used = used.saturating_sub(unit.iter().map(|one| one.tokens).sum());
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
        let kept = kept.flat_map(|(unit, _)| unit).filter(|&index| !messages[index].role.is_instruction());
        self.in_order(messages, kept.collect(), (rest + summary, limit))
    }

    /// Returns `kept` with what has to stay between these messages for the order of roles. If that does not fit into `limit`, the oldest
    /// do not stay either. `used` is what the request uses if the whole range stays.
    fn in_order(
        &self,
        messages: &[Message],
        mut kept: Vec<usize>,
        (used, limit): (Tokens, Tokens),
    ) -> Vec<usize> {
        if self.order == RoleOrder::Any {
            return kept;
        }
        let from = self.spared.map_or(0, |range| range.from);
        let range = || {
            dialogue(&messages[..self.messages.end]).map(|(index, _)| index).filter(|index| *index >= from)
        };
        loop {
            let goes = self.replaceable.iter().copied().filter(|index| kept.binary_search(index).is_err());
            let goes = self.order.removable(messages, goes.collect(), &[], Bridge::Beginning);
            let stays = |index: &usize| goes.binary_search(index).is_err();
            let gone: Tokens =
                range().filter(|index| !stays(index)).map(|index| messages[index].tokens).sum();
            if kept.is_empty() || used.saturating_sub(gone) <= limit {
                return range().filter(stays).collect();
            }
            let next = kept.iter().skip(1).position(|&index| !messages[index].joined);
            kept.drain(..next.map_or(kept.len(), |next| next + 1));
        }
    }

    /// The units that go with this one: for the order of roles, an answer goes together with the question.
    fn exchange(&self, signals: &[Signal], at: usize) -> Range<usize> {
        match self.order {
            RoleOrder::Strict | RoleOrder::StrictWithInstructions if signals[at] == Signal::Answer => {
                let earlier = signals[..at].iter().rposition(|signal| *signal == Signal::Answer);
                earlier.map_or(0, |earlier| earlier + 1)..at + 1
            }
            RoleOrder::Strict | RoleOrder::StrictWithInstructions | RoleOrder::Any => at..at + 1,
        }
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
pub(crate) fn units(messages: &[Message], from: usize) -> Vec<Range<usize>> {
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
