//! A chat completion while it is worked on: what is known of it, and what is decided about it.

use crate::assess::{Assessment, Question, Rule};
use crate::block_sizes::block_sizes;
use crate::dress::dressed;
use crate::fold::Folding;
use crate::gate::{Gate, Snapshot};
use crate::identify::Identity;
use crate::look::Look;
use crate::pinned_message::PinnedMessage;
use crate::plateau::plateau;
use crate::reply::OverBudget;
use crate::rewrite::{Later, LeftOut, Rewritten, log_window};
use crate::savings::Unedited;
use crate::summary_message::SummaryMessage;
use crate::timeline::unrecorded;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_config::{Context, Route};
use tidegate_engine::{FoldJob, Message, Strategy, Timestamp, Tokens, Verdict};
use tidegate_store::{Entries, Recalled, StoredFold};
use tidegate_tokens::{Model, is_loaded};
use tidegate_wire::{CacheLookup, Outline, ParsedRequest, Piece};
use tracing::warn;

/// A chat completion on its way to be rewritten.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) gate: Arc<Gate>,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Which route, by its index.
    pub(crate) route: usize,
    pub(crate) strategy: Strategy,
    pub(crate) identity: Option<Identity>,
    pub(crate) recalled: Recalled,
    /// Its summaries, and what is pinned to it, as messages.
    pub(crate) summaries: Vec<SummaryMessage>,
    pub(crate) pinned: Option<PinnedMessage>,
    pub(crate) body: Bytes,
    pub(crate) outline: Outline,
    /// Whether the history is ours to keep, so that everything is recorded whatever the strategy.
    pub(crate) holds_history: bool,
    /// What the conversation has cost so far, where there is a limit to that.
    pub(crate) spent: Option<f64>,
}

/// More than this many unread bytes, or messages, are not worked through on a worker: it would serve nobody else for
/// some hundreds of microseconds.
const MOST_UNSEEN: usize = 4 * 1024;
const MOST_MESSAGES: usize = 2_000;
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// A longer name of a model is no name. It is cut where it is kept.
pub(crate) const LONGEST_MODEL: usize = 128;

/// A plan, ready to be carried out.
pub(crate) struct Judged {
    pub(crate) assessment: Assessment,
    pieces: Option<Vec<Piece>>,
    entries: Entries,
    factor: f64,
    /// How many turns have brought nothing new, where that is worth a hint.
    stop_hint: Option<u32>,
}

/// Reads and decides: at once, or out of everybody's way where that takes long.
pub(crate) async fn judge(
    draft: &Arc<Draft>,
    model: &Arc<Model>,
    rule: Rule,
    now: Timestamp,
) -> Option<Judged> {
    let lookup = match draft.look_up(model) {
        Some(lookup) if lookup.uncached_bytes <= MOST_UNSEEN => {
            return draft.judge(model, lookup, rule, now);
        }
        lookup => lookup,
    };
    let (draft, model) = (draft.clone(), model.clone());
    let heavy = move || {
        let lookup = lookup.unwrap_or_else(|| draft.question(&model).look_up(&draft.gate.reader));
        draft.judge(&model, lookup, rule, now)
    };
    match tokio::task::spawn_blocking(heavy).await {
        Ok(judged) => judged,
        Err(error) => {
            warn!(%error, "a request could not be rewritten and is forwarded as it came");
            None
        }
    }
}

impl Draft {
    /// With the messages of our own that the conversation has, as this route shows them.
    pub(crate) fn dressed(mut self) -> Draft {
        let (model, Recalled { folds, pinned, .. }) = (self.model(), &self.recalled);
        let (summaries, pinned) = dressed(self.context(), self.strategy, &model, folds, pinned.as_deref());
        (self.pinned, self.summaries) = (pinned, summaries);
        self
    }

    pub(crate) fn context(&self) -> &Context {
        &self.route().context
    }

    pub(crate) fn route(&self) -> &Route {
        &self.snapshot.settings.routes[self.route]
    }

    pub(crate) fn model(&self) -> Arc<Model> {
        self.snapshot.models.lookup(self.outline.model.as_deref().unwrap_or_default())
    }

    /// Counts are corrected by what this model has reported before. Each tenant has corrections of its own, so that nobody's
    /// traffic moves anybody else's budget.
    fn calibration_key(&self, model: &Model) -> String {
        calibration_key(self.identity.as_ref(), model)
    }

    /// What is known of the messages; nothing where even that is too much for a worker.
    fn look_up(&self, model: &Arc<Model>) -> Option<CacheLookup> {
        let is_light = self.body.len() <= MOST_BYTES
            && self.outline.messages.len() <= MOST_MESSAGES
            && is_loaded(model.encoding);
        is_light.then(|| self.question(model).look_up(&self.gate.reader))
    }

    pub(crate) fn question<'a>(&'a self, model: &'a Arc<Model>) -> Question<'a> {
        Question {
            body: &self.body,
            outline: &self.outline,
            context: self.context(),
            strategy: self.strategy,
            model,
            factor: self.gate.calibration.factor(&self.calibration_key(model)),
            summaries: &self.summaries,
            pinned: self.pinned.as_ref(),
        }
    }

