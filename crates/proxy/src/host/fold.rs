//! Claims a conversation, runs its summarizer and stores the result.
//!
//! A model that fails, whose answer is cut off or that writes more than it replaces is stood in for by the built-in summarizer.
//!
//! Across all processes there is one fold at a time per conversation: the holder of the lease summarizes, others wait for the result
//! or go without.

use crate::host::archive;
use crate::host::heavy::Lane;
use crate::host::identity::Identity;
use crate::host::saved_fold;
use crate::host::shared::Gateway;
use crate::host::snapshot::Snapshot;
use crate::host::summarize::{CallerKey, Spent, Summarized, summarize};
use crate::host::summary_limits::SummaryPermit;
use crate::host::worker::Worker;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Fold, Route, Summarizer};
use tidegate_context::{Author, CompletedFold, FinishedFold, FoldFailure, FoldRequest, SavedFold};
use tidegate_engine::{FoldBackoff, Tokens};
use tidegate_store::{ConversationKey, FoldWritten, Generation};
use tidegate_telemetry::SpanParent;
use tidegate_telemetry::names::{attribute, span};
use tidegate_wire::Usage;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

/// Makes the summaries of one request. It can outlive the request.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) worker: Arc<Worker>,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The index of the route.
    pub(crate) route: usize,
    pub(crate) identity: Option<Identity>,
    /// The generation of the conversation as it was recalled.
    pub(crate) generation: Generation,
    pub(crate) caller: CallerKey,
    /// The parent of the fold's span.
    pub(crate) parent_span: SpanParent,
    /// Where the heavy work of the request is done.
    pub(crate) lane: Lane,
}

/// How long the built-in summarizer may take where it stands in for another, whose deadline may have passed.
const STAND_IN_TIMEOUT: Duration = Duration::from_secs(3);

/// How often a request that waits for another's summary looks for it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How much longer than its deadline a lease lasts, so that it never ends before the work.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// About the size of a summary.
const SUMMARY_BYTES: usize = 16 * 1024;

