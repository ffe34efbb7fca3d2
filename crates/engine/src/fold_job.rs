//! The fold pass: whether a new summary is due, and which messages it should cover.

use crate::binding::invalidates;
use crate::fold::{cost_without_summary, replaceable};
use crate::fold_pace::FoldTiming;
use crate::prune::PruneRange;
use crate::role_order::Bridge;
use crate::trigger::{Since, fired};
use crate::turns::{dialogue, kept_from, last_cut_before, unresolved_from};
use crate::{Budget, Cause, Digest, FoldPolicy, Folded, Memory, Message, Policy, RoleOrder, Tokens};
use std::ops::Range;

/// A request for a summary. The engine cannot make one itself, because it never sees a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldJob {
    /// The messages to summarize, in addition to what `previous` covers.
    pub messages: Range<usize>,
    /// The digest at the last of them.
    pub covers: Digest,
    /// The summary that the new one replaces.
    pub previous: Option<Digest>,
    /// Whether the last user turn stays next to the summary.
    pub keeps_request: bool,
    /// The cost of the messages that the summary replaces.
    pub worth: Tokens,
    /// The most that the summary may cost: its limit, or what the budget leaves if that is less.
    pub most: Tokens,
    pub need: Need,
    /// The number of messages in the conversation, not counting instructions.
    pub seen: usize,
    pub cause: Cause,
    pub urgency: Urgency,
    /// The end of the covered messages, which is pruned only as far as necessary; `None` if all of them go.
    pub spared: Option<PruneRange>,
    /// The trigger alone would fold the messages before this index. What goes beyond it counts as pruned.
    pub edge: usize,
    /// The messages that the summary can replace, in order.
    pub replaceable: Vec<usize>,
    /// Whether those that stay have to be in order.
    pub order: RoleOrder,
}

/// What a summary has to achieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It has to cost less than what it replaces.
    Gain,
    /// The history has a limit of its own, to which it is cut even if that saves nothing.
    Limit,
}

/// Whether a request should wait for its summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The request goes out as it is, and the summary shortens the next one.
    Later,
    /// The request does not fit, or barely does.
    Now,
}

impl FoldJob {
    /// Whether the request should wait for the summary.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.urgency == Urgency::Now
    }
}

/// A request as planned so far, before any further folding.
pub(crate) struct Outlook<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) folded: Option<&'a Folded>,
    /// The tokens that it uses.
    pub(crate) after: Tokens,
    pub(crate) budget: &'a Budget,
    pub(crate) timing: &'a FoldTiming,
}

impl Outlook<'_> {
    /// The first message that no summary covers.
    fn from(&self) -> usize {
        self.folded.map_or(0, |folded| folded.upto)
    }

    /// What the request uses if everything before `upto` goes, not counting the new summary.
    fn after_folding(&self, upto: usize) -> Tokens {
        let goes = self.messages.get(self.from()..upto).unwrap_or_default();
        let goes: Tokens = dialogue(goes).map(|(_, message)| message.tokens).sum();
        let summary = self.folded.map_or(Tokens::ZERO, |folded| folded.tokens);
        self.after.saturating_sub(goes).saturating_sub(summary)
    }
}

/// Returns the job that cuts the history to its block limit, if it is over it. Check this before [`triggered_job`]: the limit
/// says exactly how much stays.
pub(crate) fn block_job(outlook: &Outlook<'_>, memory: &Memory, policy: &Policy) -> Option<FoldJob> {
    let edge = policy.blocks.edge(outlook.messages, outlook.folded, outlook.from())?;
    job(outlook, memory, policy, edge..edge, None, (Cause::Blocks, Urgency::Now, Need::Limit))
}

/// Returns the job that the budget or a trigger asks for, if there is anything to fold.
pub(crate) fn triggered_job(outlook: &Outlook<'_>, memory: &Memory, policy: &Policy) -> Option<FoldJob> {
    let Outlook { messages, budget, .. } = *outlook;
    let reason @ (_, urgency, _) = due(outlook, &policy.fold)?;
    if urgency == Urgency::Later && !outlook.timing.pays_off {
        return None;
    }
    let from = outlook.from();
    let edge = last_cut_before(messages, kept_from(messages, policy.fold.keep));
    let mut upto = edge;
    if urgency == Urgency::Now {
        upto = upto.max(last_cut_before(messages, kept_from(messages, policy.fold.prune_keep)));
    }
    let is_over = !budget.fits(outlook.after);
    if is_over && (upto <= from || !budget.fits(outlook.after_folding(upto))) {
        // Fold everything but the unresolved tail rather than refuse. Do it now, because a request is folded only once.
        upto = last_cut_before(messages, unresolved_from(messages));
    }
    let first_prunable = edge.max(from);
    // What stays beside a summary may hold reasoning that the summary would invalidate.
    let can_spare = first_prunable < upto && policy.bound == 0;
    let spared = can_spare.then(|| prune_range(outlook, first_prunable, &policy.fold)).flatten();
    if spared.as_ref().is_some_and(|range| edge > from && range.is_needless(&policy.fold)) {
        return job(outlook, memory, policy, edge..edge, None, reason);
    }
    job(outlook, memory, policy, edge..upto, spared, reason)
}

