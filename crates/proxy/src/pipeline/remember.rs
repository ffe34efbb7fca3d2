//! Stores a turn.
//!
//! The state that the next request of the conversation needs is written while the upstream works, and the answer does not end before
//! it is stored. Records and counts are written afterwards. A shutdown waits for both.

use crate::host::archive;
use crate::host::calibrations::Fact;
use crate::host::fold::Folder;
use crate::host::held_turn::{HeldTurn, KeptTurn};
use crate::host::recalls::Recalls;
use crate::host::shared::Gateway;
use crate::host::turn_log::{AnswerRead, AnswerReports, TurnLog};
use crate::observe::request::{RequestFacts, RequestObserver};
use crate::pipeline::answer_reader::AnswerReader;
use crate::pipeline::journal::JournalWrite;
use crate::pipeline::rewrite::Rewritten;
use crate::pipeline::route::limits_cost;
use crate::reply::upstream_failure::FailureKind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_config::{Route, Upstream};
use tidegate_context::{Figures, FoldRequest};
use tidegate_engine::Tokens;
use tidegate_store::{Degraded, NotKept};
use tidegate_telemetry::names::span;
use tidegate_telemetry::{Labels, Outcome};
use tidegate_tokens::Fit;
use tidegate_wire::Answer;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// A forwarded request whose turn is not over.
#[derive(Debug)]
pub(crate) struct PendingTurn {
    gateway: Arc<Gateway>,
    tasks: TaskTracker,
    journal: JournalWrite,
    answer: AnswerWrite,
    /// Where the history is ours to keep.
    held: Option<HeldTurn>,
    log: Option<Box<TurnLog>>,
    /// A summary to make when the answer is over.
    fold: Option<Box<(Folder, FoldRequest)>>,
    /// Where calls of the recall tool are answered.
    recalls: Option<Arc<Recalls>>,
    /// Until the answer is read.
    sample: Option<CalibrationSample>,
    /// The answer, once it was read for the sample.
    read: Option<Box<Answer>>,
    /// What the sample has taught, on its way to the other processes.
    learning: Option<JoinHandle<()>>,
    /// Where the window was learnt from the upstream: who has named it, and for which model.
    learnt: Option<Box<(Arc<Upstream>, String)>>,
    /// What the turn counts as in the metrics, once it is over.
    plan: Option<Box<(Labels, Figures)>>,
    counting: CostCount,
}

/// Where the cost of a conversation is limited, the end of the answer waits until the turn is counted: otherwise the next request
/// could pass a limit that this one has reached.
#[derive(Debug)]
enum CostCount {
    /// The turn is counted after its answer.
    Unlimited,
    Waiting,
    Running(JoinHandle<()>),
}

/// Where the history is ours to keep, the end of the answer also waits until the turn is in it: the client must not take a turn for
/// done that the next request will not know.
#[derive(Debug)]
enum AnswerWrite {
    /// The client will send the answer back.
    NotOurs,
    Waiting,
    Running(JoinHandle<Result<KeptTurn, NotKept>>),
    Done(Result<Option<KeptTurn>, FailureKind>),
}

/// Our own count, to be compared with the upstream's. Only taken where the tokenizer is not the model's own.
#[derive(Debug)]
struct CalibrationSample {
    /// `None` if the tenant is not known, whose calibration then stays in this process.
    tenant: Option<String>,
    model: String,
    counted: Tokens,
    /// Whether the request has waited for the store in vain. It does not wait again.
    is_store_unavailable: bool,
}

