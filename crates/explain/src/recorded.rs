//! A turn that has been: what was recorded of its plan, put back together with its messages.

use crate::case::Tense;
use crate::{Case, Failure, Request};
use tidegate_engine::{Budget, Cause, Decision, Folded, Memory, Plan, Timestamp, Tokens, Verdict};
use tidegate_proxy::{Assessment, dressed_then};
use tidegate_store::{StoredFold, TurnRecord};
use tidegate_wire::Reader;

/// What is known of a turn beside its messages.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    pub turn: &'a TurnRecord,
    /// The summaries of the conversation.
    pub folds: &'a [StoredFold],
    /// What is pinned to it now.
    pub pinned: Option<&'a str>,
}

impl<'a> Case<'a> {
    /// What happened to a request: its plan is the one that was recorded, and only the words for it, the placeholder and the tokens of
    /// single messages come from the settings and the tables as they are now.
    pub fn recorded(reader: &Reader, request: Request<'a>, past: Past<'_>) -> Result<Case<'a>, Failure> {
        let Request { route, strategy, model, .. } = request;
        let Past { turn, folds, pinned } = past;
        let (mut summaries, pinned) =
            dressed_then(&route.context, strategy, model, folds, pinned, turn.blocks.as_ref());
        // Only the one that stood in it, as it stood in it.
        summaries.retain(|summary| summary.fold.covers.to_string() == turn.covers);
        // Another text may have been pinned since.
        let pinned = pinned.filter(|pinned| pinned.tokens.0 == turn.memory_tokens);
        let question = request.question(&summaries, pinned.as_ref());
        let assessment = question.assess(reader, &Memory::default(), Timestamp(0))?;
        let plan = plan(turn, &assessment);
        Case::of(request, assessment.with_plan(plan), summaries, pinned, None, Tense::Has)
    }
}

fn plan(turn: &TurnRecord, assessment: &Assessment) -> Plan {
    let Decision { plan: now, .. } = &assessment.decision;
    let most = assessment.chat.messages.len();
    let listed = |ranges: &[[usize; 2]]| -> Vec<usize> {
        ranges.iter().flat_map(|[start, end]| *start..(*end).min(most)).collect()
    };
    let folded = turn.covers.parse().ok().map(|covers| Folded {
        covers,
        upto: turn.upto.min(most),
        removed: listed(&turn.folded_messages),
        tokens: Tokens(turn.summary_tokens),
        size: Tokens::ZERO,
        made_at: 0,
    });
    Plan {
        masked: turn.masked.iter().copied().filter(|index| *index < most).collect(),
        folded,
        dropped: listed(&turn.dropped_messages),
        before: Tokens(turn.tokens_before),
        after: Tokens(turn.tokens_after),
        budget: Budget {
            window: Tokens(turn.window),
            safe: Tokens(turn.safe),
            output: Tokens(turn.output),
            overhead: Tokens(turn.overhead),
            input: Tokens(turn.budget),
        },
        verdict: if turn.overflow_rejected { Verdict::OverBudget } else { Verdict::Fits },
        cause: turn.trigger.as_deref().and_then(Cause::named),
        postponed: turn.postponed,
        edge: turn.edge,
        window: None,
        blocks: now.blocks,
    }
}
