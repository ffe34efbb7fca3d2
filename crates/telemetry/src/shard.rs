use crate::buckets::Buckets;
use crate::status_class::{STATUS_CLASSES, StatusClass};
use crate::{Answered, Completion, OUTCOMES, Summarized};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tidegate_context::{Cost, Figures};

/// What some of the threads have counted for one route and model, on cache lines of its own: workers that add to the same cache
/// line at every request slow each other down. The fields are independent, so a reader may see the tokens of a request and not
/// yet its cost.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    pub(crate) requests: [Count; OUTCOMES.len()],
    /// Upstream answers by the class of their status.
    pub(crate) responses: [Count; STATUS_CLASSES.len()],
    /// Answers with status 429.
    pub(crate) rate_limited: Count,
    pub(crate) turns: Count,
    pub(crate) tokens_in: Count,
    pub(crate) tokens_out: Count,
    pub(crate) masked_tokens: Count,
    pub(crate) trimmed_tokens: Count,
    pub(crate) summary_tokens: Count,
    pub(crate) recalled: Count,
    pub(crate) recalled_tokens: Count,
    pub(crate) masked: Count,
    pub(crate) trimmed: Count,
    pub(crate) folded: Count,
    pub(crate) dropped: Count,
    /// Messages that were edited for the first time: the four above count them in every request.
    pub(crate) newly_left_out: Count,
    pub(crate) stop_hints: Count,
    /// Requests whose plan was only observed: as they were forwarded, as planned, and how many would have been refused.
    pub(crate) observed_turns: Count,
    pub(crate) observed_in: Count,
    pub(crate) observed_out: Count,
    pub(crate) observed_refusals: Count,
    pub(crate) observed_billed: Count,
    pub(crate) observed_planned: Count,
    pub(crate) prompt_tokens: Count,
    pub(crate) cached_tokens: Count,
    pub(crate) completion_tokens: Count,
    /// In billionths of a USD, as are all costs here.
    pub(crate) billed: Count,
    pub(crate) unedited: Count,
    pub(crate) priced: Count,
    pub(crate) unpriced: Count,
    pub(crate) summaries: Count,
    pub(crate) summarizer_runs: Count,
    pub(crate) summarizer_calls: Count,
    pub(crate) summarizer_input: Count,
    pub(crate) summarizer_output: Count,
    pub(crate) summarizer_cost: Count,
    pub(crate) degraded: ByReason,
    pub(crate) refusals: ByReason,
    /// Calls of the recall tool, by result.
    pub(crate) recall_calls: ByReason,
    pub(crate) overhead: Buckets,
    /// The time that upstreams took to begin their answers.
    pub(crate) latency: Buckets,
}

impl Shard {
    pub(crate) fn completed(&self, completion: Completion) {
        let Completion { outcome, upstream, refusal, degraded } = completion;
        self.requests[outcome as usize].add(1);
        if let Some(status) = upstream {
            self.responses[StatusClass::of(status) as usize].add(1);
            self.rate_limited.add((status == Some(RATE_LIMITED)).into());
        }
        if let Some(code) = refusal {
            self.refusals.add(code);
        }
        if let Some(reason) = degraded {
            self.degraded.add(reason);
        }
    }

    /// Counts what was forwarded: the request itself if the plan was only observed.
    pub(crate) fn planned(&self, figures: &Figures) {
        self.turns.add(1);
        self.tokens_in.add(figures.before.0);
        self.tokens_out.add(figures.forwarded().0);
        self.stop_hints.add(figures.stop_hint.is_some().into());
        if figures.observed {
            self.observed_turns.add(1);
            self.observed_in.add(figures.before.0);
            self.observed_out.add(figures.after.0);
            self.observed_refusals.add(figures.would_refuse().into());
            return;
        }
        self.masked_tokens.add(figures.left_out.masked.0);
        self.trimmed_tokens.add(figures.left_out.trimmed.0);
        self.summary_tokens.add(figures.summary_tokens.0);
        self.masked.add(figures.masked as u64);
        self.trimmed.add(figures.trimmed.unwrap_or(0) as u64);
        self.folded.add(figures.folded as u64);
        self.dropped.add(figures.dropped as u64);
        self.newly_left_out.add(figures.newly_left_out as u64);
        self.recalled.add(figures.recalled as u64);
        self.recalled_tokens.add(figures.newly_recalled_tokens.0);
    }

    pub(crate) fn answered(&self, answered: &Answered) {
        let Answered { prompt_tokens, completion_tokens, cached_tokens, cost, .. } = *answered;
        self.prompt_tokens.add(prompt_tokens.unwrap_or(0));
        self.cached_tokens.add(cached_tokens.unwrap_or(0));
        self.completion_tokens.add(completion_tokens.unwrap_or(0));
        match cost {
            Some(cost) => self.priced(cost),
            None => self.unpriced.add(1),
        }
    }

    pub(crate) fn priced(&self, cost: Cost) {
        self.priced.add(1);
        self.billed.add(nano_usd(cost.billed));
        self.unedited.add(nano_usd(cost.unedited));
        if let Some(planned) = cost.planned {
            self.observed_billed.add(nano_usd(cost.billed));
            self.observed_planned.add(nano_usd(planned));
        }
    }

    pub(crate) fn summarized(&self, summarized: &Summarized) {
        self.summaries.add(summarized.is_made.into());
        self.summarizer_runs.add(1);
        self.summarizer_calls.add(summarized.calls.into());
        self.summarizer_input.add(summarized.input);
        self.summarizer_output.add(summarized.output);
        self.summarizer_cost.add(nano_usd(summarized.cost.unwrap_or(0.0)));
    }
}

const RATE_LIMITED: u16 = 429;

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        // Most of what is added is zero: few requests have dropped messages or a summary.
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts by a reason or code. Few requests have one, so a lock is cheap enough.
#[derive(Debug, Default)]
pub(crate) struct ByReason(Mutex<BTreeMap<&'static str, u64>>);

impl ByReason {
    pub(crate) fn add(&self, reason: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    pub(crate) fn add_to(&self, sums: &mut BTreeMap<&'static str, u64>) {
        for (reason, count) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            *sums.entry(reason).or_default() += count;
        }
    }
}

const NANO: f64 = 1e9;

fn nano_usd(usd: f64) -> u64 {
    // No bill is negative or beyond a billion dollars.
    (usd * NANO).round().clamp(0.0, 1e18) as u64
}

pub(crate) fn usd(nanos: u64) -> f64 {
    nanos as f64 / NANO
}
