//! The fold pass: which old messages a summary stands for, and when there should be a new one.

use crate::prune::Spared;
use crate::toll::Toll;
use crate::trigger::{Since, fires, level};
use crate::turns::{kept_from, request_at, unresolved_from};
use crate::{Budget, Cause, Digest, FoldPolicy, Memory, Message, Policy, Strategy, Tokens};
use std::ops::Range;

/// A summary that was made of the beginning of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    /// The digest of the conversation up to the last message that it covers.
    pub covers: Digest,
    /// What the message costs that holds it, and how long its text is in the unit that limits of blocks are given in.
    pub tokens: Tokens,
    pub size: Tokens,
    /// Whether the last thing the user said before its end stays beside it, because it was the last of all when the summary
    /// was made.
    pub keeps_request: bool,
    /// How many messages the conversation had when it was made, instructions not counted. Turns are counted from there.
    pub seen: usize,
    /// Messages that it covers and that stay beside it all the same, each by how many come before it, instructions not
    /// counted. In order.
    pub kept: Vec<usize>,
}

/// A summary as it stands in one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    pub covers: Digest,
    /// The messages that it stands for end here. Those of them that are not in `removed` stay beside it.
    pub upto: usize,
    /// The messages that go, in order.
    pub removed: Vec<usize>,
    pub tokens: Tokens,
    pub size: Tokens,
    /// The conversation went on behind this message after the summary was made.
    pub made_at: usize,
}

/// What would be better to summarize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldJob {
    /// The messages that the new summary takes in, beside what `previous` covers.
    pub messages: Range<usize>,
    /// The digest of the conversation up to its last message.
    pub covers: Digest,
    /// The summary that it rewrites.
    pub previous: Option<Digest>,
    pub keeps_request: bool,
    /// What the messages cost that go for it, as they would be sent. A summary that costs as much is of no use.
    pub worth: Tokens,
    /// How many messages the conversation has, instructions not counted.
    pub seen: usize,
    pub cause: Cause,
    pub urgency: Urgency,
    /// Where the messages begin that go only as far as they have to; none if all of them go.
    pub spared: Option<Spared>,
    /// Folding alone takes the messages before this one. What goes besides is pruned.
    pub edge: usize,
}

/// Whether a request should wait for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It goes out as it is; the next one will be shorter.
    Later,
    /// It hardly fits, or not at all.
    Now,
}

/// The summary that reaches furthest and may stand in this request. One that would make it longer may not, unless the history
/// has a limit.
pub(crate) fn folded(messages: &[Message], memory: &Memory, policy: &Policy) -> Option<Folded> {
    let usable = memory.folds().iter().filter_map(|fold| place(messages, fold, policy));
    usable.max_by_key(|folded| folded.upto)
}

/// The summary that an earlier request of the same messages had.
pub(crate) fn folded_as_before(
    messages: &[Message],
    memory: &Memory,
    policy: &Policy,
    covers: Option<Digest>,
) -> Option<Folded> {
    let fold = memory.folds().iter().find(|fold| Some(fold.covers) == covers)?;
    place(messages, fold, policy)
}

fn place(messages: &[Message], fold: &Fold, policy: &Policy) -> Option<Folded> {
    let last = messages
        .iter()
        .rposition(|message| !message.role.is_instruction() && message.digest == fold.covers)?;
    let upto = last + 1;
    // A client that has taken back its last messages may have taken back what the summary was made for.
    if upto > unresolved_from(messages) || messages.get(upto).is_some_and(|message| message.joined) {
        return None;
    }
    let mut removed = removed(messages, upto, fold.keeps_request, policy.fold.pins_task);
    if !fold.kept.is_empty() {
        let kept = places(messages, &fold.kept);
        removed.retain(|index| kept.binary_search(index).is_err());
    }
    let covered = worth(messages, &removed, policy.strategy);
    let made_at = behind(messages, fold.seen).max(upto);
    // A history with a limit of its own is cut to it also where that saves nothing.
    (fold.tokens < covered || policy.blocks.is_bounded()).then_some(Folded {
        covers: fold.covers,
        upto,
        removed,
        tokens: fold.tokens,
        size: fold.size,
        made_at,
    })
}

