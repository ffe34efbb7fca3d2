//! Measure, decide, splice: the request as it goes upstream.

use crate::assess::Rule;
use crate::course::{Course, Step};
use crate::draft::{Draft, LONGEST_MODEL, judge};
use crate::fold::Folding;
use crate::limit;
use crate::reply::{OverBudget, Refusal};
use crate::savings::Unedited;
use crate::server::Worker;
use crate::summarize::CallerKey;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_engine::{Budget, Cut, Digest, FoldJob, Message, Plan, Timestamp, Tokens, WindowFigures};
use tidegate_store::{BlockSizes, Entries};
use tidegate_telemetry::Trail;
use tidegate_tokens::Model;
use tidegate_wire::ParsedRequest;
use tracing::{debug, info, warn};

/// What became of a draft.
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
    /// What it would have cost as it came.
    pub(crate) unedited: Unedited,
    pub(crate) left_out: LeftOut,
    /// What the notes in it cost that are pinned to the conversation.
    pub(crate) memory_tokens: Tokens,
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

/// What of a request does not go out, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// What the masked observations would have cost, and how much less they do.
    pub(crate) masked: Tokens,
    pub(crate) by_masking: Tokens,
    /// What the messages would have cost that a summary or a marker stands for.
    pub(crate) folded: Tokens,
    pub(crate) dropped: Tokens,
}

impl LeftOut {
    pub(crate) fn of(plan: &Plan, messages: &[Message]) -> LeftOut {
        let sum = |indexes: &[usize]| indexes.iter().map(|&index| messages[index].tokens).sum();
        LeftOut {
            masked: sum(&plan.masked),
            by_masking: plan.masked.iter().map(|&index| messages[index].saving()).sum(),
            folded: plan.folded.as_ref().map_or(Tokens::ZERO, |folded| sum(&folded.removed)),
            dropped: sum(&plan.dropped),
        }
    }
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
    pub(crate) folding: Folding,
    pub(crate) chat: ParsedRequest,
    pub(crate) job: FoldJob,
}

impl Later {
    pub(crate) async fn run(self) {
        if !self.folding.is_cooling() {
            // It says itself what goes wrong, and the next request wants it again.
            let _ = self.folding.fold(&self.chat, &self.job).await;
        }
    }
}

/// Cannot fail: what cannot be read or edited is forwarded as it came (`None`). It can only refuse what does not fit.
pub(crate) async fn rewrite(
    worker: &Arc<Worker>,
    draft: Draft,
    caller: CallerKey,
    trail: Trail,
    now: Timestamp,
) -> Result<Option<Rewritten>, Refusal> {
    let model = draft.model();
    let mut draft = Arc::new(draft);
    let Some(mut judged) = judge(&draft, &model, Rule::Decide, now).await else { return Ok(None) };
    if !draft.context().observe {
        let summaries = || limit::summarized(&draft.recalled.folds, &draft.snapshot.models);
        let spent = draft.spent.map(|spent| spent + summaries());
        limit::check(&draft.context().limits, &judged.assessment.chat.messages, spent)?;
    }
    let (mut course, mut made_for_it) = (Course::new(), None);
    let folding = |draft: &Arc<Draft>| Folding {
        worker: worker.clone(),
        draft: draft.clone(),
        caller: caller.clone(),
        model: model.clone(),
        trail: trail.clone(),
    };
    loop {
        let job = match course.next(draft.context(), &judged.assessment.decision) {
            Step::Fold(job) => job,
            Step::Truncate => {
                let Some(again) = judge(&draft, &model, Rule::Truncate, now).await else { return Ok(None) };
                judged = again;
                continue;
            }
            Step::Stand => break,
        };
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
            Err(reason) => course.failed(reason, !is_cooling, &job, &judged.assessment.decision),
        }
    }
    let trouble = course.trouble;
    let later = course.later(draft.context(), &judged.assessment.decision).cloned();
    let later = later.map(|job| (folding(&draft), job));
    let rewritten = draft
        .rewritten(&model, judged, trouble, later, now)
        .map_err(|over| Refusal::OverBudget(Box::new(OverBudget { made: made_for_it, ..*over })))?;
    Ok(Some(Rewritten { made: made_for_it, ..rewritten }))
}

/// The arithmetic of a window, as it was done.
pub(crate) fn log_window(model: &str, plan: &Plan) {
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
