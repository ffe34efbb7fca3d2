//! A recorded conversation under one policy, request by request, without a network, a store or a clock.
//!
//! The turns are those of the running proxy (`tidegate-context`), without its external inputs: token counts are not corrected by an
//! upstream's reports, and the built-in summarizer replaces every other.

use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tidegate_config::{Context, Limits};
use tidegate_context::{
    Assessment, ConversationState, Ending, FoldFailure, FoldRequest, Outcome, SavedFold, Splice, Turn,
    TurnInput, drive_offline_with, fold_offline, needs_turn,
};
use tidegate_engine::{FoldBackoff, Timestamp, Tokens};
use tidegate_tokens::chat::message_tokens;
use tidegate_tokens::{Model, count};
use tidegate_wire::{Dialect, Edit, Outline, OwnRole, OwnText, Reader, Side};

/// The state of one conversation under one policy.
#[derive(Debug)]
pub(crate) struct Conversation {
    context: Arc<Context>,
    state: Arc<ConversationState>,
    backoff: FoldBackoff,
    /// The token counts of messages that Tidegate adds, and the model that they were counted for.
    own_tokens: HashMap<Bytes, Tokens>,
    counted_for: Option<Arc<Model>>,
    pub(crate) summaries_made: u32,
}

/// One request, as a client would send it.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) body: &'a Bytes,
    pub(crate) outline: &'a Arc<Outline>,
    pub(crate) model: &'a Arc<Model>,
    pub(crate) now: Timestamp,
    pub(crate) splice: Splice,
}

/// How a request ends.
#[derive(Debug)]
pub(crate) enum Replay {
    Forwarded(Box<Forwarded>),
    /// `422`: the request does not fit, whatever the policy allows, or the conversation has reached a limit.
    Refused,
    /// Its messages cannot be read, so it is forwarded unchanged.
    Unreadable,
}

/// A forwarded request.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub(crate) outcome: Box<Outcome>,
    /// The forwarded messages, in order.
    pub(crate) parts: Vec<Part>,
    pub(crate) is_edited: bool,
}

/// One message of a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) origin: Origin,
    pub(crate) tokens: Tokens,
}

/// Where a forwarded message comes from. Indexes are those of the client's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The client's own bytes, except perhaps for our tag.
    Client(usize),
    Masked(usize),
    Trimmed(usize),
    /// A message of our own: pinned notes, a summary, a marker.
    Own(Bytes),
}

impl Conversation {
    pub(crate) fn new(context: &Arc<Context>, pinned: Option<Arc<str>>) -> Conversation {
        Conversation {
            context: context.clone(),
            state: Arc::new(ConversationState::new(Default::default(), Vec::new(), pinned)),
            backoff: FoldBackoff::default(),
            own_tokens: HashMap::new(),
            counted_for: None,
            summaries_made: 0,
        }
    }

    /// Runs the turn of the conversation's next request, and remembers it.
    pub(crate) fn next(&mut self, reader: &Reader, request: &Request<'_>) -> Replay {
        let mut turn = Turn::new(self.input(request), self.state.clone());
        let mut fold = |wanted: &FoldRequest| self.fold(wanted, request.now);
        let Ok(mut outcome) = drive_offline_with(&mut turn, reader, request.splice, &mut fold) else {
            return Replay::Unreadable;
        };
        self.state = turn.state().clone();
        if outcome.ending != Ending::Forward {
            return Replay::Refused;
        }
        let edits = outcome.assessment.edits(turn.input(), turn.state());
        let is_edited = !edits.is_empty();
        let parts = self.parts(&outcome.assessment, edits, request.model);
        let deferred = outcome.deferred.take();
        drop(turn);
        if let Some(waypoint) = outcome
            .assessment
            .decision
            .waypoint
            .clone()
            .filter(|waypoint| !self.state.memory.has_recent(waypoint))
        {
            Arc::make_mut(&mut self.state).memory.add(waypoint);
        }
        if let Some(wanted) = deferred
            && let Ok(fold) = self.fold(&wanted, request.now)
        {
            Arc::make_mut(&mut self.state).add_fold(fold, wanted.input());
        }
        Replay::Forwarded(Box::new(Forwarded { outcome, parts, is_edited }))
    }

    fn input(&self, request: &Request<'_>) -> TurnInput {
        let context = self.context.clone();
        // A proxy that has nothing to edit checks no limits either.
        let is_limited = needs_turn(&context, context.strategy, request.body);
        let limits = if is_limited { context.limits.clone() } else { Limits::default() };
        let (body, outline) = (request.body.clone(), request.outline.clone());
        TurnInput {
            limits,
            // A recording does not say where it was served. Its prices are the provider's, and so are its windows.
            at_provider: true,
            now: request.now,
            ..TurnInput::new(body, outline, context, request.model.clone())
        }
    }