impl PendingTurn {
    /// Begins to write what the next request needs.
    pub(crate) fn begin(
        folder: &Folder,
        mut rewritten: Rewritten,
        route: &Route,
        observer: &RequestObserver,
    ) -> PendingTurn {
        let (worker, identity) = (&folder.worker, folder.identity.clone());
        let (gateway, tasks) = (&worker.gateway, &worker.shutdown.tasks);
        if let (Some(archive), Some(identity)) = (&gateway.archive, &identity) {
            archive::messages(archive, identity, &route.name, &rewritten.entries);
        }
        let journal = JournalWrite::begin(folder, &mut rewritten, observer);
        let deferred = rewritten.outcome.deferred.take();
        let held = rewritten.held.take();
        let Rewritten { input, outcome, is_store_unavailable, generation, .. } = &rewritten;
        let tenant = identity.as_ref().map(|identity| identity.tenant.clone());
        let log = identity.filter(|_| input.is_counted()).map(|identity| {
            let reports = observer.labels().cloned().map(|labels| AnswerReports {
                dialect: input.outline.dialect,
                labels,
                span: observer.span.clone(),
                call: None,
                with_content: folder.snapshot.settings.telemetry.content,
            });
            Box::new(TurnLog::new((identity, *generation), &route.name, input, outcome, reports))
        });
        let plan = observer.labels().map(|labels| Box::new((labels.clone(), outcome.figures)));
        let waits = limits_cost(route) && log.is_some() && !is_store_unavailable;
        let counted = TurnLog::count_of(input, outcome);
        let is_only_observed = route.context.observe && outcome.figures.before != outcome.figures.after;
        // What the provider takes away, or has before these messages, is in its count and not in ours.
        let is_elsewhere = outcome.figures.is_native || outcome.figures.continues_upstream;
        let is_comparable = !is_only_observed && !is_elsewhere;
        let sample = (input.model.fit == Fit::Nearest && is_comparable).then(|| CalibrationSample {
            tenant,
            model: input.model.name.clone(),
            counted,
            is_store_unavailable: *is_store_unavailable,
        });
        let learnt = input.learnt_window.filter(|_| !is_elsewhere);
        let learnt = learnt.map(|_| Box::new((route.upstream.clone(), rewritten.served.clone())));
        PendingTurn {
            gateway: gateway.clone(),
            tasks: tasks.clone(),
            journal,
            answer: if held.is_some() { AnswerWrite::Waiting } else { AnswerWrite::NotOurs },
            held,
            log,
            fold: start_fold(folder, deferred),
            recalls: None,
            sample,
            read: None,
            learning: None,
            learnt,
            plan,
            counting: if waits { CostCount::Waiting } else { CostCount::Unlimited },
        }
    }

    /// Whether the request is kept in memory until the answer ends.
    pub(crate) fn keeps_request(&self) -> bool {
        self.held.is_some() || self.fold.is_some() || self.recalls.is_some()
    }

    /// The answer may be followed by others, for which the request is kept. They are billed with it.
    pub(crate) fn may_recall(&mut self, recalls: &Arc<Recalls>) {
        self.recalls = Some(recalls.clone());
        if let Some(log) = &mut self.log {
            log.recalls = recalls.clone();
        }
    }

    /// Ready when the client may get the end of the answer, or must be told that the turn was not kept.
    pub(crate) fn poll_settled(
        &mut self,
        reader: &AnswerReader,
        observer: &mut RequestObserver,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), FailureKind>> {
        ready!(self.journal.poll(cx));
        if let Some(sample) = self.sample.take() {
            self.learning = self.learn(&sample, reader);
        }
        if let Some(task) = &mut self.learning {
            let _ = ready!(Pin::new(task).poll(cx));
            self.learning = None;
        }
        if matches!(self.answer, AnswerWrite::Waiting) {
            self.answer = self.write_answer(reader);
        }
        if let AnswerWrite::Running(task) = &mut self.answer {
            let kept = ready!(Pin::new(task).poll(cx)).unwrap_or(Err(NotKept::Unknown(Degraded::Failed)));
            self.answer = AnswerWrite::Done(kept.map(Some).map_err(|not_kept| match not_kept {
                NotKept::Conflict => FailureKind::Conflict,
                NotKept::Gone => FailureKind::Deleted,
                NotKept::Unknown(_) => FailureKind::Unsaved,
            }));
        }
        if let AnswerWrite::Done(Err(kind)) = &self.answer {
            return Poll::Ready(Err(*kind));
        }
        if matches!(self.counting, CostCount::Waiting) {
            self.counting = self.count(reader, observer);
        }
        if let CostCount::Running(task) = &mut self.counting {
            let _ = ready!(Pin::new(task).poll(cx));
            self.counting = CostCount::Unlimited;
        }
        Poll::Ready(Ok(()))
    }

