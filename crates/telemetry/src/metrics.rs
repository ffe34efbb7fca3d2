use crate::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is counted while requests pass, in the form that Prometheus reads. Every label is one of few, whatever clients send.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: [AtomicU64; OUTCOMES.len()],
    /// By reason. Only what goes wrong takes the lock.
    degraded: Mutex<BTreeMap<&'static str, u64>>,
    uncounted: Mutex<BTreeMap<&'static str, u64>>,
    unsummarized: Mutex<BTreeMap<&'static str, u64>>,
    summaries: AtomicU64,
    prunes: AtomicU64,
    turns: AtomicU64,
    tokens_in: AtomicU64,
    tokens_out: AtomicU64,
    masked_tokens: AtomicU64,
    summary_tokens: AtomicU64,
    overflows: AtomicU64,
    stop_hints: AtomicU64,
    /// In billionths of a dollar.
    cost: AtomicU64,
    summarizer_calls: AtomicU64,
    summarizer_input: AtomicU64,
    summarizer_output: AtomicU64,
}

const NANO: f64 = 1e9;

/// What was done to one request, in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned {
    /// As the client sent it, and as it goes out.
    pub before: u64,
    pub after: u64,
    /// What the masked observations would have cost, and what the summary does.
    pub masked: u64,
    pub summary: u64,
    pub has_stop_hint: bool,
}

const OUTCOMES: [Outcome; 4] = [Outcome::Answered, Outcome::Refused, Outcome::ClientGone, Outcome::Broken];