    /// The same with one more summary.
    pub(crate) fn with(self: Arc<Self>, fold: StoredFold) -> Arc<Draft> {
        let mut draft = Arc::unwrap_or_clone(self);
        let look = Look::of(draft.context(), &draft.model(), draft.recalled.pinned.as_deref());
        let summary = SummaryMessage::of(&fold, &look);
        draft.summaries.extend(summary);
        draft.recalled.folds.push(fold);
        Arc::new(draft)
    }

    fn judge(&self, model: &Arc<Model>, lookup: CacheLookup, rule: Rule, now: Timestamp) -> Option<Judged> {
        let question = self.question(model);
        // A message that cannot be read is for the upstream to judge.
        let assessment =
            question.assess_from(lookup, &self.gate.reader, &self.recalled.memory, rule, now).ok()?;
        let pieces = match assessment.pieces(&question) {
            Ok(pieces) => pieces,
            Err(error) => {
                warn!(%error, "a plan did not fit its request, which is forwarded as it came");
                return None;
            }
        };
        let entries = self.unrecorded(&assessment.chat);
        // Here and not on the way out: it reads the last turns again, and what is long is read out of everybody's way.
        let window = self.context().limits.plateau_window;
        let stop_hint =
            window.and_then(|most| plateau(&self.body, &self.outline, &assessment.chat, most.get()));
        Some(Judged { assessment, pieces, entries, factor: question.factor, stop_hint })
    }

    pub(crate) fn rewritten(
        &self,
        model: &Arc<Model>,
        judged: Judged,
        trouble: Option<&'static str>,
        later: Option<(Folding, FoldJob)>,
        now: Timestamp,
    ) -> Result<Rewritten, Box<OverBudget>> {
        let Judged { assessment, pieces, entries, factor, stop_hint } = judged;
        let counted = counted(&assessment, factor, self.context().observe);
        let blocks = block_sizes(&self.recalled, self.context(), model, &assessment);
        let Assessment { chat, decision, trimmed } = assessment;
        let pinned = match &trimmed {
            Some((_, pinned)) => pinned.as_ref(),
            None => self.question(model).pinned().and(self.pinned.as_ref()),
        };
        let memory_tokens = pinned.map_or(Tokens::ZERO, |pinned| pinned.tokens);
        // Also of what is refused: there it is asked for most.
        log_window(self.outline.model.as_deref().unwrap_or_default(), &decision.plan);
        let asked = self.outline.model.as_deref().unwrap_or_default().chars().take(LONGEST_MODEL).collect();
        let talk = |message: &&Message| !message.role.is_instruction();
        let end = chat.messages.iter().rev().find(talk).map(|message| message.digest);
        if decision.plan.verdict == Verdict::OverBudget && !self.context().observe {
            let over = OverBudget { plan: decision.plan, model: model.clone(), asked, end, made: None };
            return Err(Box::new(over));
        }
        let memory = &self.recalled.memory;
        let (made, caching) = (decision.waypoint.as_ref(), model.caching);
        let mut unedited = Unedited::of(&chat.messages, &decision.plan, made, memory, caching, now);
        if self.context().observe {
            unedited = unedited.as_sent();
        }
        let waypoint = decision.waypoint.filter(|waypoint| !self.recalled.knows(waypoint));
        let left_out = LeftOut::of(&decision.plan, &chat.messages);
        Ok(Rewritten {
            entries: Entries { waypoint, ..entries },
            messages: chat.messages.len(),
            end,
            pieces: pieces.map(|pieces| pieces.iter().map(|piece| self.bytes(piece)).collect()),
            without_store: self.recalled.is_unavailable,
            asked,
            plan: decision.plan,
            counted,
            model: model.clone(),
            left_out,
            memory_tokens,
            unedited,
            blocks,
            stop_hint,
            made: None,
            trouble,
            later: later.map(|(folding, job)| Later { folding, chat, job }),
        })
    }

    /// What the timeline lacks. A strategy that edits nothing is for those who want nothing to be kept either.
    fn unrecorded(&self, chat: &ParsedRequest) -> Entries {
        match &self.identity {
            Some(identity) if self.strategy != Strategy::Passthrough || self.holds_history => {
                let read = (&self.body, &self.outline);
                unrecorded(&self.gate.conversations, identity.key, &self.recalled, read, chat)
            }
            Some(_) | None => Entries::default(),
        }
    }

    fn bytes(&self, piece: &Piece) -> Bytes {
        match piece {
            Piece::Client(range) => self.body.slice(range.clone()),
            Piece::New(bytes) => bytes.clone(),
        }
    }
}

pub(crate) fn calibration_key(identity: Option<&Identity>, model: &Model) -> String {
    let tenant = identity.map_or("", |identity| identity.tenant.as_str());
    format!("{tenant} {}", model.name)
}

/// What goes out costs, before any correction.
fn counted(assessment: &Assessment, factor: f64, is_observed: bool) -> Tokens {
    let plan = &assessment.decision.plan;
    let forwarded = if is_observed { plan.before } else { plan.after };
    Tokens((forwarded.0 as f64 / factor).round() as u64)
}
