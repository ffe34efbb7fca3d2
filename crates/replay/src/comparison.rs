//! All conversations together.

use crate::figures::{Figures, Turn};
use crate::price::Cost;
use crate::run::{Replayed, Setup};
use std::collections::BTreeSet;

/// What was found out about all conversations of a replay.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pub conversations: Vec<Conversation>,
    /// By regime, then by policy.
    pub totals: Vec<Vec<Figures>>,
    /// The same by the number of the request in its conversation: sums over those that came so far.
    pub course: Vec<Vec<Vec<Sum>>>,
    /// Conversations in which requests have no time.
    pub untimed: usize,
    pub models: BTreeSet<String>,
    /// The conversations that cost most, request by request.
    pub dearest: Vec<Detailed>,
}

/// One conversation's figures, by regime and policy.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub id: String,
    /// Where it stood in the input.
    pub place: usize,
    pub figures: Vec<Vec<Figures>>,
}

#[derive(Clone, Debug)]
pub struct Detailed {
    pub id: String,
    pub place: usize,
    /// What it cost without any edit.
    pub cost: f64,
    /// By policy, in the first regime.
    pub turns: Vec<Vec<Turn>>,
}

/// What requests with the same number have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub requests: u64,
    pub sent: u64,
    pub cost: Cost,
}

/// So many conversations are shown request by request.
const DETAILED: usize = 12;

/// Requests behind this one are not plotted.
const LONGEST: usize = 400;

impl Comparison {
    #[must_use]
    pub fn new(setup: &Setup) -> Comparison {
        let (regimes, policies) = (setup.regimes.len(), setup.policies.len());
        Comparison {
            totals: vec![vec![Figures::default(); policies]; regimes],
            course: vec![vec![Vec::new(); policies]; regimes],
            ..Comparison::default()
        }
    }

    pub fn add(&mut self, place: usize, replayed: Replayed) {
        let Replayed { id, has_times, models, figures, mut turns } = replayed;
        self.untimed += usize::from(!has_times);
        self.models.extend(models);
        for (totals, figures) in self.totals.iter_mut().zip(&figures) {
            totals.iter_mut().zip(figures).for_each(|(total, figures)| total.add(figures));
        }
        for (course, turns) in self.course.iter_mut().zip(&turns) {
            for (course, turns) in course.iter_mut().zip(turns) {
                let reach = turns.len().min(LONGEST).max(course.len());
                course.resize(reach, Sum::default());
                for (sum, turn) in course.iter_mut().zip(turns) {
                    sum.requests += 1;
                    sum.sent += turn.billed.tokens();
                    sum.cost.add(&turn.cost);
                }
            }
        }
        let cost = figures.first().and_then(|figures| figures.first()).map_or(0.0, |raw| raw.cost.units);
        if self.dearest.len() < DETAILED || self.dearest.last().is_some_and(|least| least.cost < cost) {
            let turns = if turns.is_empty() { Vec::new() } else { turns.swap_remove(0) };
            self.dearest.push(Detailed { id: id.clone(), place, cost, turns });
            self.keep_dearest();
        }
        self.conversations.push(Conversation { id, place, figures });
    }

    /// What two threads have found out.
    pub fn merge(&mut self, other: Comparison) {
        for (totals, other) in self.totals.iter_mut().zip(&other.totals) {
            totals.iter_mut().zip(other).for_each(|(total, other)| total.add(other));
        }
        for (course, other) in self.course.iter_mut().zip(&other.course) {
            for (course, other) in course.iter_mut().zip(other) {
                course.resize(course.len().max(other.len()), Sum::default());
                for (sum, other) in course.iter_mut().zip(other) {
                    sum.requests += other.requests;
                    sum.sent += other.sent;
                    sum.cost.add(&other.cost);
                }
            }
        }
        self.untimed += other.untimed;
        self.models.extend(other.models);
        self.conversations.extend(other.conversations);
        self.conversations.sort_by_key(|conversation| conversation.place);
        self.dearest.extend(other.dearest);
        self.keep_dearest();
    }

    /// The conversation that a policy does worst in, and how many times as much as without edits it costs there. Nothing where
    /// no conversation costs anything.
    #[must_use]
    pub fn worst(&self, regime: usize, policy: usize) -> Option<(&str, f64)> {
        let ratio = |conversation: &Conversation| {
            let figures = conversation.figures.get(regime)?;
            let (own, raw) = (figures.get(policy)?, figures.first()?);
            // A conversation that was cut short by a refusal did not become cheaper by it.
            (raw.cost.units > 0.0 && own.refused == 0).then(|| own.cost.ratio_to(&raw.cost))
        };
        let ratios = self.conversations.iter().filter_map(|one| Some((one.id.as_str(), ratio(one)?)));
        ratios.reduce(|worst, one| if one.1 > worst.1 { one } else { worst })
    }

    fn keep_dearest(&mut self) {
        self.dearest.sort_by(|one, other| other.cost.total_cmp(&one.cost).then(one.place.cmp(&other.place)));
        self.dearest.truncate(DETAILED);
    }
}
