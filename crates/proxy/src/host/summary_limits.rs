//! How many summaries a model makes at once, and what they may cost. A burst of triggers must not become a burst of paid calls.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_config::{Ceiling, LlmSummarizer};
use tidegate_context::FoldFailure;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// By the name of the summarizer. They survive a reload of the configuration.
#[derive(Debug, Default)]
pub(crate) struct SummaryLimits(Mutex<BTreeMap<String, Arc<Counter>>>);

#[derive(Debug, Default)]
struct Counter {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    by_tenant: HashMap<String, usize>,
    waiting: usize,
    /// What was spent when, in billionths of a USD, within the last hour.
    spent: VecDeque<(Instant, u64)>,
    /// Their sum.
    total: u64,
}

/// A place for one summary.
#[derive(Debug)]
pub(crate) struct SummaryPermit {
    counter: Arc<Counter>,
    tenant: String,
}

const HOUR: Duration = Duration::from_secs(3600);

impl SummaryLimits {
    /// Waits until there is a place, or returns why there is none.
    pub(crate) async fn enter(
        &self,
        llm: &LlmSummarizer,
        tenant: &str,
        deadline: Instant,
    ) -> Result<SummaryPermit, FoldFailure> {
        let counter = self.counter(&llm.name);
        if counter.try_enter(llm, tenant)? {
            return Ok(SummaryPermit { counter, tenant: tenant.to_owned() });
        }
        let waiting = counter.begin_waiting(llm)?;
        loop {
            let freed = counter.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if counter.try_enter(llm, tenant)? {
                break;
            }
            timeout_at(deadline, freed).await.map_err(|_| FoldFailure::QueueFull)?;
        }
        drop(waiting);
        Ok(SummaryPermit { counter, tenant: tenant.to_owned() })
    }

    /// Adds what a summary has cost, in USD.
    pub(crate) fn spent(&self, llm: &LlmSummarizer, usd: f64) {
        // A cost is never negative, and a cast saturates.
        let spent = (usd * 1e9).round() as u64;
        if spent == 0 || llm.max_cost_usd_per_hour.is_none() {
            return;
        }
        let counter = self.counter(&llm.name);
        let mut state = counter.lock();
        state.spent.push_back((Instant::now(), spent));
        state.total = state.total.saturating_add(spent);
    }

    fn counter(&self, name: &str) -> Arc<Counter> {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.entry(name.to_owned()).or_default().clone()
    }
}

impl Counter {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there was a place, which is taken now.
    fn try_enter(&self, llm: &LlmSummarizer, tenant: &str) -> Result<bool, FoldFailure> {
        let mut state = self.lock();
        if let Some(Ceiling(most)) = llm.max_cost_usd_per_hour
            && state.spent_lately() >= most
        {
            return Err(FoldFailure::CostCeiling);
        }
        let is_below =
            |count: usize, most: u32| u64::try_from(count).is_ok_and(|count| count < u64::from(most));
        let own = state.by_tenant.get(tenant).copied().unwrap_or(0);
        let enters = is_below(state.running, llm.max_concurrent.get())
            && is_below(own, llm.max_concurrent_per_tenant.get());
        if enters {
            state.running += 1;
            *state.by_tenant.entry(tenant.to_owned()).or_default() += 1;
        }
        Ok(enters)
    }

    fn begin_waiting(&self, llm: &LlmSummarizer) -> Result<Waiting<'_>, FoldFailure> {
        let mut state = self.lock();
        if state.waiting >= usize::try_from(llm.max_queued.get()).unwrap_or(usize::MAX) {
            return Err(FoldFailure::QueueFull);
        }
        state.waiting += 1;
        Ok(Waiting(self))
    }
}

impl State {
    fn spent_lately(&mut self) -> u64 {
        while let Some((_, spent)) = self.spent.front().filter(|(at, _)| at.elapsed() >= HOUR).copied() {
            self.spent.pop_front();
            self.total = self.total.saturating_sub(spent);
        }
        self.total
    }
}

/// One that waits, also if it gives up.
struct Waiting<'a>(&'a Counter);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

impl Drop for SummaryPermit {
    fn drop(&mut self) {
        let mut state = self.counter.lock();
        state.running -= 1;
        if let Some(own) = state.by_tenant.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                state.by_tenant.remove(&self.tenant);
            }
        }
        drop(state);
        self.counter.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::{Flags, Source, Summarizer, load};

    fn summarizer(keys: &str) -> LlmSummarizer {
        let config = format!("[summarizers.small]\nkind = \"llm\"\nmodel = \"small\"\n{keys}\n");
        let settings = load(Source::new("proxy.toml", config), &Flags::default(), &|_| None).unwrap();
        match &settings.summarizers["small"] {
            Summarizer::Llm(llm) => (**llm).clone(),
            Summarizer::Extractive => unreachable!("it is a model"),
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[tokio::test(start_paused = true)]
    async fn summaries_wait_for_a_place_and_no_more_than_a_few() {
        let llm = summarizer("max_concurrent = 3\nmax_concurrent_per_tenant = 2\nmax_queued = 1");
        let limits = Arc::new(SummaryLimits::default());
        let first = limits.enter(&llm, "a", soon()).await.unwrap();
        let _second = limits.enter(&llm, "a", soon()).await.unwrap();
        let third = tokio::spawn({
            let (limits, llm) = (limits.clone(), llm.clone());
            async move { limits.enter(&llm, "a", soon()).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(limits.enter(&llm, "a", soon()).await.err(), Some(FoldFailure::QueueFull));
        let other = limits.enter(&llm, "b", soon()).await.unwrap();
        assert_eq!(limits.enter(&llm, "c", soon()).await.err(), Some(FoldFailure::QueueFull), "none is free");
        drop(first);
        assert!(third.await.unwrap().is_ok());
        drop(other);
        assert!(limits.enter(&llm, "c", soon()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gives_up_at_its_deadline() {
        let llm = summarizer("max_concurrent = 1");
        let limits = SummaryLimits::default();
        let held = limits.enter(&llm, "a", soon()).await.unwrap();
        assert_eq!(limits.enter(&llm, "b", soon()).await.err(), Some(FoldFailure::QueueFull));
        drop(held);
        assert!(limits.enter(&llm, "b", soon()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_cost_of_an_hour_is_limited() {
        let llm = summarizer("max_cost_usd_per_hour = 1.0");
        let limits = SummaryLimits::default();
        limits.spent(&llm, 0.6);
        assert!(limits.enter(&llm, "a", soon()).await.is_ok());
        tokio::time::advance(Duration::from_secs(1800)).await;
        limits.spent(&llm, 0.5);
        assert_eq!(limits.enter(&llm, "a", soon()).await.err(), Some(FoldFailure::CostCeiling));
        tokio::time::advance(Duration::from_secs(1800)).await;
        assert!(limits.enter(&llm, "a", soon()).await.is_ok(), "the first half is an hour ago");
    }
}
