//! Replays one conversation under every policy and every price regime.

use crate::cache::{ProviderCache, Segment};
use crate::conversation::{Conversation, Forwarded, Origin, Replay, Request};
use crate::figures::{Fate, Figures, Turn};
use crate::input::Recorded;
use crate::policy::{Policy, weighs_prices};
use crate::price::Regime;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_config::{Context, Settings};
use tidegate_context::{Assessment, Splice, model_table};
use tidegate_engine::{Strategy, Timestamp, Tokens};
use tidegate_tokens::{Model, ModelTable};
use tidegate_wire::{Fingerprinter, Reader, assemble, extras_head};

/// The settings, policies and prices to compare.
#[derive(Clone, Debug)]
pub struct Setup {
    pub settings: Settings,
    /// The first is [`Policy::RAW`].
    pub policies: Vec<Policy>,
    pub regimes: Vec<Regime>,
    /// The number of requested policies. The policies after them are variants with other windows.
    pub main: usize,
    /// The assumed time between requests without a timestamp, in milliseconds.
    pub gap: u64,
}

/// The result of one conversation.
#[derive(Clone, Debug)]
pub struct Replayed {
    pub id: String,
    pub has_times: bool,
    /// The models that its requests name.
    pub models: Vec<String>,
    /// By regime, then by policy.
    pub figures: Vec<Vec<Figures>>,
    /// The turns by regime, then by policy, in order.
    pub turns: Vec<Vec<Vec<Turn>>>,
}

/// One request under one policy, with its bytes.
#[derive(Debug)]
pub struct Shown<'a> {
    pub policy: &'a Policy,
    /// The index of the request in the conversation.
    pub request: usize,
    pub sent: &'a Bytes,
    /// The request to forward, or `None` if it is refused.
    pub forwarded: Option<Bytes>,
    /// The messages whose content is a placeholder or an excerpt, in order.
    pub shortened: Vec<usize>,
    /// The number of summaries after this request.
    pub summaries: u32,
}

/// Replays conversations one after the other. Each thread needs its own.
#[derive(Debug)]
pub struct Stage<'a> {
    setup: &'a Setup,
    table: ModelTable,
    reader: Reader,
    keys: Fingerprinter,
    /// Resolved models by their name in the request.
    models: HashMap<String, Arc<ResolvedModel>>,
}

/// A model with its prices in each regime and its context under each policy.
#[derive(Debug)]
struct ResolvedModel {
    name: String,
    model: Arc<Model>,
    /// By regime.
    billed_as: Vec<Arc<Model>>,
    /// By policy.
    contexts: Vec<Arc<Context>>,
}

/// The state of one policy while a conversation is replayed. A policy that does not weigh prices runs once for all regimes.
struct Run {
    policy: usize,
    regimes: std::ops::Range<usize>,
    conversation: Conversation,
    cache: ProviderCache,
}

