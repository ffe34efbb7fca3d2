//! A summary as a message of the request.

use crate::renderer::{Renderer, tokens};
use crate::{FoldState, SavedFold};
use bytes::Bytes;
use tidegate_engine::{Fold, Tokens};
use tidegate_summary::{Section, Summary, cap, render, without};

/// A summary, rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryMessage {
    pub fold: Fold,
    /// The message, a JSON object; empty if the pinned notes say everything already.
    pub json: Bytes,
    summary: Summary,
    covered: usize,
    /// Whether the summary was empty from the start, so that it only says how many messages it covers.
    is_bare: bool,
}

impl SummaryMessage {
    pub(crate) fn new(saved: &SavedFold, renderer: &Renderer<'_>) -> SummaryMessage {
        let FoldState { summary, keeps_request, kept, anchored, seen, .. } = &saved.state;
        let is_bare = summary.is_empty();
        let fold = Fold {
            covers: saved.covers,
            keeps_request: *keeps_request,
            seen: *seen,
            kept: kept.clone(),
            anchored: anchored.clone(),
            ..Fold::default()
        };
        let summary = deduplicated(summary, renderer);
        let whole = SummaryMessage { fold, json: Bytes::new(), summary, covered: saved.covered, is_bare };
        match renderer.blocks.summary_max {
            Some(max) => whole.within(max, renderer),
            None if whole.summary.is_empty() && !is_bare => whole,
            None => whole.rendered(renderer),
        }
    }

    /// As much of the summary as fits into `max`, in the unit of the limits.
    pub(crate) fn within(&self, max: Tokens, renderer: &Renderer<'_>) -> SummaryMessage {
        let summary = cap(&self.summary, self.covered, &|text| renderer.size(text) <= max);
        let capped = SummaryMessage { summary, json: Bytes::new(), ..self.clone() };
        // A summary that has lost every entry disappears. One that never had any still says how many messages it covers, if
        // there is room for that.
        let fits = || renderer.size(&render(&capped.summary, self.covered)) <= max;
        if capped.summary.is_empty() && !(self.is_bare && fits()) {
            let fold = Fold { tokens: Tokens::ZERO, size: Tokens::ZERO, ..capped.fold };
            return SummaryMessage { fold, ..capped };
        }
        capped.rendered(renderer)
    }

    /// The text of the message; `None` if it is empty.
    pub(crate) fn text(&self) -> Option<String> {
        (!self.json.is_empty()).then(|| render(&self.summary, self.covered))
    }

    fn rendered(self, renderer: &Renderer<'_>) -> SummaryMessage {
        let text = render(&self.summary, self.covered);
        let tokens = tokens(&text, renderer.role, renderer.encoding);
        let size = renderer.size_if_bounded(&text);
        let json = renderer.message(&text);
        SummaryMessage { fold: Fold { tokens, size, ..self.fold }, json, ..self }
    }
}

/// The size of a summary before anything is taken from it, and how many of its lines the pinned notes repeat.
pub(crate) fn size_before_blocks(saved: &SavedFold, renderer: &Renderer<'_>) -> (u64, usize) {
    let summary = &saved.state.summary;
    let lines = |summary: &Summary| {
        let text = summary.summary_text.lines().filter(|line| !line.trim().is_empty()).count();
        text + Section::ALL.iter().map(|section| summary.list(*section).len()).sum::<usize>()
    };
    let repeated = lines(summary) - lines(&deduplicated(summary, renderer));
    (renderer.size(&render(summary, saved.covered)).0, repeated)
}

/// The summary without the lines that repeat the pinned notes.
fn deduplicated(summary: &Summary, renderer: &Renderer<'_>) -> Summary {
    match renderer.pinned {
        Some(pinned) if renderer.blocks.dedupe => without(summary, pinned),
        Some(_) | None => summary.clone(),
    }
}
