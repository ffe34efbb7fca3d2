//! How far our token counts are off, as upstreams report it. Processes that share a store learn from each other, and a restarted
//! process knows what it knew: each decides the same.
//!
//! Every tenant has its own calibrations, so that nobody's traffic moves another tenant's budget.

use crate::host::identity::Identity;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use tidegate_engine::Tokens;
use tidegate_store::{Conversations, wall_clock};
use tidegate_tokens::{Calibration, Fit, Model};

#[derive(Debug, Default)]
pub(crate) struct Calibrations {
    learnt: RwLock<Learnt>,
}

#[derive(Debug, Default)]
struct Learnt {
    /// By tenant; the empty name is for those who are not known.
    tenants: HashMap<String, Tenant>,
    /// The number of changes so far, to find the tenant whose last one is the oldest.
    changes: u64,
}

#[derive(Debug, Default)]
struct Tenant {
    models: HashMap<String, Entry>,
    /// Whether the store has been read.
    is_read: bool,
    last: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    calibration: Calibration,
    published: Option<Published>,
}

/// What the store is known to hold, as far as this process knows.
#[derive(Clone, Copy, Debug)]
struct Published {
    calibration: Calibration,
    /// In milliseconds since the Unix epoch.
    at: u64,
}

/// A calibration to tell the other processes.
#[derive(Debug)]
pub(crate) struct Fact {
    tenant: String,
    model: String,
    calibration: Calibration,
}

/// Clients choose the names of models and, by their keys, of tenants.
const MAX_TENANTS: usize = 1_000;
const MAX_MODELS: usize = 64;
const MAX_NAME_LENGTH: usize = 256;

/// A calibration that does not change is written again after this time, in milliseconds, because facts expire.
const REPEAT: u64 = 10 * 60 * 1_000;

impl Calibrations {
    /// The factor to multiply a count of this model with; `None` before the first report.
    pub(crate) fn factor(&self, identity: Option<&Identity>, model: &Model) -> Option<f64> {
        if model.fit == Fit::Exact {
            return None;
        }
        let tenant = identity.map_or("", |identity| identity.tenant.as_str());
        let learnt = self.learnt.read().unwrap_or_else(PoisonError::into_inner);
        let entry = learnt.tenants.get(tenant).and_then(|tenant| tenant.models.get(&model.name));
        let reported = entry.filter(|entry| entry.calibration.reports() > 0);
        reported.map(|entry| entry.calibration.factor())
    }

    /// Learns from one request. Returns what has to be published then.
    pub(crate) fn observe(
        &self,
        tenant: Option<&str>,
        model: &str,
        counted: Tokens,
        reported: Tokens,
    ) -> Option<Fact> {
        let now = wall_clock();
        let mut learnt = self.learnt.write().unwrap_or_else(PoisonError::into_inner);
        let entry = learnt.entry(tenant.unwrap_or_default(), model)?;
        let is_moved = entry.calibration.observe(counted, reported);
        let is_known = entry.published.is_some_and(|published| now.saturating_sub(published.at) < REPEAT);
        if (!is_moved && is_known) || entry.calibration.reports() == 0 {
            return None;
        }
        let calibration = entry.calibration;
        // Noted before it is written: what a concurrent read still finds is older.
        entry.published = Some(Published { calibration, at: now });
        Some(Fact { tenant: tenant?.to_owned(), model: model.to_owned(), calibration })
    }

    /// Tells the other processes.
    pub(crate) async fn publish(&self, conversations: &Arc<Conversations>, fact: Fact) {
        let Fact { tenant, model, calibration } = fact;
        let text = Bytes::from(calibration.to_string());
        // A store that fails is reported where requests use it. The next report is published again.
        if conversations.publish(&topic(&tenant), &model, text).await.is_err() {
            let mut learnt = self.learnt.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(entry) = learnt.entry(&tenant, &model) {
                entry.published = None;
            }
        }
    }

