//! Measure, decide, splice: the request as it goes upstream.

use crate::assess::{Assessment, Question, Rule};
use crate::fold::Folding;
use crate::gate::{Gate, Snapshot};
use crate::identify::Identity;
use crate::limit;
use crate::look::Look;
use crate::pinned_message::PinnedMessage;
use crate::plateau::plateau;
use crate::reply::{OverBudget, Refusal};
use crate::server::Worker;
use crate::summarize::CallerKey;
use crate::summary_message::{SummaryMessage, before_blocks};
use crate::timeline::unrecorded;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_config::{Context, FoldMode, Unit};
use tidegate_engine::{
    Budget, Cut, Digest, FoldJob, Message, Plan, Strategy, Timestamp, Tokens, Verdict, WindowFigures,
};
use tidegate_store::{BlockSizes, Entries, Recalled, StoredFold};
use tidegate_tokens::{Model, is_loaded};
use tidegate_wire::Unit::Words;
use tidegate_wire::{Chat, LookedUp, Outline, Piece};
use tracing::{debug, info, warn};

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
    /// What the masked observations would have cost.
    pub(crate) masked_tokens: Tokens,
    /// How large its blocks are, where they have limits.
    pub(crate) blocks: Option<BlockSizes>,
    /// How many turns have brought nothing new, where that is worth a hint.
    pub(crate) stop_hint: Option<u32>,
    /// The summary that was made for it.
    pub(crate) made: Option<Made>,
    /// Why a summary that it waited for is not there.
    pub(crate) trouble: Option<&'static str>,
    /// A summary for the next request.
    pub(crate) later: Option<Later>,
}

/// A summary that a request has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// Whether more had to go than a summary usually takes.
    pub(crate) has_pruned: bool,
    /// What the request would use if all of that had stayed.
    pub(crate) unpruned: Option<Tokens>,
}

/// A summary that nobody waits for.
#[derive(Debug)]
pub(crate) struct Later {
    folding: Folding,
    chat: Chat,
    job: FoldJob,
}

impl Later {
    pub(crate) async fn run(self) {
        if !self.folding.is_cooling() {
            // It says itself what goes wrong, and the next request wants it again.
            let _ = self.folding.fold(&self.chat, &self.job).await;
        }
    }
}

/// More than this many unread bytes, or messages, are not worked through on a worker: it would serve nobody else for
/// some hundreds of microseconds.
const MOST_UNSEEN: usize = 4 * 1024;
const MOST_MESSAGES: usize = 2_000;
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// A longer name of a model is no name. It is cut where it is kept.
const LONGEST_MODEL: usize = 128;

/// A plan, ready to be carried out.
struct Judged {
    assessment: Assessment,
    pieces: Option<Vec<Piece>>,
    entries: Entries,
    factor: f64,
}

/// So many summaries one request waits for. Each reaches as far as it may, so a second one is rare.
const MOST_FOLDS: usize = 2;

/// Cannot fail: what cannot be read or edited is forwarded as it came (`None`). It can only refuse what does not fit.
pub(crate) async fn rewrite(
    worker: &Arc<Worker>,
    draft: Draft,
    caller: CallerKey,
    now: Timestamp,
) -> Result<Option<Rewritten>, Refusal> {
    let model = draft.model();
    let mut draft = Arc::new(draft);
    let Some(mut judged) = judge(&draft, &model, Rule::Decide, now).await else { return Ok(None) };
    limit::check(&draft.context().limits, &judged.assessment.chat.messages, draft.spent)?;
    let (mut trouble, mut made_for_it) = (None, None);
    let folding = |draft: &Arc<Draft>| Folding {
        worker: worker.clone(),
        draft: draft.clone(),
        caller: caller.clone(),
        model: model.clone(),
    };
    for _ in 0..MOST_FOLDS {
        let Some(job) = judged.wanted(&draft) else { break };
        let folding = folding(&draft);
        let is_cooling = folding.is_cooling();
        let made = if is_cooling {
            Err("summarizer_cooling")
        } else {
            folding.fold(&judged.assessment.chat, &job).await
        };
        drop(folding);
        match made {
            Ok(fold) => {
                draft = draft.with(fold);
                let (summary, kept) = draft
                    .summaries
                    .last()
                    .map_or((Tokens::ZERO, 0), |one| (one.fold.tokens, one.fold.kept.len()));
                made_for_it = Some(Made {
                    has_pruned: job.prunes(&judged.assessment.chat.messages, kept),
                    unpruned: job.spared.map(|spared| spared.rest + summary),
                });
                let Some(again) = judge(&draft, &model, Rule::Decide, now).await else { return Ok(None) };
                judged = again;
                // What the summary was made for is why this request is what it is.
                judged.assessment.decision.plan.cause.get_or_insert(job.cause);
            }
            Err(reason) => {
                trouble = (!is_cooling || judged.is_over()).then_some(reason);
                break;
            }
        }
    }
    if judged.is_over() && trouble.is_some() {
        let Some(again) = judge(&draft, &model, Rule::Truncate, now).await else { return Ok(None) };
        judged = again;
    }
    let later =
        judged.assessment.decision.wanted.clone().filter(|_| trouble.is_none() && !draft.context().observe);
    let later = later.map(|job| (folding(&draft), job));
    let rewritten = draft
        .rewritten(&model, judged, trouble, later)
        .map_err(|over| Refusal::OverBudget(Box::new(OverBudget { made: made_for_it, ..*over })))?;
    Ok(Some(Rewritten { made: made_for_it, ..rewritten }))
}

