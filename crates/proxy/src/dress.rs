//! The messages of our own that a conversation has, as a route shows them.

use crate::look::Look;
use crate::pinned_message::PinnedMessage;
use crate::summary_message::SummaryMessage;
use tidegate_config::Context;
use tidegate_engine::{Strategy, Tokens};
use tidegate_store::{BlockSizes, StoredFold};
use tidegate_tokens::Model;

/// Its summaries, where the strategy uses any, and what is pinned to it.
pub(crate) fn dressed(
    context: &Context,
    strategy: Strategy,
    model: &Model,
    folds: &[StoredFold],
    pinned: Option<&str>,
) -> (Vec<SummaryMessage>, Option<PinnedMessage>) {
    let look = Look::of(context, model, pinned);
    let pinned = look.pinned.map(|text| PinnedMessage::of(text, &look));
    let summaries = match strategy {
        Strategy::Summarization | Strategy::Hybrid => {
            folds.iter().filter_map(|fold| SummaryMessage::of(fold, &look)).collect()
        }
        Strategy::Passthrough | Strategy::Masking | Strategy::Window => Vec::new(),
    };
    (summaries, pinned)
}

/// The same as they stood in a turn whose blocks had these sizes.
#[must_use]
pub fn dressed_then(
    context: &Context,
    strategy: Strategy,
    model: &Model,
    folds: &[StoredFold],
    pinned: Option<&str>,
    blocks: Option<&BlockSizes>,
) -> (Vec<SummaryMessage>, Option<PinnedMessage>) {
    let (mut summaries, mut notes) = dressed(context, strategy, model, folds, pinned);
    let Some(blocks) = blocks else { return (summaries, notes) };
    let look = Look::of(context, model, pinned);
    let (summary_max, memory_max) = (Tokens(blocks.summary_after), Tokens(blocks.memory_after));
    for summary in summaries.iter_mut().filter(|summary| summary.fold.size > summary_max) {
        *summary = summary.within(summary_max, &look);
    }
    if let Some(whole) = notes.take_if(|notes| notes.size > memory_max) {
        notes = Some(PinnedMessage::within(&whole.text, memory_max, &look));
    }
    (summaries, notes)
}