    /// Reads what other processes have learnt of this tenant's models. In a store of our own, that is done once.
    pub(crate) async fn refresh(&self, conversations: &Arc<Conversations>, tenant: Option<&str>, fit: Fit) {
        let Some(tenant) = tenant.filter(|tenant| fit == Fit::Nearest && self.is_due(conversations, tenant))
        else {
            return;
        };
        let Ok(facts) = conversations.published(&topic(tenant)).await else { return };
        let facts: HashMap<String, Calibration> = facts
            .into_iter()
            .filter_map(|(model, fact)| Some((model, std::str::from_utf8(&fact).ok()?.parse().ok()?)))
            .collect();
        let mut learnt = self.learnt.write().unwrap_or_else(PoisonError::into_inner);
        learnt.adopt(tenant, &facts);
    }

    fn is_due(&self, conversations: &Arc<Conversations>, tenant: &str) -> bool {
        let learnt = self.learnt.read().unwrap_or_else(PoisonError::into_inner);
        conversations.is_shared() || !learnt.tenants.get(tenant).is_some_and(|tenant| tenant.is_read)
    }
}

/// A topic for each tenant, so that a request reads no more than its own.
fn topic(tenant: &str) -> String {
    format!("calibration:{tenant}")
}

impl Learnt {
    /// The calibration of a model. `None` if the tenant has too many already, or the name is too long.
    fn entry(&mut self, tenant: &str, model: &str) -> Option<&mut Entry> {
        let models = &mut self.tenant(tenant).models;
        let is_full = models.len() >= MAX_MODELS && !models.contains_key(model);
        if is_full || model.len() > MAX_NAME_LENGTH {
            return None;
        }
        Some(models.entry(model.to_owned()).or_default())
    }