    /// The client's connection has the end of the answer, so the next turn may begin.
    pub(crate) fn delivered(&mut self) {
        if let AnswerWrite::Done(Ok(kept)) = &mut self.answer
            && let Some(kept) = kept.take()
        {
            kept.delivered();
        }
    }

    /// The upstream has refused the request: where the history is ours, the turn is not part of it.
    pub(crate) fn not_answered(&mut self) {
        if self.held.take().is_some() {
            self.answer = AnswerWrite::Done(Ok(None));
        }
    }

    /// Appends the turn to the log, if its answer is complete. Otherwise the turn is abandoned.
    fn write_answer(&mut self, reader: &AnswerReader) -> AnswerWrite {
        let (Some(log), Some(held)) = (&self.log, &mut self.held) else { return AnswerWrite::Done(Ok(None)) };
        let Some(answer) = reader.answer() else { return AnswerWrite::Done(Err(FailureKind::Unsaved)) };
        let is_complete = reader.is_done() || !answer.finish_reasons.is_empty();
        match log.answer_to_keep(&answer).filter(|_| is_complete) {
            Some((hash, message)) => {
                held.keep(hash, message).map_or(AnswerWrite::Done(Ok(None)), AnswerWrite::Running)
            }
            // The client must not rely on an answer that is too long to keep.
            None if answer.truncated => AnswerWrite::Done(Err(FailureKind::Unsaved)),
            // The upstream has failed, and the client sees that.
            None => AnswerWrite::Done(Ok(None)),
        }
    }

    /// Takes the turn of a history that is ours to keep, for a second attempt.
    pub(crate) fn take_held(&mut self) -> Option<HeldTurn> {
        self.answer = AnswerWrite::NotOurs;
        self.held.take()
    }

    /// Why the journal could not be written, if that is known by now.
    pub(crate) fn failure(&mut self) -> Option<Degraded> {
        self.journal.failure()
    }

    /// Learns from the usage of a complete answer. Returns the write that the end of the answer waits for, so that the next request
    /// is measured the same by whatever process gets it.
    fn learn(&mut self, sample: &CalibrationSample, reader: &AnswerReader) -> Option<JoinHandle<()>> {
        let answer = reader.answer()?;
        let usage = answer.usage;
        self.read = Some(Box::new(answer));
        // After a recall, the client has the answer to a longer request than the one that was counted.
        let usage = self.recalls.as_ref().map_or(usage, |recalls| recalls.of_first(usage));
        let reported = Tokens(usage?.prompt_tokens);
        let (gateway, tenant) = (self.gateway.clone(), sample.tenant.as_deref());
        let fact = gateway.calibrations.observe(tenant, &sample.model, sample.counted, reported);
        let fact: Fact = fact.filter(|_| !sample.is_store_unavailable)?;
        let publish = async move { gateway.calibrations.publish(&gateway.conversations, fact).await };
        Some(self.tasks.spawn(publish))
    }

    /// Counts a turn whose answer the upstream has ended.
    fn count(&mut self, reader: &AnswerReader, observer: &mut RequestObserver) -> CostCount {
        let Some(log) = self.log.take() else { return CostCount::Unlimited };
        observer.degrade(self.failure().map(Degraded::reason));
        let outcome = match reader.is_failed() {
            true => Outcome::UpstreamError,
            false => observer.outcome_of_answer(),
        };
        let facts = RequestFacts { outcome, ..observer.facts() };
        let answer = self.read.take().map(|answer| *answer).or_else(|| reader.answer());
        self.outgrow(answer.as_ref());
        let write = self.written(log, facts, observer, answer, reader.most_tokens());
        CostCount::Running(self.tasks.spawn(write))
    }

    /// Forgets the window that the upstream has named, if the answer is to a longer request.
    fn outgrow(&mut self, answer: Option<&Answer>) {
        let Some((upstream, model)) = self.learnt.take().map(|learnt| *learnt) else { return };
        let Some(usage) = answer.and_then(|answer| answer.usage) else { return };
        let accepted = Tokens(usage.prompt_tokens);
        let gateway = self.gateway.clone();
        if gateway.windows.get(&upstream, &model).is_none_or(|window| window >= accepted) {
            return;
        }
        let outgrow = async move {
            gateway.windows.outgrow(&gateway.conversations, &upstream, &model, accepted).await;
        };
        if let Ok(runtime) = Handle::try_current() {
            drop(self.tasks.spawn_on(outgrow, &runtime));
        }
    }

