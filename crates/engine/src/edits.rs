//! The edits of one request: runs the passes in order and assembles the decision from their results.

use crate::fold::{longest_fold, same_fold};
use crate::fold_job::{Outlook, block_job, triggered_job};
use crate::fold_pace::{FoldTiming, fold_timing};
use crate::mask::{Masking, mask};
use crate::memory::{Recalled, Trail};
use crate::trim::{self, Trimming};
use crate::turns::dialogue;
use crate::window::{Windowed, window};
use crate::{
    Cause, Conversation, Decision, FoldJob, Folded, Memory, Message, Plan, Policy, Timestamp, Tokens,
    Verdict, Waypoint,
};

/// The arguments of [`decide`](fn@crate::decide).
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) conversation: &'a Conversation<'a>,
    pub(crate) memory: &'a Memory,
    pub(crate) policy: &'a Policy,
    pub(crate) now: Timestamp,
}

/// The results of the passes, except for dropped messages.
pub(crate) struct Edits {
    pub(crate) folded: Option<Folded>,
    masking: Masking,
    trimming: Trimming,
    timing: FoldTiming,
    windowed: Option<Windowed>,
    is_retry: bool,
}

impl Edits {
    /// Plans the edits of the masking and folding strategies.
    pub(crate) fn plan(inputs: &Inputs<'_>) -> Edits {
        let Inputs { conversation, memory, policy, .. } = *inputs;
        let messages = conversation.messages;
        let recalled = memory.recall(messages, conversation.cache);
        let in_use = recalled.as_ref().and_then(|recalled| recalled.waypoint.fold);
        let retried = recalled.filter(|recalled| recalled.is_retry);
        if let Some(Recalled { waypoint, .. }) = retried {
            // A retry gets what the first attempt got, if that is within every limit. It is not if the first attempt had to go
            // without a summary that exists now, or if this attempt has less room.
            let folded = same_fold(messages, memory, policy, waypoint.fold);
            let from = folded.as_ref().map_or(0, |folded| folded.upto);
            let is_over_blocks = policy.blocks.edge(messages, folded.as_ref(), from).is_some();
            let edits = Edits { is_retry: true, ..Edits::with_summary(folded, inputs) };
            if !is_over_blocks && conversation.budget.fits(edits.used(conversation, &[])) {
                return edits;
            }
        }
        let folded = longest_fold(messages, memory, policy, in_use);
        Edits { is_retry: retried.is_some(), ..Edits::with_summary(folded, inputs) }
    }

    /// Plans the edits of a first attempt that uses this summary.
    fn with_summary(folded: Option<Folded>, inputs: &Inputs<'_>) -> Edits {
        let Inputs { conversation, memory, policy, now } = *inputs;
        let folded = folded.filter(|_| policy.strategy.folds());
        let timing = fold_timing(conversation, memory, folded.as_ref(), &policy.fold, now);
        let (masking, trimming) = (Masking::NONE, Trimming::NONE);
        let mut edits = Edits { folded, masking, trimming, timing, windowed: None, is_retry: false };
        let replayed = policy.trim.map(|trim| {
            trim::replay(conversation, memory, (&trim, policy.bound), now, edits.folded.as_ref())
        });
        if let Some(replayed) = &replayed {
            edits.trimming = replayed.trimming();
        }
        if policy.strategy.masks() {
            let trimmed = edits.trimming.applied(conversation.messages);
            let conversation = Conversation { messages: &trimmed, ..*conversation };
            edits.masking =
                mask(&conversation, memory, (&policy.mask, policy.bound), now, edits.folded.as_ref());
        } else {
            edits.masking.horizon = if replayed.is_some() { edits.trimming.horizon } else { timing.horizon };
        }
        if let (Some(trim), Some(replayed)) = (&policy.trim, &replayed) {
            let changed = edits.newly_masked(conversation.messages);
            let is_masked = |index: usize| edits.is_masked(index, &conversation.messages[index]);
            edits.trimming = replayed.decide(conversation, trim, &is_masked, changed);
        }
        edits.fit(conversation, policy.bound);
        edits
    }

