use crate::{Assessment, BlockSizes, ConversationState, LimitReached, PlacedExcerpt, TurnInput};
use std::collections::BTreeSet;
use tidegate_engine::{Budget, Cause, Digest, Kind, Message, Plan, Recalled, Strategy, Tokens, Verdict};
use tidegate_wire::Dialect;

/// The figures of one turn. Every report about it is written from these and from nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub dialect: Dialect,
    pub strategy: Strategy,
    /// Whether the plan was only reported, and the client's own request forwarded.
    pub observed: bool,
    /// Whether the messages are left to the provider, which was asked to manage them itself.
    pub is_native: bool,
    /// Whether the provider keeps the messages before these.
    pub continues_upstream: bool,
    pub verdict: Verdict,
    /// Messages in the request.
    pub messages: usize,
    /// Tokens of the request as the client sent it, and as planned.
    pub before: Tokens,
    pub after: Tokens,
    pub budget: Budget,
    /// Messages by what the plan does to them.
    pub masked: usize,
    /// `None` where the policy does not trim.
    pub trimmed: Option<usize>,
    pub folded: usize,
    pub dropped: usize,
    /// Messages that an edit touches for the first time in this branch, whatever the edit.
    pub newly_left_out: usize,
    /// Observations outside the window that are not masked yet, because that would not pay.
    pub postponed: usize,
    /// How many messages are not edited anew, because reasoning behind them is bound to them.
    pub bound: usize,
    /// Whether the conversation is left alone, because its provider has refused an edited request of it.
    pub is_left_alone: bool,
    pub left_out: LeftOut,
    /// Tokens of the summary and of the pinned notes in the request.
    pub summary_tokens: Tokens,
    pub notes_tokens: Tokens,
    /// How many messages that have left the request are quoted in it, and what the excerpts cost. Of these, what is new in this request.
    pub recalled: usize,
    pub recalled_tokens: Tokens,
    pub newly_recalled_tokens: Tokens,
    /// The summary that the request waited for.
    pub made: Option<MadeFold>,
    /// The limit that the conversation has reached. If the plan is only observed, the request is forwarded all the same.
    pub limit: Option<LimitReached>,
    /// Why something new was decided.
    pub trigger: Option<Cause>,
    pub blocks: Option<BlockSizes>,
    /// How many turns in a row brought nothing new, where that is worth a hint to stop.
    pub stop_hint: Option<u32>,
}

/// Tokens that the plan leaves out of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The cost of the masked observations, and how much of it masking saves.
    pub masked: Tokens,
    pub by_masking: Tokens,
    /// The cost of the trimmed observations, and how much of it trimming saves.
    pub trimmed: Tokens,
    pub by_trimming: Tokens,
    /// The cost of the messages that a summary or a marker stands for.
    pub folded: Tokens,
    pub dropped: Tokens,
}

/// A summary that a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFold {
    /// Whether it took more than folding alone would, because the request hardly fitted.
    pub has_pruned: bool,
    /// Tokens of the request if nothing had been pruned.
    pub unpruned: Option<Tokens>,
}

