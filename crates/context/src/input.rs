use crate::recall_tool;
use crate::renderer::unit;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_config::{Context, History, Limits, Mask};
use tidegate_engine::{Reference, RefuseAt, Strategy, Timestamp, Tokens};
use tidegate_tokens::{Model, binds_thinking};
use tidegate_wire::{
    CacheLookup, Meter, Outline, ParsedRequest, ReadOptions, Reader, RecallOffer, Shortening, TrimLimits,
};

/// One request and the policy it is under. Everything large is shared, so a clone is cheap.
#[derive(Clone, Debug)]
pub struct TurnInput {
    /// The request's JSON, decompressed.
    pub body: Bytes,
    pub outline: Arc<Outline>,
    pub context: Arc<Context>,
    /// The strategy in force: the context's, or the one the client asked for where the route allows that.
    pub strategy: Strategy,
    pub model: Arc<Model>,
    /// The window that the upstream has named for this model.
    pub learnt_window: Option<Tokens>,
    /// Whether the upstream is the model's own provider, so that its models are what their names say. Another host may serve a model with a
    /// window of its own, and a deployment may be any model.
    pub at_provider: bool,
    /// The most input tokens that the upstream takes, as it has just said; `None` unless a request is planned again because of that.
    pub ceiling: Option<Tokens>,
    /// Whether the conversation is left as it is from now on, because the upstream has just refused this request for its edits.
    pub leaves_alone: bool,
    /// How the model could ask for what was shortened; see [`TurnInput::recall`].
    pub recall_offer: Option<RecallOffer>,
    /// The correction of this model's token counts: learnt from the usage that upstreams report, or typical of its family.
    pub factor: f64,
    pub limits: Limits,
    /// What the conversation has cost so far in USD; `None` if that is unknown or unlimited.
    pub spent: Option<f64>,
    pub now: Timestamp,
}

/// Whether a request can need a turn at all. Without a strategy that edits and without a promise, only our own tag has to be removed.
#[must_use]
pub fn needs_turn(context: &Context, strategy: Strategy, body: &[u8]) -> bool {
    let has_tag = || memchr::memmem::find(body, b"\"observation\"").is_some();
    promises(context) || strategy != Strategy::Passthrough || has_tag()
}

/// Whether something holds whatever the strategy is: a limit, which a client must not be able to bypass, or a history that is ours to keep.
#[must_use]
pub fn promises(context: &Context) -> bool {
    let has_limit = context.limits.max_turns.is_some() || context.limits.max_cost_usd.is_some();
    context.history == History::Proxy || (has_limit && !context.observe)
}

impl TurnInput {
    /// A request under the strategy and limits of its context, with counts that no report has corrected, at time zero.
    #[must_use]
    pub fn new(
        body: Bytes,
        outline: impl Into<Arc<Outline>>,
        context: Arc<Context>,
        model: Arc<Model>,
    ) -> TurnInput {
        let outline = outline.into();
        let asks =
            context.recall.tool && !context.observe && !outline.asks_native && !outline.continues_upstream;
        TurnInput {
            recall_offer: asks.then(|| RecallOffer::of(&body, &outline)).flatten(),
            body,
            outline,
            strategy: context.strategy,
            limits: context.limits.clone(),
            factor: typical_factor(&context, &model),
            context,
            model,
            learnt_window: None,
            at_provider: false,
            ceiling: None,
            leaves_alone: false,
            spent: None,
            now: Timestamp(0),
        }
    }