/// What messages cost that a summary would stand for. Where they could be masked instead, that is what it has to be better than.
fn worth(messages: &[Message], removed: &[usize], strategy: Strategy) -> Tokens {
    let masks = strategy == Strategy::Hybrid;
    let cost = |message: &Message| {
        if masks { message.tokens.saturating_sub(message.saving()) } else { message.tokens }
    };
    removed.iter().map(|&index| cost(&messages[index])).sum()
}

/// The index behind so many messages that are no instructions.
fn behind(messages: &[Message], seen: usize) -> usize {
    let talk = messages.iter().enumerate().filter(|(_, message)| !message.role.is_instruction());
    seen.checked_sub(1)
        .and_then(|last| talk.map(|(index, _)| index).nth(last))
        .map_or(messages.len().min(seen), |at| at + 1)
}

/// The indexes of the messages that have so many before them, instructions not counted.
fn places(messages: &[Message], counts: &[usize]) -> Vec<usize> {
    let talk = messages.iter().enumerate().filter(|(_, message)| !message.role.is_instruction());
    let talk = talk.map(|(index, _)| index).enumerate();
    talk.filter(|(count, _)| counts.binary_search(count).is_ok()).map(|(_, index)| index).collect()
}

/// The messages before `upto` that a summary stands for. Instructions stay; so does what the user last asked for, where nothing
/// came after it.
fn removed(messages: &[Message], upto: usize, keeps_request: bool, pins_task: bool) -> Vec<usize> {
    let is_last = !messages[upto..].iter().any(Message::is_user_turn);
    let request = (keeps_request || is_last).then(|| request_at(&messages[..upto])).flatten();
    let task = pins_task.then(|| messages.iter().position(Message::is_user_turn)).flatten();
    let goes = |index: &usize| {
        !messages[*index].role.is_instruction() && Some(*index) != request && Some(*index) != task
    };
    (0..upto).filter(goes).collect()
}

/// What a request looks like before anything more is folded.
pub(crate) struct Outlook<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) folded: Option<&'a Folded>,
    /// What it uses as planned so far.
    pub(crate) after: Tokens,
    pub(crate) budget: &'a Budget,
    pub(crate) toll: &'a Toll,
}

impl Outlook<'_> {
    /// The first message that no summary stands for.
    pub(crate) fn from(&self) -> usize {
        self.folded.map_or(0, |folded| folded.upto)
    }
}

/// What should be folded next because the history is over its limit. This comes before everything else, because the limit says exactly
/// how much stays.
pub(crate) fn wanted_by_blocks(outlook: &Outlook<'_>, memory: &Memory, policy: &Policy) -> Option<FoldJob> {
    let edge = policy.blocks.edge(outlook.messages, outlook.folded, outlook.from())?;
    job(outlook, memory, policy, edge..edge, None, (Cause::Blocks, Urgency::Now))
}

