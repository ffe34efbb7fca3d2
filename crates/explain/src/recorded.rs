//! A turn that has been: what was recorded of its plan, put back together with its messages.

use crate::case::Tense;
use crate::{Case, Failure, Request};
use std::sync::Arc;
use tidegate_context::{Assessment, ConversationState, Rule, TurnRecord};
use tidegate_engine::{Budget, Cause, Decision, Folded, Plan, Tokens, Verdict};
use tidegate_wire::Reader;

/// What is known of a turn beside its messages.
#[derive(Clone, Debug)]
pub struct Past<'a> {
    pub turn: &'a TurnRecord,
    /// The summaries of the conversation, and what is pinned to it now.
    pub state: ConversationState,
}

impl<'a> Case<'a> {
    /// What happened to a request. Its plan is the recorded one; only the placeholder, the reasons and the tokens of single messages
    /// come from the settings and the tables as they are now.
    pub fn recorded(reader: &Reader, request: Request<'a>, past: Past<'_>) -> Result<Case<'a>, Failure> {
        let Past { turn, state } = past;
        let input = request.input();
        let covers = turn.covers.parse().ok();
        let state = state.as_recorded(&input, covers, Tokens(turn.memory_tokens), turn.blocks.as_ref());
        let assessment = input.assess(&state, reader, Rule::Decide)?;
        let plan = plan(turn, &assessment);
        let assessment = assessment.with_plan(plan);
        let pieces = assessment.pieces(&input, &state)?;
        Ok(Case::new(request, assessment, Arc::new(state), None, pieces, Tense::Has))
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
