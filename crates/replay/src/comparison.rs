//! The combined figures of all conversations.

use crate::figures::{Figures, Turn};
use crate::price::Cost;
use crate::run::{Replayed, Setup};
use std::collections::BTreeSet;

/// The result of a replay.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pub conversations: Vec<ConversationFigures>,
    /// By regime, then by policy.
    pub totals: Vec<Vec<Figures>>,
    /// By regime and policy, the sums over all requests with the same number in their conversation.
    pub by_request: Vec<Vec<Vec<RequestTotals>>>,
    /// The number of conversations in which requests lack times.
    pub untimed: usize,
    pub models: BTreeSet<String>,
    /// The most expensive conversations, request by request.
    pub most_expensive: Vec<ConversationDetail>,
}

/// One conversation's figures, by regime and policy.
#[derive(Clone, Debug)]
pub struct ConversationFigures {
    pub id: String,
    /// Its position in the input.
    pub index: usize,
    pub figures: Vec<Vec<Figures>>,
}

/// One conversation, request by request.
#[derive(Clone, Debug)]
pub struct ConversationDetail {
    pub id: String,
    pub index: usize,
    /// Its cost without edits.
    pub cost: f64,
    /// By policy, in the first regime.
    pub turns: Vec<Vec<Turn>>,
}

/// The totals of all requests with the same number in their conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestTotals {
    pub requests: u64,
    pub sent: u64,
    pub cost: Cost,
}

/// The number of conversations kept request by request.
const MAX_DETAILS: usize = 12;

/// Requests with higher numbers are not plotted.
const MAX_REQUESTS: usize = 400;

impl Comparison {
    #[must_use]
    pub fn new(setup: &Setup) -> Comparison {
        let (regimes, policies) = (setup.regimes.len(), setup.policies.len());
        Comparison {
            totals: vec![vec![Figures::default(); policies]; regimes],
            by_request: vec![vec![Vec::new(); policies]; regimes],
            ..Comparison::default()
        }
    }

    pub fn add(&mut self, index: usize, replayed: Replayed) {
        let Replayed { id, has_times, models, figures, mut turns } = replayed;
        self.untimed += usize::from(!has_times);
        self.models.extend(models);
        for (totals, figures) in self.totals.iter_mut().zip(&figures) {
            totals.iter_mut().zip(figures).for_each(|(total, figures)| total.add(figures));
        }
        for (totals, turns) in self.by_request.iter_mut().zip(&turns) {
            for (totals, turns) in totals.iter_mut().zip(turns) {
                let length = turns.len().min(MAX_REQUESTS).max(totals.len());
                totals.resize(length, RequestTotals::default());
                for (sum, turn) in totals.iter_mut().zip(turns) {
                    sum.requests += 1;
                    sum.sent += turn.billed.tokens();
                    sum.cost.add(&turn.cost);
                }
            }
        }
        let cost = figures.first().and_then(|figures| figures.first()).map_or(0.0, |raw| raw.cost.units);
        if self.most_expensive.len() < MAX_DETAILS
            || self.most_expensive.last().is_some_and(|least| least.cost < cost)
        {
            let turns = if turns.is_empty() { Vec::new() } else { turns.swap_remove(0) };
            self.most_expensive.push(ConversationDetail { id: id.clone(), index, cost, turns });
            self.keep_most_expensive();
        }
        self.conversations.push(ConversationFigures { id, index, figures });
    }

    /// Adds the result of another thread.
    pub fn merge(&mut self, other: Comparison) {
        for (totals, other) in self.totals.iter_mut().zip(&other.totals) {
            totals.iter_mut().zip(other).for_each(|(total, other)| total.add(other));
        }
        for (totals, other) in self.by_request.iter_mut().zip(&other.by_request) {
            for (totals, other) in totals.iter_mut().zip(other) {
                totals.resize(totals.len().max(other.len()), RequestTotals::default());
                for (sum, other) in totals.iter_mut().zip(other) {
                    sum.requests += other.requests;
                    sum.sent += other.sent;
                    sum.cost.add(&other.cost);
                }
            }
        }
        self.untimed += other.untimed;
        self.models.extend(other.models);
        self.conversations.extend(other.conversations);
        self.conversations.sort_by_key(|conversation| conversation.index);
        self.most_expensive.extend(other.most_expensive);
        self.keep_most_expensive();
    }

    /// The conversation with the highest cost relative to raw under a policy, and that ratio. `None` if no
    /// conversation costs anything.
    #[must_use]
    pub fn worst(&self, regime: usize, policy: usize) -> Option<(&str, f64)> {
        let ratio = |conversation: &ConversationFigures| {
            let figures = conversation.figures.get(regime)?;
            let (own, raw) = (figures.get(policy)?, figures.first()?);
            // Refused requests cost nothing, so such a conversation cannot be compared.
            (raw.cost.units > 0.0 && own.refused == 0).then(|| own.cost.ratio_to(&raw.cost))
        };
        let ratios = self
            .conversations
            .iter()
            .filter_map(|conversation| Some((conversation.id.as_str(), ratio(conversation)?)));
        ratios.reduce(|worst, one| if one.1 > worst.1 { one } else { worst })
    }

    fn keep_most_expensive(&mut self) {
        self.most_expensive
            .sort_by(|one, other| other.cost.total_cmp(&one.cost).then(one.index.cmp(&other.index)));
        self.most_expensive.truncate(MAX_DETAILS);
    }
}
