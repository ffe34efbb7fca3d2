//! Has a summary made of what the engine would rather not send again.
//!
//! One at a time for a conversation, in all processes together: who comes second waits for the first one's, or goes without.

use crate::archive;
use crate::draft::Draft;
use crate::gate::Gate;
use crate::journey::labels;
use crate::material::{beside, capped, covered, longest, sources};
use crate::server::Worker;
use crate::summarize::{CallerKey, Material, Spent, summarize};
use crate::summary_message::State;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Fold, Summarizer};
use tidegate_engine::{Digest, FoldJob, Timestamp, Tokens};
use tidegate_store::{ConversationKey, StoredFold};
use tidegate_summary::Summary;
use tidegate_telemetry::names::{attribute, span};
use tidegate_telemetry::{Summarized, Trail};
use tidegate_tokens::Model;
use tidegate_wire::{ParsedRequest, Usage};
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

/// A summary to make: everything that it needs, so that it can outlive its request.
pub(crate) struct Folding {
    pub(crate) worker: Arc<Worker>,
    pub(crate) draft: Arc<Draft>,
    pub(crate) caller: CallerKey,
    pub(crate) model: Arc<Model>,
    /// Where its span belongs.
    pub(crate) trail: Trail,
}

impl std::fmt::Debug for Folding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Folding").finish_non_exhaustive()
    }
}

/// How long nobody tries again after a summary could not be made.
pub(crate) const COOL_DOWN: Duration = Duration::from_secs(60);

/// How often one who waits for another's summary looks for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a holder's claim outlives its deadline by, so that it never ends before the work.
const MARGIN: Duration = Duration::from_secs(5);

impl Folding {
    /// Whether a summary could not be made a moment ago.
    pub(crate) fn is_cooling(&self) -> bool {
        let conversations = &self.worker.gate.conversations;
        self.key().is_none_or(|key| conversations.is_cooling(key, Gate::now().0))
    }