    /// Trims and masks as far as the policy allows if the request does not fit otherwise.
    fn fit(&mut self, conversation: &Conversation<'_>, bound: usize) {
        let fits = |edits: &Edits| conversation.budget.fits(edits.used(conversation, &[]));
        if !fits(self) && !self.trimming.is_bound(conversation.messages, bound) {
            let whole = self.used(conversation, &[]);
            let trimming = self.trimming.clone();
            self.trimming = trimming.to_the_edge();
            if self.used(conversation, &[]) == whole {
                self.trimming = trimming;
            } else {
                self.trimming.cause = Some(Cause::Budget);
            }
        }
        let Masking { frontier, edge, debt, horizon, .. } = self.masking;
        let waiting = conversation.messages.get(frontier..edge).unwrap_or_default();
        let first = waiting.iter().position(|message| message.saving() > Tokens::ZERO);
        let can_save = first.is_some_and(|first| frontier + first >= bound);
        if can_save && !fits(self) {
            let cause = Some(Cause::Budget);
            self.masking =
                Masking { frontier: edge, moved_from: frontier, cause, tally: 0.0, debt, horizon, edge };
        }
    }

    /// Plans the edits of the window strategy. Returns them with the dropped messages.
    pub(crate) fn window(inputs: &Inputs<'_>) -> (Edits, Vec<usize>) {
        let windowed = window(inputs.conversation, inputs.memory, inputs.policy);
        let dropped = windowed.dropped.clone();
        let edits = Edits {
            folded: None,
            masking: Masking::NONE,
            trimming: Trimming::NONE,
            timing: FoldTiming::FREE,
            windowed: Some(windowed),
            is_retry: false,
        };
        (edits, dropped)
    }

    /// Removes more of the messages that the summary covers, if there is a summary.
    pub(crate) fn remove_covered(&mut self, indices: Vec<usize>) {
        if let Some(folded) = &mut self.folded {
            folded.removed.extend(indices);
            folded.removed.sort_unstable();
        }
    }

    pub(crate) fn into_decision(self, inputs: &Inputs<'_>, dropped: Vec<usize>) -> Decision {
        let Inputs { conversation, policy, now, .. } = *inputs;
        let Conversation { messages, budget, .. } = *conversation;
        let after = self.used(conversation, &dropped);
        let verdict = Verdict::of(after, &budget);
        let wanted = self.wanted(inputs, verdict == Verdict::Fits);
        let is_sent = verdict != Verdict::Refused;
        let waypoint = is_sent.then(|| self.waypoint(conversation, now)).flatten();
        let stays = |index: &usize| self.keeps(*index, &dropped);
        let is_maskable = |index: &usize| messages[*index].saving() > Tokens::ZERO && stays(index);
        let is_excerpt = |index: &usize| self.is_excerpt(*index, &messages[*index]) && stays(index);
        let Masking { frontier, edge, cause, .. } = self.masking;
        let summary = self.folded.as_ref().map_or(Tokens::ZERO, |folded| folded.size);
        let window = self.windowed.as_ref().map(|windowed| windowed.figures);
        let window_cause = window.and_then(|figures| figures.cut).map(|_| Cause::Budget);
        let plan = Plan {
            masked: (0..frontier).filter(is_maskable).collect(),
            trimmed: (0..self.trimming.frontier).filter(is_excerpt).collect(),
            newly_trimmed: self.trimming.start.filter(|_| self.trimming.cause != Some(Cause::Budget)),
            postponed: (frontier.max(policy.bound)..edge).filter(is_maskable).count(),
            before: tokens_as_sent(conversation),
            after,
            budget,
            verdict,
            cause: wanted.as_ref().map(|job| job.cause).or(cause).or(self.trimming.cause).or(window_cause),
            edge,
            trim_edge: self.trimming.edge,
            bound: policy.bound,
            is_left_alone: false,
            window,
            blocks: policy.blocks.figures(messages, stays, summary),
            folded: self.folded,
            dropped,
        };
        Decision { plan, waypoint, wanted }
    }

