//! How large the blocks of a request were and are: for the log, and for the record of its turn.

use crate::assess::Assessment;
use crate::look::Look;
use crate::summary_message::before_blocks;
use tidegate_config::{Context, Unit};
use tidegate_engine::Tokens;
use tidegate_store::{BlockSizes, Recalled};
use tidegate_tokens::Model;
use tidegate_wire::Unit::Words;
use tracing::debug;

/// Nothing where neither the history nor the whole has a limit.
pub(crate) fn block_sizes(
    recalled: &Recalled,
    context: &Context,
    model: &Model,
    assessment: &Assessment,
) -> Option<BlockSizes> {
    let plan = &assessment.decision.plan;
    let figures = plan.blocks?;
    let look = Look::of(context, model, recalled.pinned.as_deref());
    let folded = plan.folded.as_ref();
    let used = folded.and_then(|folded| recalled.folds.iter().find(|fold| fold.covers == folded.covers));
    let (summary_before, removed_lines) = used.map_or((0, 0), |fold| before_blocks(fold, &look));
    let (memory_after, summary_after) = match &assessment.trimmed {
        None => (figures.memory, figures.summary),
        Some((summary, pinned)) => (
            pinned.as_ref().map_or(Tokens::ZERO, |pinned| pinned.size),
            summary.as_ref().map_or(Tokens::ZERO, |summary| summary.fold.size),
        ),
    };
    let sizes = BlockSizes {
        memory_before: look.pinned.map_or(0, |text| look.size(text).0),
        memory_after: memory_after.0,
        summary_before,
        summary_after: summary_after.0,
        history_before: figures.history_before.0,
        history_after: figures.history.0,
        removed_lines,
        fell_back_to_words: context.unit == Unit::Tokens && look.unit == Words,
    };
    debug!(
        memory_before = sizes.memory_before,
        memory_after = sizes.memory_after,
        summary_before = sizes.summary_before,
        summary_after = sizes.summary_after,
        history_before = sizes.history_before,
        history_after = sizes.history_after,
        removed_lines = sizes.removed_lines,
        fell_back_to_words = sizes.fell_back_to_words,
        "the blocks of a request"
    );
    Some(sizes)
}
