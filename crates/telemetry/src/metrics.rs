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
        let uncounted = read(&self.uncounted);
        let help = "Turns that could not be written into the counts of their conversation.";
        family(&mut text, "tidegate_store_uncounted_total", help, "reason", uncounted);
        text
    }
}

fn add(counts: &Mutex<BTreeMap<&'static str, u64>>, reason: &'static str) {
    *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
}

fn read(counts: &Mutex<BTreeMap<&'static str, u64>>) -> BTreeMap<&'static str, u64> {
    counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