    fn tenant(&mut self, name: &str) -> &mut Tenant {
        if self.tenants.len() >= MAX_TENANTS && !self.tenants.contains_key(name) {
            let oldest = self.tenants.iter().min_by_key(|(_, tenant)| tenant.last);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.tenants.remove(&oldest);
            }
        }
        self.changes += 1;
        let tenant = self.tenants.entry(name.to_owned()).or_default();
        tenant.last = self.changes;
        tenant
    }

    /// Takes over what the store holds, unless it is older than what this process has written.
    fn adopt(&mut self, tenant: &str, facts: &HashMap<String, Calibration>) {
        let (now, is_known) = (wall_clock(), self.tenants.contains_key(tenant));
        if !is_known && facts.is_empty() && self.tenants.len() >= MAX_TENANTS {
            // Somebody who tries one key after another must not evict those who have learnt something.
            return;
        }
        self.tenant(tenant).is_read = true;
        for entry in self.tenant(tenant).models.iter_mut().filter(|(model, _)| !facts.contains_key(*model)) {
            // It has expired, or was never written: the next report writes it.
            entry.1.published = None;
        }
        for (model, &calibration) in facts {
            let Some(entry) = self.entry(tenant, model) else { continue };
            let is_known = entry.published.is_some_and(|Published { calibration: known, .. }| {
                let same = (known.reports(), known.factor()) == (calibration.reports(), calibration.factor());
                same || known.reports() > calibration.reports()
            });
            if !is_known {
                *entry = Entry { calibration, published: Some(Published { calibration, at: now }) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_tokens::ModelTable;

    fn learnt(reports: &[(&str, &str, u64)]) -> Calibrations {
        let calibrations = Calibrations::default();
        for (tenant, model, reported) in reports {
            calibrations.observe(Some(tenant), model, Tokens(1_000), Tokens(*reported));
        }
        calibrations
    }

    fn factor(calibrations: &Calibrations, tenant: &str, model: &str) -> f64 {
        let learnt = calibrations.learnt.read().unwrap();
        let entry = learnt.tenants.get(tenant).and_then(|tenant| tenant.models.get(model));
        entry.map_or(1.0, |entry| entry.calibration.factor())
    }

    fn adopt(calibrations: &Calibrations, tenant: &str, facts: &[(&str, &str)]) {
        let facts = facts.iter().map(|(model, fact)| ((*model).to_owned(), fact.parse().unwrap())).collect();
        calibrations.learnt.write().unwrap().adopt(tenant, &facts);
    }

    #[test]
    fn each_tenant_has_its_own() {
        let calibrations = learnt(&[("a", "m", 1_500), ("b", "m", 800)]);
        assert_eq!(["a", "b", "c"].map(|tenant| factor(&calibrations, tenant, "m")), [1.5, 0.8, 1.0]);
        let exact = ModelTable::builtin().lookup("gpt-4o");
        calibrations.observe(None, &exact.name, Tokens(1_000), Tokens(1_500));
        assert_eq!(calibrations.factor(None, &exact), None, "its tokenizer is known");
        let claude = ModelTable::builtin().lookup("claude-opus-4-7");
        calibrations.observe(None, &claude.name, Tokens(10), Tokens(13));
        assert_eq!(calibrations.factor(None, &claude), None, "too short to learn from");
        calibrations.observe(None, &claude.name, Tokens(1_000), Tokens(1_300));
        assert_eq!(calibrations.factor(None, &claude), Some(1.3));
    }

    #[test]
    fn only_what_moves_is_published() {
        let calibrations = Calibrations::default();
        let facts: Vec<Fact> = (0..100)
            .filter_map(|_| calibrations.observe(Some("a"), "m", Tokens(1_000), Tokens(1_300)))
            .collect();
        assert_eq!(facts.len(), 1, "{facts:?}");
        assert!(calibrations.observe(Some("a"), "m", Tokens(1_000), Tokens(1_900)).is_some());
        // A tenant that is not known has nothing to share.
        assert!(calibrations.observe(None, "m", Tokens(1_000), Tokens(1_300)).is_none());
    }

    #[test]
    fn later_facts_replace_earlier_ones() {
        let calibrations = learnt(&[("a", "m", 1_500), ("a", "m", 1_500)]);
        adopt(&calibrations, "a", &[("m", "1.2 1"), ("n", "0.9 4")]);
        assert_eq!(factor(&calibrations, "a", "n"), 0.9);
        assert_eq!(factor(&calibrations, "a", "m"), 1.2, "another process wrote its first report, too");
        adopt(&calibrations, "a", &[("m", "1.4 9")]);
        assert_eq!(factor(&calibrations, "a", "m"), 1.4);
        // A read that began before the write.
        adopt(&calibrations, "a", &[("m", "1.2 1")]);
        assert_eq!(factor(&calibrations, "a", "m"), 1.4);
        // The store has lost it: the next report is written.
        adopt(&calibrations, "a", &[]);
        assert!(calibrations.observe(Some("a"), "m", Tokens(1_000), Tokens(1_400)).is_some());
    }

    #[test]
    fn names_are_bounded() {
        let calibrations = Calibrations::default();
        let names: Vec<String> = (0..=MAX_TENANTS).map(|number| number.to_string()).collect();
        for model in &names[..=MAX_MODELS] {
            calibrations.observe(Some("a"), model, Tokens(1_000), Tokens(1_500));
        }
        calibrations.observe(Some("a"), &"x".repeat(10_000), Tokens(1_000), Tokens(1_500));
        assert_eq!(calibrations.learnt.read().unwrap().tenants["a"].models.len(), MAX_MODELS);
        for tenant in &names {
            calibrations.observe(Some(tenant), "m", Tokens(1_000), Tokens(1_500));
        }
        let tenants = &calibrations.learnt.read().unwrap().tenants;
        assert_eq!(tenants.len(), MAX_TENANTS);
        assert!(!tenants.contains_key("a") && !tenants.contains_key("0"), "the oldest are evicted");
    }
}
