//! Claims a conversation, runs its summarizer and stores the result.
//!
//! Across all processes there is one fold at a time per conversation: the holder of the lease summarizes, others wait for the result
//! or go without.

use crate::host::archive;
use crate::host::identity::Identity;
use crate::host::saved_fold;
use crate::host::shared::Gateway;
use crate::host::snapshot::Snapshot;
use crate::host::summarize::{CallerKey, Spent, summarize};
use crate::host::worker::Worker;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Fold, Route, Summarizer};
use tidegate_context::{Author, FoldFailure, FoldRequest, SavedFold};
use tidegate_engine::Tokens;
use tidegate_store::{ConversationKey, FoldWritten, Generation};
use tidegate_telemetry::names::{attribute, span};
use tidegate_telemetry::{SpanParent, Summarized};
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
}

/// How long a failed summary is not retried.
const COOL_DOWN: Duration = Duration::from_secs(60);

/// How often a request that waits for another's summary looks for it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How much longer than its deadline a lease lasts, so that it never ends before the work.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

impl Folder {
    /// Whether the summarizer is the built-in one, which only needs CPU time.
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self.summarizer(), Summarizer::Extractive)
    }

    /// Makes the summary, or waits for whoever is making it.
    pub(crate) async fn fold(&self, request: &FoldRequest) -> Result<SavedFold, FoldFailure> {
        let Some(key) = self.key() else { return Err(FoldFailure::NoConversation) };
        if self.is_cooling_down(key) {
            return Err(FoldFailure::CoolingDown);
        }
        let step = self.parent_span.step(span::FOLD);
        let folded = self.fold_with_lease(key, request).await;
        if step.is_enabled() {
            let messages = i64::try_from(request.job.messages.len()).unwrap_or(i64::MAX);
            step.set(attribute::MESSAGES, messages);
            step.set(attribute::TRIGGER, request.job.cause.name());
            step.set(attribute::SUMMARIZER, self.settings().summarizer.clone());
            step.set(
                attribute::FOLD_OUTCOME,
                folded.as_ref().map_or_else(|error| error.reason(), |_| "made"),
            );
        }
        folded
    }

    /// Makes a summary that no request waits for.
    pub(crate) async fn fold_in_background(self, request: FoldRequest) {
        // A failure is logged where it happens, and the next request wants the summary again.
        let _ = self.fold(&request).await;
    }

    async fn fold_with_lease(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
    ) -> Result<SavedFold, FoldFailure> {
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
                    return Ok(fold);
                }
                (None, Some(lease)) => {
                    let made = self.make(key, request, deadline).await;
                    if let Err(failure) = made {
                        self.start_cool_down(key, failure);
                    }
                    // Only now: the next holder must know that it failed.
                    lease.release().await;
                    return made;
                }
                (None, None) => {}
            }
            if !request.job.is_urgent() || self.is_cooling_down(key) || Instant::now() >= deadline {
                return Err(FoldFailure::Busy);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn make(
        &self,
        key: ConversationKey,
        request: &FoldRequest,
        deadline: Instant,
    ) -> Result<SavedFold, FoldFailure> {
        let (clients, material) = (&self.worker.clients, request.material());
        let made =
            summarize(clients, &self.snapshot, self.summarizer(), material, &self.caller, deadline).await;
        let summarized = made.map_err(|failure| {
            self.count(request, &failure.spent, false);
            debug!(error = %failure.cause, "a summarizer failed");
            failure.cause.fold_failure()
        })?;
        self.count(request, &summarized.spent, true);
        let author = Author {
            model: summarized.model,
            calls: summarized.spent.calls,
            prompt_tokens: summarized.spent.usage.prompt_tokens,
            completion_tokens: summarized.spent.usage.completion_tokens,
        };
        let (finishing, summary) = (request.clone(), summarized.summary);
        let finished = tokio::task::spawn_blocking(move || finishing.finish(&summary, author)).await;
        let (fold, cost) = finished.map_err(|_| FoldFailure::Crashed)??;
        if request.prunes(&fold) {
            self.worker.gateway.metrics().pruned();
        }
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

    fn is_cooling_down(&self, key: ConversationKey) -> bool {
        self.worker.gateway.conversations.is_folding_suspended(key, Gateway::now().0)
    }

    fn start_cool_down(&self, key: ConversationKey, failure: FoldFailure) {
        let until = Gateway::now().0 + u64::try_from(COOL_DOWN.as_millis()).unwrap_or(0);
        self.worker.gateway.conversations.suspend_folding(key, until);
        self.worker.gateway.metrics().summary_failed(failure.reason());
        warn!(reason = failure.reason(), "cannot summarize a conversation; retrying after a pause");
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
        let labels = gateway.labels(&self.snapshot, self.route(), request.input().requested_model());
        gateway.metrics().summarized(&labels, &Summarized { calls, input, output, cost, is_made });
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
