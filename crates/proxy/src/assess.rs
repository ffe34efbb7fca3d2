//! What would happen to a request: read, measured, decided. The proxy does it for every request and `tidegate explain` for
//! one, with the same code.

use std::sync::Arc;
use tidegate_config::{Context, Mask, ModelSettings};
use tidegate_engine::{Conversation, Decision, Economy, Memory, Policy, Strategy, Timestamp, Tokens, decide};
use tidegate_tokens::{Model, ModelOverride, ModelTable, count};
use tidegate_wire::{
    BadEdit, Chat, Edit, LookedUp, Meter, Outline, Piece, Placeholder, Reader, Reading, Unreadable, splice,
};

/// One request, and everything that its plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub body: &'a [u8],
    pub outline: &'a Outline,
    pub context: &'a Context,
    /// The strategy in force: the context's, or what the client asked for where the route allows it.
    pub strategy: Strategy,
    pub model: &'a Arc<Model>,
    /// What this model's counts have been wrong by before.
    pub factor: f64,
}

/// What was found out and decided about a request.
#[derive(Debug)]
pub struct Assessment {
    pub chat: Chat,
    pub decision: Decision,
}

impl Question<'_> {
    /// Calls `use_it` with how the request is to be read. The rules borrow from the context, so they cannot be returned.
    fn with_reading<T>(&self, use_it: impl FnOnce(&Reading<'_>) -> T) -> T {
        let Mask { placeholder, exclude_tools, .. } = &self.context.mask;
        let pattern = self.context.observations.user_pattern.as_ref();
        let observes = |text: &str| pattern.is_some_and(|pattern| pattern.is_match(text));
        let excludes = |tool: &str| exclude_tools.iter().any(|glob| glob.matches(tool));
        let Model { encoding, images, .. } = **self.model;
        use_it(&Reading {
            meter: Meter { encoding, images },
            observes: pattern.map(|pattern| (pattern.as_str(), &observes as &dyn Fn(&str) -> bool)),
            excludes: (!exclude_tools.is_empty()).then_some(&excludes),
            placeholder: count(encoding, placeholder),
            factor: self.factor,
        })
    }

    /// What is known of its messages already, which decides whether it is done at once or out of the way.
    pub(crate) fn look_up(&self, reader: &Reader) -> LookedUp {
        self.with_reading(|reading| reader.look_up(self.outline, reading))
    }

    /// Reads the request and decides what to do with it.
    pub fn assess(&self, reader: &Reader, memory: &Memory, now: Timestamp) -> Result<Assessment, Unreadable> {
        self.assess_from(self.look_up(reader), reader, memory, now)
    }

    pub(crate) fn assess_from(
        &self,
        looked_up: LookedUp,
        reader: &Reader,
        memory: &Memory,
        now: Timestamp,
    ) -> Result<Assessment, Unreadable> {
        let chat = self.with_reading(|reading| reader.read(self.body, self.outline, reading, looked_up))?;
        let asked = self.outline.max_completion_tokens.or(self.outline.max_tokens);
        let conversation = Conversation {
            messages: &chat.messages,
            fixed: chat.fixed,
            budget: self.context.budget.budget(self.model.window, asked.map(Tokens)),
            economy: economy(self.model),
        };
        let policy = Policy { strategy: self.strategy, mask: self.context.mask.policy };
        let decision = decide(&conversation, memory, &policy, now);
        Ok(Assessment { chat, decision })
    }
}

impl Assessment {
    /// The request as it is to be forwarded; nothing if that is what the client sent.
    pub fn pieces(&self, question: &Question<'_>) -> Result<Option<Vec<Piece>>, BadEdit> {
        let masked: &[usize] = if question.context.observe { &[] } else { &self.decision.plan.masked };
        let mut masked = masked.iter().copied().peekable();
        let placeholder = Placeholder::new(&question.context.mask.placeholder);
        let mut edits = Vec::new();
        for (message, known) in self.chat.known.iter().enumerate() {
            // The tag is between the client and us; providers refuse members that they do not know.
            if known.facts.tag.is_some() {
                edits.push(Edit::Untag { message });
            }
            if masked.next_if_eq(&message).is_some() {
                edits.push(Edit::Mask { message, placeholder: placeholder.clone() });
            }
        }
        if edits.is_empty() {
            return Ok(None);
        }
        splice(question.body, question.outline, &self.chat.known, &edits).map(Some)
    }
}

/// What the model's owner bills. Where nobody knows, a discount on repeated input is assumed: nearly all providers give
/// one, and to overlook it makes masking cost more than it saves, while to assume it only delays it.
fn economy(model: &Model) -> Economy {
    let cache_life = u64::try_from(model.caching.ttl.as_millis()).unwrap_or(u64::MAX);
    match model.prices {
        Some(prices) => Economy { write: prices.written(), cached: prices.cached(), cache_life },
        None => Economy { write: 1.0, cached: 0.1, cache_life },
    }
}

/// The built-in table with what the configuration says of models.
#[must_use]
pub fn model_table<'a>(models: impl IntoIterator<Item = (&'a String, &'a ModelSettings)>) -> ModelTable {
    ModelTable::builtin().with(models.into_iter().map(|(name, settings)| {
        let changed = ModelOverride {
            window: settings.window,
            max_output: settings.max_output,
            // The configuration accepts only names that parse.
            encoding: settings.encoding.as_deref().and_then(|name| name.parse().ok()),
            input: settings.input,
            cached_input: settings.cached_input,
            cache_write: settings.cache_write,
            output: settings.output,
            cache_ttl: settings.cache_ttl,
        };
        (name.clone(), changed)
    }))
}
