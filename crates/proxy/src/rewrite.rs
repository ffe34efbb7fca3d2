//! Measure, decide, splice: the request as it goes upstream.

use crate::assess::{Assessment, Question};
use crate::gate::{Gate, Snapshot};
use crate::identify::Identity;
use crate::reply::{OverBudget, Refusal};
use crate::timeline::unrecorded;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_config::Context;
use tidegate_engine::{Digest, Message, Plan, Strategy, Timestamp, Tokens, Verdict};
use tidegate_store::{Entries, Recalled};
use tidegate_tokens::{Model, is_loaded};
use tidegate_wire::{Chat, LookedUp, Outline, Piece};
use tracing::warn;

/// A chat completion on its way to be rewritten.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) gate: Arc<Gate>,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Which route, by its index.
    pub(crate) route: usize,
    pub(crate) strategy: Strategy,
    pub(crate) identity: Option<Identity>,
    pub(crate) recalled: Recalled,
    pub(crate) body: Bytes,
    pub(crate) outline: Outline,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The request in pieces; none if it is the client's own.
    pub(crate) pieces: Option<Vec<Bytes>>,
    pub(crate) plan: Plan,
    /// What has to be written of it before its answer ends.
    pub(crate) entries: Entries,
    /// How many messages it has, and the digest of the conversation with all of them.
    pub(crate) messages: usize,
    pub(crate) end: Option<Digest>,
    /// Whether the store did not answer when it was asked for this conversation.
    pub(crate) without_store: bool,
    /// What the client calls the model.
    pub(crate) asked: String,
    pub(crate) model: Arc<Model>,
    /// What the forwarded request costs by our own count, before any correction.
    pub(crate) counted: Tokens,
}

/// More than this many unread bytes, or messages, are not worked through on a worker: it would serve nobody else for
/// some hundreds of microseconds.
const MOST_UNSEEN: usize = 4 * 1024;
const MOST_MESSAGES: usize = 2_000;
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// A longer name of a model is no name. It is cut where it is kept.
const LONGEST_MODEL: usize = 128;

/// Cannot fail: what cannot be read or edited is forwarded as it came (`None`). It can only refuse what does not fit.
pub(crate) async fn rewrite(draft: Draft, now: Timestamp) -> Result<Option<Rewritten>, Refusal> {
    let model = draft.model();
    let looked_up = match draft.look_up(&model) {
        Some(looked_up) if looked_up.unseen <= MOST_UNSEEN => return draft.rewrite(&model, looked_up, now),
        looked_up => looked_up,
    };
    let heavy = move || {
        let looked_up = looked_up.unwrap_or_else(|| draft.question(&model).look_up(&draft.gate.reader));
        draft.rewrite(&model, looked_up, now)
    };
    match tokio::task::spawn_blocking(heavy).await {
        Ok(rewritten) => rewritten,
        Err(error) => {
            warn!(%error, "a request could not be rewritten and is forwarded as it came");
            Ok(None)
        }
    }
}

impl Draft {
    fn context(&self) -> &Context {
        &self.snapshot.settings.routes[self.route].context
    }

    fn model(&self) -> Arc<Model> {
        self.snapshot.models.lookup(self.outline.model.as_deref().unwrap_or_default())
    }

    /// Counts are corrected by what this model has reported before. Each tenant has corrections of its own, so that nobody's
    /// traffic moves anybody else's budget.
    fn calibration_key(&self, model: &Model) -> String {
        calibration_key(self.identity.as_ref(), model)
    }

    /// What is known of the messages; nothing where even that is too much for a worker.
    fn look_up(&self, model: &Arc<Model>) -> Option<LookedUp> {
        let is_light = self.body.len() <= MOST_BYTES
            && self.outline.messages.len() <= MOST_MESSAGES
            && is_loaded(model.encoding);
        is_light.then(|| self.question(model).look_up(&self.gate.reader))
    }

    fn question<'a>(&'a self, model: &'a Arc<Model>) -> Question<'a> {
        Question {
            body: &self.body,
            outline: &self.outline,
            context: self.context(),
            strategy: self.strategy,
            model,
            factor: self.gate.calibration.factor(&self.calibration_key(model)),
        }
    }

    fn rewrite(
        &self,
        model: &Arc<Model>,
        looked_up: LookedUp,
        now: Timestamp,
    ) -> Result<Option<Rewritten>, Refusal> {
        let question = self.question(model);
        let assessed = question.assess_from(looked_up, &self.gate.reader, &self.recalled.memory, now);
        // A message that cannot be read is for the upstream to judge.
        let Ok(assessment) = assessed else { return Ok(None) };
        let pieces = match assessment.pieces(&question) {
            Ok(pieces) => pieces,
            Err(error) => {
                warn!(%error, "a plan did not fit its request, which is forwarded as it came");
                return Ok(None);
            }
        };
        let counted = counted(&assessment, question.factor);
        let Assessment { chat, decision } = assessment;
        let observes = self.context().observe;
        if decision.plan.verdict == Verdict::OverBudget && !observes {
            return Err(Refusal::OverBudget(Box::new(OverBudget {
                plan: decision.plan,
                model: model.clone(),
            })));
        }
        let waypoint = decision.waypoint.filter(|waypoint| !self.recalled.knows(waypoint));
        let talk = |message: &&Message| !message.role.is_instruction();
        Ok(Some(Rewritten {
            entries: Entries { waypoint, ..self.unrecorded(&chat) },
            messages: chat.messages.len(),
            end: chat.messages.iter().rev().find(talk).map(|message| message.digest),
            pieces: pieces.map(|pieces| pieces.iter().map(|piece| self.bytes(piece)).collect()),
            without_store: self.recalled.is_unavailable,
            asked: self.outline.model.as_deref().unwrap_or_default().chars().take(LONGEST_MODEL).collect(),
            plan: decision.plan,
            counted,
            model: model.clone(),
        }))
    }

    /// What the timeline lacks. A strategy that edits nothing is for those who want nothing to be kept either.
    fn unrecorded(&self, chat: &Chat) -> Entries {
        match &self.identity {
            Some(identity) if self.strategy != Strategy::Passthrough => {
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

fn counted(assessment: &Assessment, factor: f64) -> Tokens {
    Tokens((assessment.decision.plan.after.0 as f64 / factor).round() as u64)
}