    /// Writes the turn and all that is counted of it.
    fn written(
        &self,
        mut log: Box<TurnLog>,
        facts: RequestFacts,
        observer: &mut RequestObserver,
        answer: Option<Answer>,
        tokens: Tokens,
    ) -> impl Future<Output = ()> + use<> {
        let has_answer = facts.status.is_success();
        log.note(facts, observer.call.take());
        let step = observer.span.parent().step(span::REMEMBER);
        // A turn whose history is ours is in the log, or was abandoned.
        let is_kept = !matches!(self.answer, AnswerWrite::NotOurs);
        let gateway = self.gateway.clone();
        async move {
            let read = match &answer {
                // What was too long to keep is not counted in what was kept.
                Some(answer)
                    if has_answer && (answer.usage.is_some() || answer.failed || !answer.truncated) =>
                {
                    AnswerRead::Read(answer)
                }
                Some(_) | None if has_answer => AnswerRead::Unreadable { tokens },
                Some(_) | None => AnswerRead::Nothing,
            };
            log.write(&gateway, read, is_kept).await;
            drop(step);
        }
    }

    /// The turn counts as it was sent last: a request that was refused and sent again, shortened, is one turn.
    fn count_plan(&mut self) {
        if let Some((labels, figures)) = self.plan.take().map(|plan| *plan) {
            self.gateway.metrics().planned(&labels, &figures);
        }
    }

    /// The answer is over: starts the deferred fold, and has the turn written.
    pub(crate) fn finish(mut self, reader: AnswerReader, observer: &mut RequestObserver) {
        self.count_plan();
        let answer = self.read.take().map(|answer| *answer);
        observer.degrade(self.failure().map(Degraded::reason));
        // There is no runtime if the process ends while the answer is under way.
        let Ok(runtime) = Handle::try_current() else { return };
        let facts = observer.facts();
        let has_answer = facts.status.is_success();
        if let Some((folder, request)) = self.fold.take().filter(|_| has_answer).map(|fold| *fold) {
            drop(self.tasks.spawn_on(folder.fold_in_background(request), &runtime));
        }
        let answer = match self.learnt.is_some() || self.log.is_some() {
            true => answer.or_else(|| reader.answer()),
            false => None,
        };
        self.outgrow(answer.as_ref().filter(|_| has_answer));
        let Some(log) = self.log.take() else { return };
        let write = self.written(log, facts, observer, answer, reader.most_tokens());
        drop(self.tasks.spawn_on(write, &runtime));
    }

    /// There is no answer: the upstream gave none, or the client has left before it began. Has the turn written all the same.
    /// `is_sent` is whether the upstream may work on it all the same.
    pub(crate) fn abandon(mut self, facts: RequestFacts, is_sent: bool) {
        self.count_plan();
        let (Some(mut log), Ok(runtime)) = (self.log.take(), Handle::try_current()) else { return };
        log.note(facts, None);
        let gateway = self.gateway.clone();
        let read =
            if is_sent { AnswerRead::Unreadable { tokens: Tokens::ZERO } } else { AnswerRead::Nothing };
        let write = async move { log.write(&gateway, read, true).await };
        drop(self.tasks.spawn_on(write, &runtime));
    }
}

/// Starts a fold by a model at once, because it runs elsewhere. A fold by the built-in summarizer is returned, to start when the
/// answer is complete: it would take CPU time from relaying.
fn start_fold(folder: &Folder, deferred: Option<FoldRequest>) -> Option<Box<(Folder, FoldRequest)>> {
    let request = deferred?;
    if folder.is_built_in() {
        return Some(Box::new((folder.clone(), request)));
    }
    drop(folder.worker.shutdown.tasks.spawn(folder.clone().fold_in_background(request)));
    None
}