/// Reads and decides: at once, or out of everybody's way where that takes long.
async fn judge(draft: &Arc<Draft>, model: &Arc<Model>, rule: Rule, now: Timestamp) -> Option<Judged> {
    let looked_up = match draft.look_up(model) {
        Some(looked_up) if looked_up.unseen <= MOST_UNSEEN => {
            return draft.judge(model, looked_up, rule, now);
        }
        looked_up => looked_up,
    };
    let (draft, model) = (draft.clone(), model.clone());
    let heavy = move || {
        let looked_up = looked_up.unwrap_or_else(|| draft.question(&model).look_up(&draft.gate.reader));
        draft.judge(&model, looked_up, rule, now)
    };
    match tokio::task::spawn_blocking(heavy).await {
        Ok(judged) => judged,
        Err(error) => {
            warn!(%error, "a request could not be rewritten and is forwarded as it came");
            None
        }
    }
}

impl Judged {
    fn is_over(&self) -> bool {
        self.assessment.decision.plan.verdict == Verdict::OverBudget
    }

    /// The summary that this request should wait for.
    fn wanted(&self, draft: &Draft) -> Option<FoldJob> {
        let context = draft.context();
        let waits = |job: &&FoldJob| job.is_urgent() || context.fold.mode == FoldMode::Inline;
        self.assessment.decision.wanted.as_ref().filter(waits).filter(|_| !context.observe).cloned()
    }
}

impl Draft {
    /// With the messages of our own that the conversation has, as this route shows them.
    pub(crate) fn dressed(mut self) -> Draft {
        let model = self.model();
        let look = Look::of(self.context(), &model, self.recalled.pinned.as_deref());
        let pinned = look.pinned.map(|text| PinnedMessage::of(text, &look));
        let summaries = match self.strategy {
            Strategy::Summarization | Strategy::Hybrid => {
                self.recalled.folds.iter().filter_map(|fold| SummaryMessage::of(fold, &look)).collect()
            }
            Strategy::Passthrough | Strategy::Masking | Strategy::Window => Vec::new(),
        };
        (self.pinned, self.summaries) = (pinned, summaries);
        self
    }

    pub(crate) fn context(&self) -> &Context {
        &self.snapshot.settings.routes[self.route].context
    }

