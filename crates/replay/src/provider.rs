//! A model of a provider that only counts and bills requests.

use crate::cache::{Billed, ProviderCache, Segment};
use bytes::Bytes;
use std::sync::Arc;
use tidegate_config::{Context, Settings};
use tidegate_context::{ConversationState, Rule, TurnInput};
use tidegate_engine::Strategy;
use tidegate_tokens::Model;
use tidegate_wire::{Dialect, Reader};

/// Bills the requests of one conversation like a provider with a prompt cache.
#[derive(Debug)]
pub struct Provider {
    model: Arc<Model>,
    context: Arc<Context>,
    reader: Reader,
    cache: ProviderCache,
}

impl Provider {
    #[must_use]
    pub fn new(model: Arc<Model>, settings: &Settings) -> Provider {
        // A provider edits nothing. There is always at least one route.
        let context = Context { strategy: Strategy::Passthrough, ..(*settings.routes[0].context).clone() };
        let cache = ProviderCache::new(model.caching);
        Provider { model, context: Arc::new(context), reader: Reader::default(), cache }
    }

    /// Returns the billed input of a request sent at `now`, in milliseconds; `None` if the body is not a chat completion.
    pub fn bill(&mut self, body: &[u8], now: u64) -> Option<Billed> {
        let outline = self.reader.outline(Dialect::of_body(body), body).ok()?;
        let body = Bytes::copy_from_slice(body);
        let input = TurnInput::new(body, outline, self.context.clone(), self.model.clone());
        let chat = input.assess(&ConversationState::default(), &self.reader, Rule::Decide).ok()?.chat;
        let last = chat.breakpoints().last();
        let head = Segment { key: 0, tokens: chat.fixed.0 };
        let messages = chat.messages.iter().zip(&chat.parsed);
        let messages =
            messages.map(|(message, parsed)| Segment { key: parsed.segment_key(), tokens: message.tokens.0 });
        let segments: Vec<Segment> = std::iter::once(head).chain(messages).collect();
        let breakpoint = match last {
            _ if input.outline.sets_breakpoints => segments.len(),
            Some(last) => last + 2,
            None => 0,
        };
        Some(self.cache.bill(&self.model.name, segments, breakpoint, now))
    }
}