    /// Whether the turn and its messages are stored. A strategy that edits nothing stores nothing either, unless the proxy keeps
    /// the history.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.strategy != Strategy::Passthrough || self.context.history == History::Proxy
    }

    /// Whether the turn is counted. Where a limit holds, it holds for what is passed on unedited too; but then no text is stored.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        let has_limit = self.limits.max_turns.is_some() || self.limits.max_cost_usd.is_some();
        self.is_recorded() || (has_limit && !self.context.observe)
    }

    /// The model's name as the client wrote it.
    #[must_use]
    pub fn requested_model(&self) -> &str {
        self.outline.model.as_deref().unwrap_or_default()
    }

    /// Finds which messages the reader has measured before. This tells how much work [`Measurement::run`] would be.
    ///
    /// [`Measurement::run`]: crate::Measurement::run
    #[must_use]
    pub fn look_up(&self, reader: &Reader) -> CacheLookup {
        self.with_options(reader, |options| reader.look_up(&self.outline, options))
    }

    /// Whether lengths are counted in words because there is no tokenizer for this model, although the route asks for tokens.
    #[must_use]
    pub fn falls_back_to_words(&self) -> bool {
        self.context.unit == tidegate_config::Unit::Tokens
            && unit(&self.context, &self.model) == tidegate_wire::Unit::Words
    }

    /// Calls `f` with the rules for reading this request. They borrow from the context, so they cannot be returned.
    pub(crate) fn with_options<T>(&self, reader: &Reader, f: impl FnOnce(&ReadOptions<'_>) -> T) -> T {
        let Mask { placeholder, exclude_tools, hint, .. } = &self.context.mask;
        let trim = self.context.trim.as_ref();
        let pattern = self.context.observations.user_pattern.as_ref();
        let observes = |text: &str| pattern.is_some_and(|pattern| pattern.is_match(text));
        let excludes = |tool: &str| exclude_tools.iter().any(|glob| glob.matches(tool));
        let offer = self.recall();
        let keeps_whole = |tool: &str| {
            let own = trim.iter().flat_map(|trim| &trim.exclude_tools);
            // What the model has asked for whole would only be asked for again.
            offer.is_some_and(|offer| offer.is_answered_by(tool))
                || own.chain(exclude_tools).any(|glob| glob.matches(tool))
        };
        let has_untrimmed = trim.is_some_and(|trim| {
            offer.is_some() || !(trim.exclude_tools.is_empty() && exclude_tools.is_empty())
        });
        let shortening = Shortening {
            placeholder,
            hint: *hint,
            names_reference: offer.is_some(),
            trim: trim.map(|trim| TrimLimits { min_tokens: trim.min_tokens, keep_tokens: trim.keep_tokens }),
        };
        let is_shortened = shortening.trim.is_some() || shortening.hint > 0 || shortening.names_reference;
        let Model { encoding, images, .. } = *self.model;
        f(&ReadOptions {
            meter: Meter { encoding, images, unit: unit(&self.context, &self.model) },
            user_observations: pattern.map(|pattern| (pattern.as_str(), &observes as &dyn Fn(&str) -> bool)),
            excluded_tools: (!exclude_tools.is_empty()).then_some(&excludes),
            placeholder: reader.count(encoding, placeholder),
            shortening: is_shortened.then_some(shortening),
            untrimmed_tools: has_untrimmed.then_some(&keeps_whole),
            factor: self.factor,
            finds_cuts: match self.strategy {
                Strategy::Summarization | Strategy::Hybrid | Strategy::Window => true,
                Strategy::Passthrough | Strategy::Masking => false,
            },
            indexes: self.recalls(),
        })
    }

    /// How the model can ask for what is shortened. A request that is made shorter because the upstream has refused it is left without
    /// a way: its answer is not followed.
    #[must_use]
    pub fn recall(&self) -> Option<RecallOffer> {
        let is_edited = self.strategy != Strategy::Passthrough && self.ceiling.is_none();
        self.recall_offer.filter(|_| is_edited)
    }

    /// The text of a message of the request, as the client sent it.
    #[must_use]
    pub fn original(&self, chat: &ParsedRequest, reference: Reference) -> Option<String> {
        let message = chat
            .messages
            .iter()
            .position(|message| !message.role.is_instruction() && reference.is_of(message.digest))?;
        self.view(message).map(|view| view.text().into_owned())
    }

    /// What the definition of our own tool costs, if the request gets it.
    pub(crate) fn recall_tool_tokens(&self, reader: &Reader) -> Tokens {
        match self.recall() {
            Some(RecallOffer::Tool { .. }) => self.scaled(reader.count(self.model.encoding, recall_tool())),
            Some(RecallOffer::Mcp) | None => Tokens::ZERO,
        }
    }

    /// The end of the messages that reasoning in the request is bound to: a new edit before it would have the provider refuse that
    /// reasoning. 0 if there is none, or if the model does not check it.
    pub(crate) fn bound(&self, chat: &ParsedRequest) -> usize {
        let last = chat.parsed.iter().rposition(|message| message.facts.is_signed);
        last.filter(|_| binds_thinking(self.requested_model())).map_or(0, |last| last + 1)
    }

    /// Corrects a count by what this model's counts have been wrong by before.
    pub(crate) fn scaled(&self, tokens: Tokens) -> Tokens {
        if self.factor == 1.0 { tokens } else { Tokens((tokens.0 as f64 * self.factor).ceil() as u64) }
    }
}

/// The correction of counts before the upstream has reported any usage.
///
/// It is a guess, so it steers edits only. A policy that refuses at its budget counts as its document says, without it.
fn typical_factor(context: &Context, model: &Model) -> f64 {
    match context.budget.refuse_at {
        RefuseAt::Window => model.typical_factor,
        RefuseAt::Budget => 1.0,
    }
}