    pub(crate) fn route_name(&self) -> &str {
        &self.snapshot.settings.routes[self.route].name
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
    fn with(self: Arc<Self>, fold: StoredFold) -> Arc<Draft> {
        let mut draft = Arc::unwrap_or_clone(self);
        let look = Look::of(draft.context(), &draft.model(), draft.recalled.pinned.as_deref());
        let summary = SummaryMessage::of(&fold, &look);
        draft.summaries.extend(summary);
        draft.recalled.folds.push(fold);
        Arc::new(draft)
    }

    fn judge(&self, model: &Arc<Model>, looked_up: LookedUp, rule: Rule, now: Timestamp) -> Option<Judged> {
        let question = self.question(model);
        // A message that cannot be read is for the upstream to judge.
        let assessment =
            question.assess_from(looked_up, &self.gate.reader, &self.recalled.memory, rule, now).ok()?;
        let pieces = match assessment.pieces(&question) {
            Ok(pieces) => pieces,
            Err(error) => {
                warn!(%error, "a plan did not fit its request, which is forwarded as it came");
                return None;
            }
        };
        let entries = self.unrecorded(&assessment.chat);
        Some(Judged { assessment, pieces, entries, factor: question.factor })
    }

    fn rewritten(
        &self,
        model: &Arc<Model>,
        judged: Judged,
        trouble: Option<&'static str>,
        later: Option<(Folding, FoldJob)>,
    ) -> Result<Rewritten, Box<OverBudget>> {
        let Judged { assessment, pieces, entries, factor } = judged;
        let counted = counted(&assessment, factor);
        let Assessment { chat, decision, .. } = assessment;
        let asked = self.outline.model.as_deref().unwrap_or_default().chars().take(LONGEST_MODEL).collect();
        let talk = |message: &&Message| !message.role.is_instruction();
        let end = chat.messages.iter().rev().find(talk).map(|message| message.digest);
        if decision.plan.verdict == Verdict::OverBudget && !self.context().observe {
            let over = OverBudget { plan: decision.plan, model: model.clone(), asked, end, made: None };
            return Err(Box::new(over));
        }
        log_window(self.outline.model.as_deref().unwrap_or_default(), &decision.plan);
        let waypoint = decision.waypoint.filter(|waypoint| !self.recalled.knows(waypoint));
        let masked = decision.plan.masked.iter().map(|&index| chat.messages[index].tokens);
        let (masked_tokens, blocks) = (masked.sum(), self.block_sizes(model, &chat, &decision.plan));
        let window = self.context().limits.plateau_window;
        let stop_hint = window.and_then(|most| plateau(&self.body, &self.outline, &chat, most.get()));
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
            masked_tokens,
            blocks,
            stop_hint,
            made: None,
            trouble,
            later: later.map(|(folding, job)| Later { folding, chat, job }),
        })
    }

    /// How large the blocks were and are.
    fn block_sizes(&self, model: &Model, chat: &Chat, plan: &Plan) -> Option<BlockSizes> {
        let figures = plan.blocks?;
        let look = Look::of(self.context(), model, self.recalled.pinned.as_deref());
        let talk = chat.messages.iter().filter(|message| !message.role.is_instruction());
        let used = plan
            .folded
            .as_ref()
            .and_then(|folded| self.recalled.folds.iter().find(|fold| fold.covers == folded.covers));
        let (summary_before, removed_lines) = used.map_or((0, 0), |fold| before_blocks(fold, &look));
        let sizes = BlockSizes {
            memory_before: look.pinned.map_or(0, |text| look.size(text).0),
            memory_after: figures.memory_max.0,
            summary_before,
            summary_after: figures.summary_max.0,
            history_before: talk.map(|message| message.size).sum::<Tokens>().0,
            history_after: figures.history.0,
            removed_lines,
            fell_back_to_words: self.context().unit == Unit::Tokens && look.unit == Words,
        };
        debug!(?sizes, "the blocks of a request");
        Some(sizes)
    }

    /// What the timeline lacks. A strategy that edits nothing is for those who want nothing to be kept either.
    fn unrecorded(&self, chat: &Chat) -> Entries {
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

/// The arithmetic of a window, as it was done.
fn log_window(model: &str, plan: &Plan) {
    let Some(WindowFigures { scaffold, room, history, cut }) = plan.window else { return };
    let Budget { window, safe, output, overhead, .. } = plan.budget;
    let model: String = model.chars().take(LONGEST_MODEL).collect();
    let Some(Cut { average, head_room, tail_room, planned, kept }) = cut else {
        debug!(%model, model_limit = window.0, safe_budget = safe.0, scaffold = (scaffold + overhead).0, output_reserve = output.0,
            story_budget = room.0, actual_story = history.0, "the budget of a window, which holds all of it");
        return;
    };
    info!(%model, model_limit = window.0, safe_budget = safe.0, scaffold = (scaffold + overhead).0, scaffold_raw = scaffold.0,
        fixed_reserve = overhead.0, output_reserve = output.0, story_budget = room.0, actual_story = history.0,
        "the budget of a window, which is over");
    info!(
        average = average.0,
        start_budget = head_room.0,
        start_turns = planned.0,
        end_budget = tail_room.0,
        end_turns = planned.1,
        "head and tail by their shares"
    );
    if kept != planned {
        warn!(
            "adaptive truncation reduced head and tail to {}+{} (from {}+{}) to fit the budget",
            kept.0, kept.1, planned.0, planned.1
        );
    }
}

pub(crate) fn calibration_key(identity: Option<&Identity>, model: &Model) -> String {
    let tenant = identity.map_or("", |identity| identity.tenant.as_str());
    format!("{tenant} {}", model.name)
}

fn counted(assessment: &Assessment, factor: f64) -> Tokens {
    Tokens((assessment.decision.plan.after.0 as f64 / factor).round() as u64)
}
