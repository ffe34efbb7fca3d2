//! Rebuilds the plan of a past turn from its record.

use crate::case::CaseKind;
use crate::{Case, Failure, Request};
use std::sync::Arc;
use tidegate_context::{Assessment, ConversationState, Rule, TurnRecord};
use tidegate_engine::{Budget, Cause, ContextWindow, Decision, Folded, Plan, Tokens, Verdict};
use tidegate_wire::Reader;

/// The record of a past turn and the state of its conversation.
#[derive(Clone, Debug)]
pub struct Past<'a> {
    pub turn: &'a TurnRecord,
    /// The conversation's summaries and its current pinned notes.
    pub state: ConversationState,
}

impl<'a> Case<'a> {
    /// Explains a past turn. Its plan comes from the record; the placeholder, the reasons and the token counts of single messages
    /// come from the current settings and model table.
    pub fn recorded(reader: &Reader, request: Request<'a>, past: Past<'_>) -> Result<Case<'a>, Failure> {
        let Past { turn, state } = past;
        let input = request.input();
        let covers = turn.covers.parse().ok();
        let state = state.as_recorded(&input, covers, Tokens(turn.memory_tokens), turn.blocks.as_ref());
        let assessment = input.assess(&state, reader, Rule::Decide)?;
        let plan = plan(turn, &assessment);
        let assessment = assessment.as_recorded(plan, &turn.recalled, &input, reader);
        let pieces = assessment.pieces(&input, &state)?;
        let case = Case::new(request, assessment, &input, Arc::new(state), pieces);
        Ok(Case { kind: CaseKind::Recorded, ..case })
    }
}

fn plan(turn: &TurnRecord, assessment: &Assessment) -> Plan {
    let Decision { plan: now, .. } = &assessment.decision;
    let count = assessment.chat.messages.len();
    let listed = |ranges: &[[usize; 2]]| -> Vec<usize> {
        ranges.iter().flat_map(|[start, end]| *start..(*end).min(count)).collect()
    };
    let folded = turn.covers.parse().ok().map(|covers| Folded {
        covers,
        upto: turn.upto.min(count),
        removed: listed(&turn.folded_messages),
        anchored: Vec::new(),
        tokens: Tokens(turn.summary_tokens),
        size: Tokens::ZERO,
        made_at: 0,
    });
    Plan {
        masked: turn.masked.iter().copied().filter(|index| *index < count).collect(),
        trimmed: turn.trimmed.iter().copied().filter(|index| *index < count).collect(),
        newly_trimmed: None,
        folded,
        dropped: listed(&turn.dropped_messages),
        before: Tokens(turn.tokens_before),
        after: Tokens(turn.tokens_after),
        budget: Budget {
            window: ContextWindow::from_source(source(turn), Tokens(turn.window)),
            safe: known(turn.safe),
            output: Tokens(turn.output),
            overhead: Tokens(turn.overhead),
            input: known(turn.budget),
            refuse_above: known(turn.refuse_above),
        },
        verdict: if turn.overflow_rejected { Verdict::Refused } else { Verdict::Fits },
        cause: turn.trigger.as_deref().and_then(Cause::from_name),
        postponed: turn.postponed,
        edge: turn.edge,
        trim_edge: turn.trim_edge,
        bound: turn.bound,
        is_left_alone: turn.left_alone,
        window: None,
        blocks: now.blocks,
    }
}

/// A figure that is zero where there is none.
fn known(tokens: u64) -> Option<Tokens> {
    Some(Tokens(tokens)).filter(|tokens| *tokens > Tokens::ZERO)
}

/// Who says how large the window is. Records that do not tell were all written with a window.
fn source(turn: &TurnRecord) -> &str {
    if turn.window_source.is_empty() { "known" } else { &turn.window_source }
}