impl<'a> Stage<'a> {
    #[must_use]
    pub fn new(setup: &'a Setup) -> Stage<'a> {
        Stage {
            setup,
            table: model_table(&setup.settings.models),
            reader: Reader::default(),
            keys: Fingerprinter::new(1),
            models: HashMap::new(),
        }
    }

    pub fn replay(&mut self, conversation: &Recorded) -> Replayed {
        self.watch(conversation, None)
    }

    /// Replays a conversation and calls `shown` with every forwarded request.
    pub fn watch(
        &mut self,
        conversation: &Recorded,
        mut shown: Option<&mut dyn FnMut(Shown<'_>)>,
    ) -> Replayed {
        let setup = self.setup;
        let (regimes, policies) = (setup.regimes.len(), setup.policies.len());
        let mut replayed = Replayed {
            id: conversation.id.clone(),
            has_times: conversation.has_times(),
            models: Vec::new(),
            figures: vec![vec![Figures::default(); policies]; regimes],
            turns: vec![vec![Vec::with_capacity(conversation.len()); policies]; regimes],
        };
        let times = conversation.times(setup.gap);
        // The policy of a conversation is that of its first request.
        let mut first: Option<Arc<ResolvedModel>> = None;
        let mut requests = Vec::with_capacity(times.len());
        for (number, &now) in times.iter().enumerate() {
            let body = conversation.body(number);
            let Ok(outline) = self.reader.outline(conversation.dialect(), &body) else { continue };
            let resolved = self.resolve(outline.model.as_deref().unwrap_or_default());
            first.get_or_insert_with(|| resolved.clone());
            if !replayed.models.contains(&resolved.name) {
                replayed.models.push(resolved.name.clone());
            }
            requests.push((number, now, body, Arc::new(outline), resolved));
        }
        let Some(first) = first else { return replayed };
        let mut runs = runs(&first, regimes, &conversation.memory);
        let splice = if shown.is_some() { Splice::Wanted } else { Splice::Unwanted };
        for (number, now, body, outline, resolved) in &requests {
            // What precedes the messages in a provider's prompt: tools, instructions and the response format.
            let head = u128::from(extras_head(body, outline));
            for run in &mut runs {
                let request = Request {
                    body,
                    outline,
                    model: &resolved.billed_as[run.regimes.start],
                    now: Timestamp(*now),
                    splice,
                };
                let outcome = run.conversation.next(&self.reader, &request);
                let turn =
                    self.turn(&mut run.cache, resolved, &outcome, (head, outline.sets_breakpoints), *now);
                for regime in run.regimes.clone() {
                    let cost = setup.regimes[regime].cost(&resolved.model, &turn.billed);
                    let turn = Turn { cost, ..turn.clone() };
                    let figures = &mut replayed.figures[regime][run.policy];
                    figures.count(&turn);
                    figures.summaries = u64::from(run.conversation.summaries_made);
                    replayed.turns[regime][run.policy].push(turn);
                }
                if let Some(shown) = &mut shown {
                    shown(Shown {
                        policy: &setup.policies[run.policy],
                        request: *number,
                        sent: body,
                        forwarded: forwarded(body, &outcome),
                        shortened: shortened(&outcome),
                        summaries: run.conversation.summaries_made,
                    });
                }
            }
        }
        replayed
    }

    fn resolve(&mut self, name: &str) -> Arc<ResolvedModel> {
        if let Some(resolved) = self.models.get(name) {
            return resolved.clone();
        }
        let setup = self.setup;
        let model = self.table.lookup(name);
        let unrouted = || {
            // A request that matches no route is forwarded unchanged.
            let context = setup.settings.routes[0].context.clone();
            Context { strategy: Strategy::Passthrough, observe: false, ..(*context).clone() }
        };
        let contexts = setup
            .policies
            .iter()
            .map(|policy| Arc::new(policy.context(&setup.settings, name).unwrap_or_else(unrouted)));
        let resolved = Arc::new(ResolvedModel {
            name: name.to_owned(),
            billed_as: setup.regimes.iter().map(|regime| Arc::new(regime.applied(&model))).collect(),
            contexts: contexts.collect(),
            model,
        });
        self.models.insert(name.to_owned(), resolved.clone());
        resolved
    }

    fn turn(
        &self,
        cache: &mut ProviderCache,
        resolved: &ResolvedModel,
        outcome: &Replay,
        (head, sets_breakpoints): (u128, bool),
        now: u64,
    ) -> Turn {
        let forwarded = match outcome {
            Replay::Forwarded(forwarded) => forwarded,
            Replay::Refused => return Turn { is_refused: true, ..Turn::default() },
            Replay::Unreadable => return Turn { is_unreadable: true, ..Turn::default() },
        };
        let segments = self.segments(forwarded, head);
        let breakpoint = if sets_breakpoints { segments.len() } else { breakpoint(forwarded) };
        let billed = cache.bill(&resolved.name, segments, breakpoint, now);
        let plan = &forwarded.outcome.assessment.decision.plan;
        Turn {
            before: plan.before.0,
            is_edited: forwarded.is_edited,
            // No provider accepts a request that is longer than the window, edited or not.
            is_over: plan.budget.window.tokens().is_some_and(|window| window < Tokens(billed.tokens())),
            fate: fate(forwarded),
            billed,
            ..Turn::default()
        }
    }

    fn segments(&self, forwarded: &Forwarded, head: u128) -> Vec<Segment> {
        let chat = &forwarded.outcome.assessment.chat;
        let mut segments = Vec::with_capacity(forwarded.parts.len() + 1);
        segments.push(Segment { key: head, tokens: chat.fixed.0 });
        segments.extend(forwarded.parts.iter().map(|part| {
            let key = match &part.origin {
                Origin::Client(index) => chat.parsed[*index].segment_key(),
                // Any keys that no other message has.
                Origin::Masked(index) => !chat.parsed[*index].segment_key(),
                Origin::Trimmed(index) => chat.parsed[*index].segment_key().rotate_left(64) ^ 1,
                Origin::Own(json) => self.keys.of(json).0,
            };
            Segment { key, tokens: part.tokens.0 }
        }));
        segments
    }
}

/// The number of segments up to the last breakpoint of a forwarded request. The first segment is not a message.
fn breakpoint(forwarded: &Forwarded) -> usize {
    let chat = &forwarded.outcome.assessment.chat;
    let last = forwarded.parts.iter().rposition(|part| match &part.origin {
        Origin::Client(index) | Origin::Masked(index) | Origin::Trimmed(index) => {
            chat.parsed[*index].facts.breakpoint.is_some()
        }
        Origin::Own(json) => memchr::memmem::find(json, BREAKPOINT).is_some(),
    });
    last.map_or(0, |last| last + 2)
}

/// How a message of our own spells a breakpoint that was moved to it. Its text cannot: quotes in it are escaped.
const BREAKPOINT: &[u8] = b"\"cache_control\":";

/// Starts the runs of a conversation: one per policy, or one per policy and regime if the policy weighs prices.
fn runs(resolved: &ResolvedModel, regimes: usize, memory: &Option<Arc<str>>) -> Vec<Run> {
    let mut runs = Vec::new();
    for (policy, context) in resolved.contexts.iter().enumerate() {
        let step = if weighs_prices(context) { 1 } else { regimes };
        for start in (0..regimes).step_by(step) {
            let conversation = Conversation::new(context, memory.clone());
            let cache = ProviderCache::new(resolved.model.caching);
            runs.push(Run { policy, regimes: start..start + step, conversation, cache });
        }
    }
    runs
}

/// Sums the tokens of the client's messages by what happened to them.
fn fate(forwarded: &Forwarded) -> Fate {
    let Assessment { chat, decision, .. } = &forwarded.outcome.assessment;
    let (plan, messages) = (&decision.plan, &chat.messages);
    let mut fate = Fate::default();
    let mut client: u64 = 0;
    for part in &forwarded.parts {
        match &part.origin {
            Origin::Client(_) => client += part.tokens.0,
            Origin::Masked(index) => fate.masked += messages[*index].tokens.0,
            // What is left out counts as trimmed, and the excerpt as sent.
            Origin::Trimmed(index) => {
                fate.trimmed += messages[*index].trim_saving().0;
                client += part.tokens.0;
            }
            Origin::Own(_) => fate.own += part.tokens.0,
        }
    }
    let sum = |indexes: &[usize]| indexes.iter().map(|&index| messages[index].tokens.0).sum::<u64>();
    let is_forwarded = forwarded.is_edited;
    let folded = plan.folded.as_ref().filter(|_| is_forwarded);
    fate.folded = folded.map_or(0, |folded| sum(&folded.removed));
    fate.dropped = if is_forwarded { sum(&plan.dropped) } else { 0 };
    fate.kept = client + forwarded.outcome.assessment.chat.fixed.0;
    fate
}

/// The messages that are masked or trimmed.
fn shortened(outcome: &Replay) -> Vec<usize> {
    let Replay::Forwarded(forwarded) = outcome else { return Vec::new() };
    let plan = &forwarded.outcome.assessment.decision.plan;
    let mut shortened = [&plan.masked[..], &plan.trimmed].concat();
    shortened.sort_unstable();
    shortened
}

fn forwarded(body: &Bytes, outcome: &Replay) -> Option<Bytes> {
    match outcome {
        Replay::Forwarded(forwarded) => Some(match &forwarded.outcome.pieces {
            Some(pieces) => assemble(body, pieces).into(),
            None => body.clone(),
        }),
        Replay::Unreadable => Some(body.clone()),
        Replay::Refused => None,
    }
}