    /// Returns the summary that is due, if any.
    fn wanted(&self, inputs: &Inputs<'_>, fits: bool) -> Option<FoldJob> {
        let Inputs { conversation, memory, policy, .. } = *inputs;
        if !policy.strategy.folds() {
            return None;
        }
        let outlook = Outlook {
            messages: conversation.messages,
            folded: self.folded.as_ref(),
            after: self.used(conversation, &[]),
            budget: &conversation.budget,
            timing: &self.timing,
        };
        block_job(&outlook, memory, policy).or_else(|| {
            // The first attempt has already asked for what a trigger wants.
            let is_settled = self.is_retry && fits;
            if is_settled { None } else { triggered_job(&outlook, memory, policy) }
        })
    }

    /// Whether a message is in the forwarded request.
    pub(crate) fn keeps(&self, index: usize, dropped: &[usize]) -> bool {
        let is_folded =
            self.folded.as_ref().is_some_and(|folded| folded.removed.binary_search(&index).is_ok());
        !is_folded && dropped.binary_search(&index).is_err()
    }

    /// The index up to which a summary covers the messages; 0 without a summary.
    pub(crate) fn folded_upto(&self) -> usize {
        self.folded.as_ref().map_or(0, |folded| folded.upto)
    }

    /// What a message costs as it would be forwarded.
    pub(crate) fn cost(&self, index: usize, message: &Message) -> Tokens {
        if self.is_masked(index, message) {
            message.masked_cost()
        } else {
            self.trimming.cost(index, message)
        }
    }

    fn is_masked(&self, index: usize, message: &Message) -> bool {
        index < self.masking.frontier && message.saving() > Tokens::ZERO
    }

    fn is_excerpt(&self, index: usize, message: &Message) -> bool {
        self.trimming.is_trimmed(index, message) && !self.is_masked(index, message)
    }

    /// The first message that is masked now and was not before, if the frontier has just moved.
    fn newly_masked(&self, messages: &[Message]) -> Option<usize> {
        let Masking { frontier, moved_from, cause, .. } = self.masking;
        cause?;
        (moved_from..frontier).find(|&index| messages[index].saving() > Tokens::ZERO)
    }

    /// The tokens of the forwarded request: the messages that stay, the summary, the marker if anything is dropped, and the
    /// fixed parts.
    pub(crate) fn used(&self, conversation: &Conversation<'_>, dropped: &[usize]) -> Tokens {
        let messages = conversation.messages.iter().enumerate();
        let staying = messages.filter(|(index, _)| self.keeps(*index, dropped));
        let staying: Tokens = staying.map(|(index, message)| self.cost(index, message)).sum();
        let summary = self.folded.as_ref().map_or(Tokens::ZERO, |folded| folded.tokens);
        let marker = if dropped.is_empty() { Tokens::ZERO } else { conversation.marker };
        staying + summary + marker + conversation.fixed + conversation.pinned
    }

    /// Returns the waypoint to remember, or `None` if there are only instructions.
    fn waypoint(&self, conversation: &Conversation<'_>, now: Timestamp) -> Option<Waypoint> {
        let messages = conversation.messages;
        Some(Waypoint {
            end: last_digest(messages)?,
            trail: Trail::of(messages),
            cache: conversation.cache,
            frontier: last_digest(&messages[..self.masking.frontier]),
            tally: self.masking.tally,
            debt: self.masking.debt,
            horizon: self.masking.horizon,
            at: now,
            fold: self.folded.as_ref().map(|folded| folded.covers),
            fold_tally: self.timing.tally,
            gap: self.windowed.as_ref().and_then(|windowed| windowed.gap),
            excerpts: Default::default(),
            trim: last_digest(&messages[..self.trimming.frontier]),
            skipped: self.trimming.skipped.clone(),
            trim_debt: self.trimming.debt,
            is_left_alone: false,
        })
    }
}

/// The tokens of the request as the client sent it.
pub(crate) fn tokens_as_sent(conversation: &Conversation<'_>) -> Tokens {
    conversation.messages.iter().map(|message| message.tokens).sum::<Tokens>() + conversation.fixed
}

pub(crate) fn last_digest(messages: &[Message]) -> Option<crate::Digest> {
    dialogue(messages).next_back().map(|(_, message)| message.digest)
}