/// What should be folded next otherwise, if anything should and anything can.
pub(crate) fn wanted(outlook: &Outlook<'_>, memory: &Memory, policy: &Policy) -> Option<FoldJob> {
    let Outlook { messages, folded, after, budget, .. } = *outlook;
    let from = outlook.from();
    let over = after > budget.input;
    let made_at = folded.map_or(0, |folded| folded.made_at);
    let since = Since { summarized: &messages[from..], made: &messages[made_at..] };
    let pruned = fires(&policy.fold.prune_when, &since, after, budget);
    let (cause, urgency) = match fires(&policy.fold.when, &since, after, budget) {
        _ if over || pruned.is_some() => (if over { Cause::Budget } else { Cause::Prune }, Urgency::Now),
        Some(cause) => (cause, Urgency::Later),
        None => return None,
    };
    if urgency == Urgency::Later && !outlook.toll.is_paid {
        return None;
    }
    let edge = legal(messages, kept_from(messages, policy.fold.keep));
    let mut upto = edge;
    if urgency == Urgency::Now {
        upto = upto.max(legal(messages, kept_from(messages, policy.fold.prune_keep)));
    }
    if over && (upto <= from || rest(outlook, upto) > budget.input) {
        // Rather than refusing, everything but the unresolved end; and at once, because a request is summarized once.
        upto = legal(messages, unresolved_from(messages));
    }
    let spared = (edge.max(from) < upto).then(|| spared(outlook, edge.max(from), &policy.fold)).flatten();
    if spared.as_ref().is_some_and(|spared| edge > from && spared.is_needless(&policy.fold)) {
        return job(outlook, memory, policy, edge..edge, None, (cause, urgency));
    }
    job(outlook, memory, policy, edge..upto, spared, (cause, urgency))
}

/// What has to go of the messages that only pruning takes, besides all before `edge`; none if the hard budget is all there is to
/// keep to.
fn spared(outlook: &Outlook<'_>, edge: usize, policy: &FoldPolicy) -> Option<Spared> {
    let mark = level(&policy.prune_when, outlook.budget)?;
    // Down to where folding begins: a request that is only just short of the mark would be pruned again at the next turn.
    let goal = level(&policy.when, outlook.budget).map_or(mark, |fold| mark.min(fold));
    let most = outlook.budget.input;
    Some(Spared { from: edge, rest: rest(outlook, edge), mark, goal: Tokens(goal.0.saturating_sub(1)), most })
}

/// What the request uses if everything before `upto` goes, the summary not counted.
fn rest(outlook: &Outlook<'_>, upto: usize) -> Tokens {
    let before = outlook.messages.get(outlook.from()..upto).unwrap_or_default();
    let goes: Tokens =
        before.iter().filter(|message| !message.role.is_instruction()).map(|message| message.tokens).sum();
    let summary = outlook.folded.map_or(Tokens::ZERO, |folded| folded.tokens);
    outlook.after.saturating_sub(goes).saturating_sub(summary)
}

/// The summary of everything before the end of this range, of which folding alone takes what is before its start.
fn job(
    outlook: &Outlook<'_>,
    memory: &Memory,
    policy: &Policy,
    Range { start: edge, end: upto }: Range<usize>,
    spared: Option<Spared>,
    (cause, urgency): (Cause, Urgency),
) -> Option<FoldJob> {
    let Outlook { messages, folded, .. } = *outlook;
    let from = outlook.from();
    let last = (from..upto).rev().find(|&index| !messages[index].role.is_instruction())?;
    let keeps_request = !messages[upto..].iter().any(Message::is_user_turn);
    let before = folded.map_or(0, |folded| folded.removed.len());
    // Nothing but what stays anyway would be folded.
    let removed = removed(messages, upto, keeps_request, policy.fold.pins_task);
    if removed.len() <= before {
        return None;
    }
    // There is a summary of just that, and it is not worth its place: another would not be either.
    let covers = messages[last].digest;
    if memory.folds().iter().any(|fold| fold.covers == covers) {
        return None;
    }
    Some(FoldJob {
        messages: from..last + 1,
        covers,
        previous: folded.map(|folded| folded.covers),
        keeps_request,
        worth: worth(messages, &removed, policy.strategy),
        seen: messages.iter().filter(|message| !message.role.is_instruction()).count(),
        cause,
        urgency,
        spared,
        edge: edge.max(from),
    })
}

/// The last place before or at `at` where a conversation can be cut: no call is parted from its results.
pub(crate) fn legal(messages: &[Message], at: usize) -> usize {
    let mut at = at.min(unresolved_from(messages));
    while at > 0 && messages[at].joined {
        at -= 1;
    }
    at
}