impl Metrics {
    /// A request is over. `degraded` says what it went without.
    pub fn request(&self, outcome: Outcome, degraded: Option<&'static str>) {
        self.requests[outcome as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(reason) = degraded {
            add(&self.degraded, reason);
        }
    }

    /// A turn that could not be written into the counts of its conversation.
    pub fn uncounted(&self, reason: &'static str) {
        add(&self.uncounted, reason);
    }

    /// A summarizer is done. What it used is ours, whether or not there is a summary in the end.
    pub fn summarized(&self, calls: u32, input: u64, output: u64, is_made: bool) {
        self.summaries.fetch_add(u64::from(is_made), Ordering::Relaxed);
        self.summarizer_calls.fetch_add(calls.into(), Ordering::Relaxed);
        self.summarizer_input.fetch_add(input, Ordering::Relaxed);
        self.summarizer_output.fetch_add(output, Ordering::Relaxed);
    }

    /// A request was measured and edited, and goes out.
    pub fn planned(&self, planned: &Planned) {
        let Planned { before, after, masked, summary, has_stop_hint } = *planned;
        for (counter, amount) in [
            (&self.turns, 1),
            (&self.tokens_in, before),
            (&self.tokens_out, after),
            (&self.masked_tokens, masked),
            (&self.summary_tokens, summary),
            (&self.stop_hints, u64::from(has_stop_hint)),
        ] {
            counter.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// A request was refused because it does not fit.
    pub fn overflowed(&self) {
        self.overflows.fetch_add(1, Ordering::Relaxed);
    }

    /// What a request cost, in USD.
    pub fn spent(&self, usd: f64) {
        self.cost.fetch_add((usd * NANO).round().clamp(0.0, 1e18) as u64, Ordering::Relaxed);
    }

    /// More than usual went for a summary, because the request hardly fitted.
    pub fn pruned(&self) {
        self.prunes.fetch_add(1, Ordering::Relaxed);
    }

    /// A summary that was wanted and is not there.
    pub fn unsummarized(&self, reason: &'static str) {
        add(&self.unsummarized, reason);
    }

    /// All of it, in the text format of Prometheus.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let requests = OUTCOMES
            .iter()
            .map(|outcome| (outcome.name(), self.requests[*outcome as usize].load(Ordering::Relaxed)));
        family(&mut text, "tidegate_requests_total", "Requests, by how they ended.", "outcome", requests);
        let degraded = read(&self.degraded);
        let help = "Requests that went without something they should have had, by reason.";
        family(&mut text, "tidegate_degraded_total", help, "reason", degraded);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        single(&mut text, "context_summary_count", "Summaries made.", count(&self.summaries));
        for (name, help, counter) in [
            ("agent_context_tokens_in", "Tokens of requests as clients sent them.", &self.tokens_in),
            ("agent_context_tokens_out", "Tokens of requests as they were forwarded.", &self.tokens_out),
            (
                "agent_context_masked_observation_tokens",
                "Tokens of observations that were masked.",
                &self.masked_tokens,
            ),
            ("agent_context_summary_tokens", "Tokens of summaries in requests.", &self.summary_tokens),
            ("agent_context_turn_count", "Requests that were measured and forwarded.", &self.turns),
            ("context_overflow_reject_count", "Requests refused because they do not fit.", &self.overflows),
            (
                "tidegate_stop_hints_total",
                "Answers that hinted at stopping, because nothing new had come for some turns.",
                &self.stop_hints,
            ),
        ] {
            single(&mut text, name, help, count(counter));
        }
        let cost = count(&self.cost) as f64 / NANO;
        let help = "What requests have cost in USD, where prices are known.";
        number(&mut text, "agent_context_estimated_cost_usd", help, "counter", cost);
        let average = count(&self.tokens_out) as f64 / (count(&self.turns).max(1)) as f64;
        let help = "Tokens of a forwarded request, on average.";
        number(&mut text, "avg_prompt_tokens_per_turn", help, "gauge", average);
        single(&mut text, "context_prune_count", "Times that pruning was needed.", count(&self.prunes));
        let help = "Requests to summarizers.";
        single(&mut text, "agent_context_summary_calls_total", help, count(&self.summarizer_calls));
        let tokens = [("input", count(&self.summarizer_input)), ("output", count(&self.summarizer_output))];
        let help = "Tokens that summarizers used.";
        family(&mut text, "tidegate_summarizer_tokens_total", help, "type", tokens);
        let unsummarized = read(&self.unsummarized);
        let help = "Summaries that were wanted and could not be made, by reason.";
        family(&mut text, "tidegate_summarizer_failures_total", help, "reason", unsummarized);
        let uncounted = read(&self.uncounted);
        let help = "Turns that could not be written into the counts of their conversation.";
        family(&mut text, "tidegate_store_uncounted_total", help, "reason", uncounted);
        text
    }
}

/// How far the archive is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArchiveCounts {
    pub queued: u64,
    pub written: u64,
    pub dropped: u64,
    pub rejected: u64,
    pub connected: bool,
}

/// The archive in the text format of Prometheus.
#[must_use]
pub fn archive_text(counts: &ArchiveCounts) -> String {
    let mut text = String::new();
    let ArchiveCounts { queued, written, dropped, rejected, connected } = *counts;
    let waiting = "Records that wait for the archive's database.";
    number(&mut text, "tidegate_archive_queued", waiting, "gauge", queued as f64);
    let help = "Records handed to the archive, by what became of them.";
    let ended = [("written", written), ("dropped", dropped), ("rejected", rejected)];
    family(&mut text, "tidegate_archive_records_total", help, "outcome", ended);
    let help = "Whether the archive's database is connected.";
    number(&mut text, "tidegate_archive_connected", help, "gauge", f64::from(u8::from(connected)));
    text
}

fn add(counts: &Mutex<BTreeMap<&'static str, u64>>, reason: &'static str) {
    *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
}

fn read(counts: &Mutex<BTreeMap<&'static str, u64>>) -> BTreeMap<&'static str, u64> {
    counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn single(text: &mut String, name: &str, help: &str, count: u64) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}");
}

fn number(text: &mut String, name: &str, help: &str, kind: &str, value: f64) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}

fn family(
    text: &mut String,
    name: &str,
    help: &str,
    label: &str,
    values: impl IntoIterator<Item = (&'static str, u64)>,
) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
    for (value, count) in values {
        let _ = writeln!(text, "{name}{{{label}=\"{value}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_can_be_read() {
        let metrics = Metrics::default();
        metrics.request(Outcome::Answered, None);
        metrics.request(Outcome::Broken, Some("store_timeout"));
        metrics.uncounted("store_full");
        let text = metrics.text();
        for line in [
            "tidegate_requests_total{outcome=\"answered\"} 1\n",
            "tidegate_requests_total{outcome=\"broken\"} 1\n",
            "tidegate_requests_total{outcome=\"refused\"} 0\n",
            "# TYPE tidegate_degraded_total counter\ntidegate_degraded_total{reason=\"store_timeout\"} 1\n",
            "tidegate_store_uncounted_total{reason=\"store_full\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