impl Folder {
    /// Whether the summarizer is the built-in one, which only needs CPU time.
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self.summarizer(), Summarizer::Extractive)
    }

    /// Makes the summary, or waits for whoever is making it.
    pub(crate) async fn fold(&self, request: &FoldRequest) -> Result<CompletedFold, FoldFailure> {
        let Some(key) = self.key() else { return Err(FoldFailure::NoConversation) };
        if self.is_built_in() && self.is_cooling_down(key) {
            return Err(FoldFailure::CoolingDown);
        }
        request.check(self.backoff(key))?;
        let step = self.parent_span.step(span::FOLD);
        let folded = self.fold_with_lease(key, request).await;
        if step.is_enabled() {
            let messages = i64::try_from(request.job.messages.len()).unwrap_or(i64::MAX);
            step.set(attribute::MESSAGES, messages);
            step.set(attribute::TRIGGER, request.job.cause.name());
            step.set(attribute::SUMMARIZER, self.settings().summarizer.clone());
            step.set(attribute::FOLD_OUTCOME, folded.as_ref().map_or_else(|error| error.reason(), outcome));
        }
        folded
    }

    /// Makes a summary that no request waits for.
    pub(crate) async fn fold_in_background(mut self, request: FoldRequest) {
        self.lane = self.lane.detached(request.input().body.len());
        // A failure is logged where it happens, and the next request wants the summary again.
        let _ = self.fold(&request).await;
    }

    async fn fold_with_lease(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
    ) -> Result<CompletedFold, FoldFailure> {
        let conversations = &self.worker.gateway.conversations;
        let deadline = Instant::now() + self.timeout();
        loop {
            let lease = conversations.claim(key, self.timeout() + LEASE_MARGIN).await;
            // The previous holder may have finished since we last looked.
            let known = self.stored(key, request).await;
            match (known, lease) {
                (Some(fold), lease) => {
                    if let Some(lease) = lease {
                        lease.release().await;
                    }
                    return Ok(CompletedFold { fold, stands_in_for: None });
                }
                (None, Some(lease)) => {
                    let made = self.make(key, request, deadline).await;
                    // Only now: the next holder must know that it failed.
                    lease.release().await;
                    return made;
                }
                (None, None) => {}
            }
            if !request.job.is_urgent() || Instant::now() >= deadline {
                return Err(FoldFailure::Busy);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Makes the summary with the configured summarizer or, if that fails, with the built-in one.
    async fn make(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
        deadline: Instant,
    ) -> Result<CompletedFold, FoldFailure> {
        if self.is_built_in() {
            let fold = self.extracted(key, request, deadline).await;
            return self.noting_uselessness(
                key,
                request,
                fold.map(|fold| CompletedFold { fold, stands_in_for: None }),
            );
        }
        let failure = if self.is_cooling_down(key) {
            FoldFailure::CoolingDown
        } else {
            match self.written(key, request, deadline).await {
                Ok(fold) => return Ok(CompletedFold { fold, stands_in_for: None }),
                Err(failure) => {
                    self.start_cool_down(key, failure);
                    warn!(
                        reason = failure.reason(),
                        "a summarizer failed; the built-in one stands in for a while"
                    );
                    failure
                }
            }
        };
        match self.extracted(key, request, Instant::now() + STAND_IN_TIMEOUT).await {
            Ok(fold) => Ok(CompletedFold { fold, stands_in_for: Some(failure) }),
            Err(FoldFailure::NoGain) => self.noting_uselessness(key, request, Err(failure)),
            Err(also_failed) => Err(also_failed),
        }
    }

    /// Has the configured model write the summary. One that does not shrink the request counts as failed.
    async fn written(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
        deadline: Instant,
    ) -> Result<SavedFold, FoldFailure> {
        let permit = self.admitted(deadline).await?;
        let summarized = self.summarized(request, self.summarizer(), deadline).await?;
        drop(permit);
        self.finish(key, request, summarized).await
    }

    /// Waits for a place at the summarizer, for half of the time that there is.
    async fn admitted(&self, deadline: Instant) -> Result<Option<SummaryPermit>, FoldFailure> {
        let Summarizer::Llm(llm) = self.summarizer() else { return Ok(None) };
        let tenant = self.identity.as_ref().map_or("", |identity| identity.tenant.as_str());
        let patience = deadline.duration_since(Instant::now()) / 2;
        let entered = self.worker.gateway.summaries.enter(llm, tenant, Instant::now() + patience);
        entered.await.map(Some)
    }

    /// Makes the summary with the built-in summarizer.
    async fn extracted(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
        deadline: Instant,
    ) -> Result<SavedFold, FoldFailure> {
        let made = match self.summarized(request, &Summarizer::Extractive, deadline).await {
            Ok(summarized) => self.finish(key, request, summarized).await,
            Err(failure) => Err(failure),
        };
        match made {
            Ok(_) | Err(FoldFailure::NoGain) => {}
            Err(failure) => {
                self.start_cool_down(key, failure);
                warn!(reason = failure.reason(), "cannot summarize a conversation; retrying after a pause");
            }
        }
        made
    }

    /// Remembers that no summary shrinks the request, so that it is tried again only when there is more to replace.
    fn noting_uselessness<T>(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
        made: Result<T, FoldFailure>,
    ) -> Result<T, FoldFailure> {
        if matches!(made, Err(FoldFailure::NoGain)) {
            let backoff = self.backoff(key).after_useless(request.job.worth);
            self.worker.gateway.conversations.set_fold_backoff(key, backoff);
        }
        made
    }

    async fn summarized(
        &self,
        request: &FoldRequest,
        summarizer: &Summarizer,
        deadline: Instant,
    ) -> Result<Summarized, FoldFailure> {
        let (clients, material) = ((&self.worker.clients, &self.lane), request.material());
        let made = summarize(clients, &self.snapshot, summarizer, material, &self.caller, deadline).await;
        match made {
            Ok(summarized) => {
                self.count(request, &summarized.spent, true);
                Ok(summarized)
            }
            Err(failure) => {
                self.count(request, &failure.spent, false);
                debug!(error = %failure.cause, "a summarizer failed");
                Err(failure.cause.fold_failure())
            }
        }
    }

    /// Caps the summary and stores it.
    async fn finish(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
        summarized: Summarized,
    ) -> Result<SavedFold, FoldFailure> {
        let author = Author {
            model: summarized.model,
            calls: summarized.spent.calls,
            prompt_tokens: summarized.spent.usage.prompt_tokens,
            completion_tokens: summarized.spent.usage.completion_tokens,
        };
        let (finishing, summary) = (request.clone(), summarized.summary);
        let finished = self.lane.run(SUMMARY_BYTES, move || finishing.finish(summary, author)).await;
        let FinishedFold { fold, cost, facts_added } = finished.map_err(|_| FoldFailure::Crashed)??;
        if request.prunes(&fold) {
            self.worker.gateway.metrics().pruned();
        }
        self.worker.gateway.metrics().facts_added(facts_added);
        self.save(key, request, fold, cost).await
    }

    /// Stores the summary. The first summary stored for a prefix is immutable; if another process was first, its summary counts.
    async fn save(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
        fold: SavedFold,
        cost: Tokens,
    ) -> Result<SavedFold, FoldFailure> {
        let gateway = &self.worker.gateway;
        let stored = saved_fold::encode(&fold, Gateway::now());
        if let (Some(archive), Some(identity)) = (&gateway.archive, &self.identity) {
            let first = request.first_message();
            archive::summary(archive, identity, &self.route().name, (&stored, &fold.state), first, cost);
        }
        // If it cannot be written, this process uses it anyway.
        if let Ok(FoldWritten::Other) = gateway.conversations.fold(key, self.fold_generation(), stored).await
        {
            return Ok(self.stored(key, request).await.unwrap_or(fold));
        }
        Ok(fold)
    }

    /// Returns the stored summary of the same messages.
    async fn stored(&self, key: ConversationKey, request: &FoldRequest) -> Option<SavedFold> {
        let folds = self.worker.gateway.conversations.recall(key).await.folds;
        folds.iter().find(|fold| fold.covers == request.job.covers).and_then(saved_fold::decode)
    }

    fn backoff(&self, key: ConversationKey) -> FoldBackoff {
        self.worker.gateway.conversations.fold_backoff(key)
    }

    fn is_cooling_down(&self, key: ConversationKey) -> bool {
        self.backoff(key).is_cooling(Gateway::now())
    }

    fn start_cool_down(&self, key: ConversationKey, failure: FoldFailure) {
        let backoff = self.backoff(key).after_failure(Gateway::now());
        self.worker.gateway.conversations.set_fold_backoff(key, backoff);
        self.worker.gateway.metrics().summary_failed(failure.reason());
    }

    fn count(&self, request: &FoldRequest, spent: &Spent, is_made: bool) {
        let Spent { usage, calls } = *spent;
        let cost = match self.summarizer() {
            Summarizer::Extractive => None,
            Summarizer::Llm(llm) => {
                let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = usage;
                let prices = self.snapshot.models.lookup(&llm.model).prices;
                prices.and_then(|prices| {
                    prices.cost(Tokens(prompt_tokens), Tokens(cached_tokens), Tokens(completion_tokens))
                })
            }
        };
        let (input, output) = (usage.prompt_tokens, usage.completion_tokens);
        let gateway = &self.worker.gateway;
        if let (Summarizer::Llm(llm), Some(cost)) = (self.summarizer(), cost) {
            gateway.summaries.spent(llm, cost);
        }
        let input_of = request.input();
        let (model, dialect) = (input_of.requested_model(), input_of.outline.dialect);
        let labels = gateway.labels(&self.snapshot, self.route(), model, dialect);
        gateway
            .metrics()
            .summarized(&labels, &tidegate_telemetry::Summarized { calls, input, output, cost, is_made });
    }

    fn key(&self) -> Option<ConversationKey> {
        self.identity.as_ref().map(Identity::fold_key)
    }

    /// The generation of the place where summaries are stored. Branches are deleted with the record of their conversation.
    fn fold_generation(&self) -> Generation {
        let is_branch = self.identity.as_ref().is_some_and(|identity| identity.branch.is_some());
        if is_branch { Generation::default() } else { self.generation }
    }

    fn route(&self) -> &Route {
        &self.snapshot.settings.routes[self.route]
    }

    fn settings(&self) -> &Fold {
        &self.route().context.fold
    }

    fn summarizer(&self) -> &Summarizer {
        let named = self.snapshot.settings.summarizers.get(&self.settings().summarizer);
        // The configuration accepts only defined names and the built-in one's.
        named.unwrap_or(&Summarizer::Extractive)
    }

    fn timeout(&self) -> Duration {
        self.summarizer().timeout(self.settings().timeout)
    }
}

/// What a finished fold is called in its span.
fn outcome(completed: &CompletedFold) -> &'static str {
    completed.stands_in_for.map_or("made", FoldFailure::reason)
}