impl Figures {
    pub(crate) fn new(
        assessment: &Assessment,
        input: &TurnInput,
        state: &ConversationState,
        recalled: Option<&Recalled<'_>>,
        made: Option<MadeFold>,
        stop_hint: Option<u32>,
    ) -> Figures {
        let plan = &assessment.decision.plan;
        let folded = plan.folded.as_ref();
        let notes = match &assessment.trimmed {
            Some(trimmed) => trimmed.notes.as_ref(),
            None => state.notes_in(input),
        };
        let notes = notes.filter(|_| !plan.is_left_alone);
        let new = assessment.excerpts.iter().filter(|excerpt| excerpt.is_new);
        Figures {
            dialect: input.outline.dialect,
            strategy: input.strategy,
            observed: input.context.observe,
            is_native: assessment.is_native,
            continues_upstream: assessment.continues_upstream,
            verdict: plan.verdict,
            messages: assessment.chat.messages.len(),
            before: plan.before,
            after: plan.after,
            budget: plan.budget,
            masked: plan.masked.len(),
            trimmed: input.context.trim.is_some().then_some(plan.trimmed.len()),
            folded: folded.map_or(0, |folded| folded.removed.len()),
            dropped: plan.dropped.len(),
            newly_left_out: newly_left_out(plan, &assessment.chat.messages, recalled),
            postponed: plan.postponed,
            bound: plan.bound,
            is_left_alone: plan.is_left_alone,
            left_out: LeftOut::new(plan, &assessment.chat.messages),
            summary_tokens: folded.map_or(Tokens::ZERO, |folded| folded.tokens),
            notes_tokens: notes.map_or(Tokens::ZERO, |notes| notes.tokens),
            recalled: sources(&assessment.excerpts),
            recalled_tokens: assessment.excerpts.iter().map(|excerpt| excerpt.tokens).sum(),
            newly_recalled_tokens: new.map(|excerpt| excerpt.tokens).sum(),
            made,
            limit: None,
            trigger: plan.cause,
            blocks: BlockSizes::new(assessment, input, state),
            stop_hint,
        }
    }

    /// Tokens of the request as it is really forwarded.
    #[must_use]
    pub fn forwarded(&self) -> Tokens {
        if self.observed { self.before } else { self.after }
    }

    /// Whether the plan was only observed, and would have been a refusal.
    #[must_use]
    pub fn would_refuse(&self) -> bool {
        self.observed && (self.limit.is_some() || self.verdict == Verdict::Refused)
    }

    /// Tokens of the request with its summary, before anything was pruned.
    #[must_use]
    pub fn after_summary(&self) -> Tokens {
        self.made.and_then(|made| made.unpruned).unwrap_or(self.after)
    }

    #[must_use]
    pub fn has_pruned(&self) -> bool {
        self.made.is_some_and(|made| made.has_pruned)
    }
}

/// The number of messages that the plan edits or leaves out, and that the last request of the branch had in full.
fn newly_left_out(plan: &Plan, messages: &[Message], recalled: Option<&Recalled<'_>>) -> usize {
    let folded = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
    let left_out = || [&plan.masked, &plan.trimmed, folded, &plan.dropped].into_iter().flatten().copied();
    let Some(Recalled { waypoint, .. }) = recalled.filter(|_| left_out().next().is_some()) else {
        return left_out().collect::<BTreeSet<_>>().len();
    };
    let position = |digest: Digest| messages.iter().rposition(|message| message.digest == digest);
    let end = |digest: Option<Digest>| digest.and_then(position).map_or(0, |last| last + 1);
    let observations = end(waypoint.frontier).max(end(waypoint.trim));
    let folded = end(waypoint.fold);
    let gap = waypoint.gap.map_or(0..0, |gap| end(gap.behind)..end(Some(gap.last)));
    let was_left_out = |index: usize| {
        let is_observation = messages[index].kind == Kind::Observation;
        index < folded || gap.contains(&index) || (is_observation && index < observations)
    };
    left_out().filter(|index| !was_left_out(*index)).collect::<BTreeSet<_>>().len()
}

/// The number of different messages that the excerpts quote.
fn sources(excerpts: &[PlacedExcerpt]) -> usize {
    excerpts.iter().flat_map(|excerpt| &excerpt.sources).collect::<BTreeSet<_>>().len()
}

impl LeftOut {
    fn new(plan: &Plan, messages: &[Message]) -> LeftOut {
        let sum = |indexes: &[usize]| indexes.iter().map(|&index| messages[index].tokens).sum();
        LeftOut {
            masked: sum(&plan.masked),
            by_masking: plan.masked.iter().map(|&index| messages[index].saving()).sum(),
            trimmed: sum(&plan.trimmed),
            by_trimming: plan.trimmed.iter().map(|&index| messages[index].trim_saving()).sum(),
            folded: plan.folded.as_ref().map_or(Tokens::ZERO, |folded| sum(&folded.removed)),
            dropped: sum(&plan.dropped),
        }
    }
}