type Reason = (Cause, Urgency, Need);

/// Returns why a summary is due, whether the request should wait for it, and what it has to achieve. The budget comes first, then
/// `prune_when`, then `when`.
fn due(outlook: &Outlook<'_>, policy: &FoldPolicy) -> Option<Reason> {
    let Outlook { messages, folded, after, budget, .. } = *outlook;
    let made_at = folded.map_or(0, |folded| folded.made_at);
    let since = Since { covered: &messages[outlook.from()..], made: &messages[made_at..] };
    let need = if since.exceeds(policy.when.messages) { Need::Limit } else { Need::Gain };
    if !budget.fits(after) {
        return Some((Cause::Budget, Urgency::Now, need));
    }
    if fired(&policy.prune_when, &since, after, budget).is_some() {
        return Some((Cause::Prune, Urgency::Now, need));
    }
    fired(&policy.when, &since, after, budget).map(|cause| (cause, Urgency::Later, need))
}

/// Returns the range from `from` on that is pruned only as far as necessary, or `None` if `prune_when` has no token threshold
/// to prune down to.
fn prune_range(outlook: &Outlook<'_>, from: usize, policy: &FoldPolicy) -> Option<PruneRange> {
    let threshold = policy.prune_when.token_threshold(outlook.budget)?;
    // Prune to below the fold threshold. A request just below the prune threshold would be pruned again at the next turn.
    let target = policy.when.token_threshold(outlook.budget).map_or(threshold, |fold| threshold.min(fold));
    Some(PruneRange {
        from,
        rest: outlook.after_folding(from),
        threshold,
        target: target.saturating_sub(Tokens(1)),
        limit: outlook.budget.input.unwrap_or(Tokens::MAX),
    })
}

/// Returns the job that folds everything before `upto`, of which the trigger alone would fold everything before `edge`.
/// Returns `None` if that would remove nothing more than the present summary does.
fn job(
    outlook: &Outlook<'_>,
    memory: &Memory,
    policy: &Policy,
    Range { start: edge, end: upto }: Range<usize>,
    spared: Option<PruneRange>,
    (cause, urgency, need): Reason,
) -> Option<FoldJob> {
    let Outlook { messages, folded, .. } = *outlook;
    let from = outlook.from();
    let last = (from..upto).rev().find(|&index| !messages[index].role.is_instruction())?;
    let keeps_request = !messages[upto..].iter().any(Message::is_user_turn);
    let replaceable = replaceable(messages, upto, keeps_request, &[], policy);
    let removed = policy.order.removable(messages, replaceable.clone(), &[], Bridge::Beginning);
    if removed.len() <= folded.map_or(0, |folded| folded.removed.len())
        || invalidates(messages, &removed, policy.bound)
    {
        return None;
    }
    let covers = messages[last].digest;
    // A summary of exactly these messages exists and was rejected as too long. Another one would be, too.
    if memory.folds().iter().any(|fold| fold.covers == covers) {
        return None;
    }
    let worth = cost_without_summary(messages, &removed, policy);
    Some(FoldJob {
        messages: from..last + 1,
        covers,
        previous: folded.map(|folded| folded.covers),
        keeps_request,
        worth,
        most: most(outlook, upto, policy),
        need,
        seen: dialogue(messages).count(),
        cause,
        urgency,
        spared,
        edge: edge.max(from),
        replaceable,
        order: policy.order,
    })
}

/// Returns the most that a summary may cost if everything before `upto` can go: what the budget leaves, if it leaves anything.
///
/// A summary that filled the budget would leave no room to bring anything back, and the next turn would be folded at once. So where room
/// is to be left, it takes at most half of what is free below the point at which the next one is due.
fn most(outlook: &Outlook<'_>, upto: usize, policy: &Policy) -> Tokens {
    let limit = policy.fold.max_summary.of(outlook.budget);
    let rest = outlook.after_folding(upto);
    let below = |most: Tokens| Some(most.saturating_sub(rest)).filter(|left| *left > Tokens::ZERO);
    if policy.fold.leaves_room
        && let Some(left) = policy.fold.when.token_threshold(outlook.budget).and_then(below)
        && left.0 / 2 >= LEAST_SHARED_ROOM.0
    {
        return limit.min(Tokens(left.0 / 2));
    }
    outlook.budget.input.and_then(below).map_or(limit, |left| left.min(limit))
}

/// Half of less room holds no summary beside its frame, so it gets all of it.
const LEAST_SHARED_ROOM: Tokens = Tokens(150);
