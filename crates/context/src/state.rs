use crate::renderer::Renderer;
use crate::{BlockSizes, PinnedMessage, SavedFold, SummaryMessage, TurnInput};
use std::sync::Arc;
use tidegate_engine::{Digest, Memory, Strategy, Tokens};
use tidegate_tokens::Model;
use tidegate_wire::Dialect;

/// What is remembered of a conversation: earlier decisions, summaries and pinned notes.
///
/// The summaries and the notes are also kept rendered, for the route and the model of the last turn.
#[derive(Clone, Debug, Default)]
pub struct ConversationState {
    pub memory: Memory,
    folds: Vec<SavedFold>,
    pinned: Option<Arc<str>>,
    summaries: Vec<SummaryMessage>,
    notes: Option<PinnedMessage>,
    rendered_for: Option<(Dialect, Arc<Model>)>,
}

impl ConversationState {
    /// `folds` are in the order in which they were made.
    #[must_use]
    pub fn new(memory: Memory, folds: Vec<SavedFold>, pinned: Option<Arc<str>>) -> ConversationState {
        ConversationState { memory, folds, pinned, ..ConversationState::default() }
    }

    #[must_use]
    pub fn folds(&self) -> &[SavedFold] {
        &self.folds
    }

    /// The stored summary of the conversation up to `covers`.
    #[must_use]
    pub fn fold(&self, covers: Digest) -> Option<&SavedFold> {
        self.folds.iter().find(|fold| fold.covers == covers)
    }

    #[must_use]
    pub fn pinned(&self) -> Option<&str> {
        self.pinned.as_deref()
    }

    /// The summaries that may stand in a request; none for a strategy that does not fold.
    #[must_use]
    pub fn summaries(&self) -> &[SummaryMessage] {
        &self.summaries
    }

    /// The summary of the conversation up to `covers`, rendered.
    #[must_use]
    pub fn summary(&self, covers: Digest) -> Option<&SummaryMessage> {
        self.summaries.iter().find(|summary| summary.fold.covers == covers)
    }

    /// The pinned notes, rendered.
    #[must_use]
    pub fn notes(&self) -> Option<&PinnedMessage> {
        self.notes.as_ref()
    }

    /// Adds a summary. The first summary stored for a prefix is immutable: another would change what is forwarded.
    pub fn add_fold(&mut self, fold: SavedFold, input: &TurnInput) {
        if self.fold(fold.covers).is_some() {
            return;
        }
        let summary = SummaryMessage::new(&fold, &self.renderer(input));
        self.summaries.push(summary);
        self.folds.push(fold);
    }

    pub(crate) fn is_rendered_for(&self, input: &TurnInput) -> bool {
        let rendered_for = self.rendered_for.as_ref();
        rendered_for.is_some_and(|(dialect, model)| {
            *dialect == input.outline.dialect && Arc::ptr_eq(model, &input.model)
        })
    }

    /// Renders the summaries and the notes for a request.
    pub(crate) fn render(&mut self, input: &TurnInput) {
        let renderer = self.renderer(input);
        let notes = renderer.pinned.map(|text| PinnedMessage::new(text, &renderer));
        let summaries = match input.strategy.folds() {
            true => self.folds.iter().map(|fold| SummaryMessage::new(fold, &renderer)).collect(),
            false => Vec::new(),
        };
        (self.summaries, self.notes) = (summaries, notes);
        self.rendered_for = Some((input.outline.dialect, input.model.clone()));
    }

    /// Renders the state as it stood in a recorded turn: only the summary that covers `covers`, within the sizes that its
    /// blocks had, and only notes that cost what they cost then, because others may have been pinned since.
    #[must_use]
    pub fn as_recorded(
        mut self,
        input: &TurnInput,
        covers: Option<Digest>,
        notes_tokens: Tokens,
        blocks: Option<&BlockSizes>,
    ) -> ConversationState {
        self.render(input);
        if let Some(blocks) = blocks {
            let pinned = self.pinned.clone();
            let renderer =
                Renderer::new(input.outline.dialect, &input.context, &input.model, pinned.as_deref());
            let (summary_max, notes_max) = (Tokens(blocks.summary_after), Tokens(blocks.memory_after));
            for summary in self.summaries.iter_mut().filter(|summary| summary.fold.size > summary_max) {
                *summary = summary.within(summary_max, &renderer);
            }
            if let Some(whole) = self.notes.take_if(|notes| notes.size > notes_max) {
                self.notes = Some(PinnedMessage::within(&whole.text, notes_max, &renderer));
            }
        }
        self.summaries.retain(|summary| Some(summary.fold.covers) == covers);
        self.notes = self.notes.filter(|notes| notes.tokens == notes_tokens);
        self
    }

    /// The notes as far as they go into this request: a request that is not edited gets none.
    pub(crate) fn notes_in(&self, input: &TurnInput) -> Option<&PinnedMessage> {
        let is_edited = input.strategy != Strategy::Passthrough && !input.context.observe;
        self.notes.as_ref().filter(|notes| is_edited && !notes.json.is_empty())
    }

    pub(crate) fn renderer<'a>(&'a self, input: &'a TurnInput) -> Renderer<'a> {
        Renderer::new(input.outline.dialect, &input.context, &input.model, self.pinned.as_deref())
    }
}