    /// Whether making it takes nothing but a moment of this machine's time.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(self.summarizer(), Summarizer::Extractive)
    }

    /// Makes the summary, or waits for whoever is making it. The error is a label for headers and metrics.
    pub(crate) async fn fold(&self, chat: &ParsedRequest, job: &FoldJob) -> Result<StoredFold, &'static str> {
        let step = self.trail.step(span::FOLD);
        let folded = self.claim_and_fold(chat, job).await;
        if step.is_on() {
            step.set(attribute::MESSAGES, i64::try_from(job.messages.len()).unwrap_or(i64::MAX));
            step.set(attribute::TRIGGER, job.cause.name());
            step.set(attribute::SUMMARIZER, self.settings().summarizer.clone());
            step.set(attribute::FOLD_OUTCOME, folded.as_ref().err().copied().unwrap_or("made"));
        }
        folded
    }

    async fn claim_and_fold(&self, chat: &ParsedRequest, job: &FoldJob) -> Result<StoredFold, &'static str> {
        let Some(key) = self.key() else { return Err("summarizer_no_conversation") };
        let conversations = &self.worker.gate.conversations;
        let deadline = Instant::now() + self.timeout();
        loop {
            let claim = conversations.claim(key, self.timeout() + MARGIN).await;
            // Whoever had the claim before may have finished since we last looked, or given up.
            let known = conversations.recall(key).await.folds;
            if let Some(fold) = known.into_iter().find(|fold| fold.covers == job.covers) {
                if let Some(claim) = claim {
                    claim.release().await;
                }
                return Ok(fold);
            }
            if let Some(claim) = claim {
                let made = self.make(key, chat, job, deadline).await;
                if let Err(reason) = made {
                    self.note_failure(key, reason);
                }
                // Only now: who comes next must know that it failed.
                claim.release().await;
                return made;
            }
            if !job.is_urgent() || self.is_cooling() || Instant::now() >= deadline {
                return Err("summarizer_busy");
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn note_failure(&self, key: ConversationKey, reason: &'static str) {
        let until = Gate::now().0 + u64::try_from(COOL_DOWN.as_millis()).unwrap_or(0);
        self.worker.gate.conversations.cool_down(key, until);
        self.worker.gate.metrics.unsummarized(reason);
        warn!(reason, "a conversation could not be summarized; it is tried again after a pause");
    }

    async fn make(
        &self,
        key: ConversationKey,
        chat: &ParsedRequest,
        job: &FoldJob,
        deadline: Instant,
    ) -> Result<StoredFold, &'static str> {
        let settings = self.settings();
        let previous = job.previous.and_then(|covers| self.earlier(covers));
        let covered = covered(chat, job);
        let limit = longest(settings, job);
        let material = Material {
            previous,
            sources: sources(&self.draft.body, &self.draft.outline, chat, job),
            max_tokens: limit.0,
        };
        let (clients, snapshot) = (&self.worker.clients, &self.draft.snapshot);
        let summarizer = self.summarizer();
        let made = summarize(clients, snapshot, summarizer, material, &self.caller, deadline).await;
        let summarized = made.map_err(|failure| {
            self.count(&failure.spent, false);
            debug!(error = %failure.cause, "a summarizer failed");
            failure.reason()
        })?;
        self.count(&summarized.spent, true);
        let encoding = self.model.encoding;
        let role = settings.role;
        let uncapped = summarized.summary;
        let capped =
            tokio::task::spawn_blocking(move || capped(&uncapped, covered, limit, role, encoding)).await;
        let (summary, cost) = capped.map_err(|_| "summarizer_failed")?;
        let cost = self.draft.question(&self.model).scaled(cost);
        let state = beside(chat, job, summary, cost)?;
        if job.prunes(&chat.messages, state.kept.len()) {
            self.worker.gate.metrics.pruned();
        }
        let state = State {
            author: summarized.model,
            calls: summarized.spent.calls,
            prompt_tokens: summarized.spent.usage.prompt_tokens,
            completion_tokens: summarized.spent.usage.completion_tokens,
            ..state
        };
        let fold = StoredFold {
            covers: job.covers,
            covered: u32::try_from(covered).unwrap_or(u32::MAX),
            at: Timestamp(Gate::now().0),
            state: state.to_bytes(),
        };
        if self.is_deleted(key).await {
            return Ok(fold);
        }
        if let Some((archive, identity)) = self.worker.gate.archive.as_ref().zip(self.draft.identity.as_ref())
        {
            let first = chat.messages.iter().find(|message| !message.role.is_instruction());
            let first = first.map_or(job.covers, |message| message.digest);
            let made = (&state.summary, state.author.as_str(), cost.0);
            archive::summary(archive, identity, &self.draft.route().name, &fold, first, made);
        }
        // If it cannot be written, this process goes on with it all the same.
        if let Ok(false) = self.worker.gate.conversations.fold(key, fold.clone()).await {
            let known = self.worker.gate.conversations.recall(key).await.folds;
            return Ok(known.into_iter().find(|known| known.covers == job.covers).unwrap_or(fold));
        }
        Ok(fold)
    }

    /// Whether somebody has deleted the conversation since its request came. What is deleted must not come back with a summary.
    async fn is_deleted(&self, key: ConversationKey) -> bool {
        let was_known = !self.draft.recalled.memory.waypoints().is_empty();
        was_known && self.worker.gate.conversations.recall(key).await.memory.waypoints().is_empty()
    }

    fn key(&self) -> Option<ConversationKey> {
        self.draft.identity.as_ref().map(|identity| identity.key)
    }

    fn settings(&self) -> &Fold {
        &self.draft.context().fold
    }

    fn summarizer(&self) -> &Summarizer {
        let named = self.draft.snapshot.settings.summarizers.get(&self.settings().summarizer);
        // The configuration knows no name that is neither defined nor the built-in one's.
        named.unwrap_or(&Summarizer::Extractive)
    }

    fn timeout(&self) -> Duration {
        self.summarizer().timeout(self.settings().timeout)
    }

    fn earlier(&self, covers: Digest) -> Option<Summary> {
        let fold = self.draft.recalled.folds.iter().find(|fold| fold.covers == covers)?;
        State::of(fold).map(|state| state.summary)
    }

    fn count(&self, spent: &Spent, is_made: bool) {
        let Spent { usage, calls } = *spent;
        let cost = match self.summarizer() {
            Summarizer::Extractive => None,
            Summarizer::Llm(llm) => {
                let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = usage;
                let prices = self.draft.snapshot.models.lookup(&llm.model).prices;
                prices.and_then(|prices| {
                    prices.cost(Tokens(prompt_tokens), Tokens(cached_tokens), Tokens(completion_tokens))
                })
            }
        };
        let (input, output) = (usage.prompt_tokens, usage.completion_tokens);
        let (gate, draft) = (&self.worker.gate, &self.draft);
        let asked = draft.outline.model.as_deref().unwrap_or_default();
        let labels = labels(gate, &draft.snapshot, draft.route(), asked);
        gate.metrics.summarized(&labels, &Summarized { calls, input, output, cost, is_made });
    }
}
