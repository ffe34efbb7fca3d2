//! An excerpt as it stands in a message of the client's: the text of its passages, fenced, and what it costs.

use crate::TurnInput;
use crate::renderer::Renderer;
use tidegate_engine::{Excerpt, Passage, Tokens};
use tidegate_summary::{Quote, render_excerpts};
use tidegate_wire::{MessageView, Reader};

/// An excerpt in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedExcerpt {
    /// The index of the message that it stands in.
    pub message: usize,
    pub excerpt: Excerpt,
    /// The indices of the messages that its passages are from, in order.
    pub sources: Vec<usize>,
    pub text: String,
    pub tokens: Tokens,
    /// Its size in the unit of the limits; zero where there are none.
    pub size: Tokens,
    /// Whether it was chosen for this request, and not for an earlier one.
    pub is_new: bool,
}

/// Between a text of our own and the client's. A model's tokenizer may join them differently than it counts them.
const JOINT: Tokens = Tokens(4);

impl TurnInput {
    /// Renders an excerpt. `places` are the indices of the messages that are not instructions. Returns `None` if a passage is not there:
    /// then nothing takes its place.
    pub(crate) fn placed_excerpt(
        &self,
        message: usize,
        excerpt: Excerpt,
        places: &[usize],
        reader: &Reader,
    ) -> Option<PlacedExcerpt> {
        let mut sources: Vec<usize> = Vec::new();
        let mut quotes: Vec<(u64, String, String)> = Vec::new();
        for passages in excerpt.passages.chunk_by(|one, next| one.message == next.message) {
            let place = usize::try_from(passages.first()?.message).ok()?;
            let source = *places.get(place).filter(|source| **source < message)?;
            let view = self.view(source)?;
            let text = view.text();
            let speaker = view.role.as_deref().unwrap_or_default();
            for passage in passages {
                let quoted = text.get(range(passage)?)?;
                quotes.push((place as u64 + 1, speaker.to_owned(), quoted.to_owned()));
            }
            sources.push(source);
        }
        let quotes: Vec<Quote<'_>> =
            quotes.iter().map(|(number, speaker, text)| Quote { number: *number, speaker, text }).collect();
        let text = render_excerpts(&quotes);
        let tokens = self.scaled(reader.count(self.model.encoding, &text) + JOINT);
        let renderer = Renderer::new(self.outline.dialect, &self.context, &self.model, None);
        let size = renderer.size_if_bounded(&text);
        Some(PlacedExcerpt { message, excerpt, sources, text, tokens, size, is_new: false })
    }

    /// Reads a message of the request.
    pub(crate) fn view(&self, message: usize) -> Option<MessageView<'_>> {
        let raw = self.outline.messages.get(message)?.of(&self.body);
        self.outline.dialect.read_message(raw).ok()
    }
}

fn range(passage: &Passage) -> Option<std::ops::Range<usize>> {
    Some(usize::try_from(passage.start).ok()?..usize::try_from(passage.end).ok()?)
}
