//! The order of a list of conversations.

use crate::page::ConversationSummary;
use std::cmp::Ordering;

/// What a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By the time of the last request, as the store lists them.
    #[default]
    Last,
    Name,
    /// By route, and within a route by model and strategy.
    Route,
    Turns,
    Sent,
    Saved,
    Billed,
    Avoided,
}

/// Which end of the order comes first. Conversations without a figure come last in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Descending,
    Ascending,
}

impl Direction {
    pub(crate) const NAMES: [(&str, Direction); 2] =
        [("desc", Direction::Descending), ("asc", Direction::Ascending)];
}

/// A value to sort by. The values of one list are of one kind.
#[derive(Debug, PartialEq)]
enum Key<'a> {
    Figure(f64),
    Words([&'a str; 3]),
}

impl Sort {
    pub(crate) const NAMES: [(&str, Sort); 8] = [
        ("last", Sort::Last),
        ("name", Sort::Name),
        ("route", Sort::Route),
        ("turns", Sort::Turns),
        ("sent", Sort::Sent),
        ("saved", Sort::Saved),
        ("billed", Sort::Billed),
        ("avoided", Sort::Avoided),
    ];

    /// Sorts stably, so that equal ones stay newest first.
    pub(crate) fn sort(self, direction: Direction, conversations: &mut [ConversationSummary]) {
        conversations.sort_by(|one, other| match (self.key(one), self.key(other)) {
            (Some(one), Some(other)) => match direction {
                Direction::Ascending => one.compare(&other),
                Direction::Descending => other.compare(&one),
            },
            (one, other) => other.is_some().cmp(&one.is_some()),
        });
    }

    /// Turns that were only observed count as planned, as the dashboard shows them.
    fn key(self, one: &ConversationSummary) -> Option<Key<'_>> {
        let figure = match self {
            Sort::Name => return Some(Key::Words([&one.name, "", ""])),
            Sort::Route => return Some(Key::Words([&one.route, &one.model, &one.strategy])),
            Sort::Last => Some(one.last as f64),
            Sort::Turns => Some(one.turns as f64),
            Sort::Sent => Some(one.tokens_before as f64),
            Sort::Saved => {
                let (before, after) = (one.tokens_before as f64, one.tokens_as_planned() as f64);
                (one.tokens_before > 0).then(|| 1.0 - after / before)
            }
            Sort::Billed => one.cost_usd,
            Sort::Avoided => {
                let cost = one.planned_cost_usd.or(one.cost_usd);
                one.unedited_cost_usd.zip(cost).map(|(unedited, cost)| unedited - cost)
            }
        };
        figure.map(Key::Figure)
    }
}

impl Key<'_> {
    fn compare(&self, other: &Key<'_>) -> Ordering {
        match (self, other) {
            (Key::Figure(one), Key::Figure(other)) => one.total_cmp(other),
            (Key::Words(one), Key::Words(other)) => one.cmp(other),
            (Key::Figure(_), Key::Words(_)) | (Key::Words(_), Key::Figure(_)) => Ordering::Equal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[ConversationSummary], sort: Sort, direction: Direction) -> Vec<String> {
        let mut sorted = all.to_vec();
        sort.sort(direction, &mut sorted);
        sorted.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn the_unknown_come_last_in_both_directions() {
        let one = |name: &str, cost_usd, turns| ConversationSummary {
            name: name.to_owned(),
            cost_usd,
            turns,
            ..ConversationSummary::default()
        };
        let all = [one("unknown", None, 2), one("cheap", Some(0.1), 9), one("dear", Some(2.0), 1)];
        let of = |sort, direction| names(&all, sort, direction);
        assert_eq!(of(Sort::Billed, Direction::Descending), ["dear", "cheap", "unknown"]);
        assert_eq!(of(Sort::Billed, Direction::Ascending), ["cheap", "dear", "unknown"]);
        assert_eq!(of(Sort::Turns, Direction::Descending), ["cheap", "unknown", "dear"]);
        assert_eq!(of(Sort::Name, Direction::Ascending), ["cheap", "dear", "unknown"]);
        assert_eq!(of(Sort::Last, Direction::Descending), ["unknown", "cheap", "dear"]);
    }

    #[test]
    fn observed_conversations_are_sorted_by_what_was_planned() {
        let applied = ConversationSummary {
            name: "applied".to_owned(),
            tokens_before: 100,
            tokens_after: 60,
            cost_usd: Some(0.6),
            unedited_cost_usd: Some(1.0),
            ..ConversationSummary::default()
        };
        let observed = ConversationSummary {
            name: "observed".to_owned(),
            tokens_after: 100,
            observed: 1,
            tokens_planned: 20,
            cost_usd: Some(1.0),
            planned_cost_usd: Some(0.2),
            ..applied.clone()
        };
        for sort in [Sort::Saved, Sort::Avoided] {
            let all = [applied.clone(), observed.clone()];
            assert_eq!(names(&all, sort, Direction::Descending), ["observed", "applied"]);
        }
    }
}