    /// Makes a summary, unless one failed a moment ago.
    fn fold(&mut self, wanted: &FoldRequest, now: Timestamp) -> Result<SavedFold, FoldFailure> {
        if self.backoff.is_cooling(now) {
            return Err(FoldFailure::CoolingDown);
        }
        wanted.check(self.backoff)?;
        let is_known = wanted.state().fold(wanted.job.covers).is_some();
        let folded = fold_offline(wanted);
        match &folded {
            Ok(_) => self.summaries_made += u32::from(!is_known),
            Err(FoldFailure::NoGain) => self.backoff = self.backoff.after_useless(wanted.job.worth),
            Err(_) => self.backoff = self.backoff.after_failure(now),
        }
        folded
    }

    /// Lists the forwarded messages, each with its cost.
    fn parts(&mut self, assessment: &Assessment, edits: Vec<Edit>, model: &Arc<Model>) -> Vec<Part> {
        let messages = &assessment.chat.messages;
        let mut parts = Vec::with_capacity(messages.len() + 2);
        let as_sent =
            |indexes: Range<usize>| indexes.map(|index| (Origin::Client(index), messages[index].tokens));
        let mut next = 0;
        for edit in edits {
            if let Edit::Extend { message, texts, side } = &edit {
                parts.extend(as_sent(next..(*message).max(next)));
                let own: Vec<_> = texts.iter().map(|text| self.own_part(text, model)).collect();
                // A message that is masked, too, has been listed already.
                let client: Vec<_> = as_sent(next.max(*message)..message + 1).collect();
                let (first, second) = if *side == Side::Front { (own, client) } else { (client, own) };
                parts.extend(first.into_iter().chain(second));
                next = message + 1;
                continue;
            }
            let (at, after, new) = match edit {
                Edit::Insert { before, with } => {
                    let tokens = self.tokens_of_own(&with, model);
                    (before, before, Some((Origin::Own(with), tokens)))
                }
                Edit::Remove { messages } | Edit::Replace { messages, .. } => {
                    (messages.start, messages.end, None)
                }
                Edit::Mask { message, .. } => {
                    let masked = messages[message].tokens.saturating_sub(messages[message].saving());
                    (message, message + 1, Some((Origin::Masked(message), masked)))
                }
                Edit::Shorten { message, .. } => {
                    let is_masked = assessment.decision.plan.masked.binary_search(&message).is_ok();
                    let one = &messages[message];
                    let (origin, saving) = match is_masked {
                        true => (Origin::Masked(message), one.saving()),
                        false => (Origin::Trimmed(message), one.trim_saving()),
                    };
                    (message, message + 1, Some((origin, one.tokens.saturating_sub(saving))))
                }
                // If the message is masked too, that edit comes next.
                Edit::Untag { message } | Edit::Extend { message, .. } => (message, message, None),
            };
            parts.extend(as_sent(next..at));
            parts.extend(new);
            next = after;
        }
        parts.extend(as_sent(next..messages.len()));
        parts.into_iter().map(|(origin, tokens)| Part { origin, tokens }).collect()
    }

    /// A text of our own in a message of the client's.
    fn own_part(&mut self, text: &OwnText, model: &Arc<Model>) -> (Origin, Tokens) {
        let json = Dialect::Chat.own_message(OwnRole::User, &text.text());
        let json = match text.breakpoint() {
            Some(marker) => Dialect::Chat.with_breakpoint(&json, marker),
            None => json,
        };
        let tokens = self.tokens_of_own(&json, model);
        (Origin::Own(json), tokens)
    }

    /// The cost of a message of our own.
    fn tokens_of_own(&mut self, json: &Bytes, model: &Arc<Model>) -> Tokens {
        if !self.counted_for.as_ref().is_some_and(|counted| Arc::ptr_eq(counted, model)) {
            // Another model may count the same text differently.
            self.own_tokens.clear();
            self.counted_for = Some(model.clone());
        }
        *self.own_tokens.entry(json.clone()).or_insert_with(|| {
            let message: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
            let content = &message["content"];
            // With a cache marker, the text is in a part.
            let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
            let role = message["role"].as_str().unwrap_or_default();
            message_tokens(model.encoding, role, None) + count(model.encoding, text)
        })
    }
}
