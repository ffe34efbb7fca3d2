//! The order of a list of conversations.

use crate::page::ConversationSummary;
use std::cmp::Ordering;

/// What a list is sorted by, the largest first. Conversations without a figure come last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By the time of the last request, as the store lists them.
    #[default]
    Last,
    Turns,
    Sent,
    Saved,
    Billed,
    Avoided,
}

impl Sort {
    pub(crate) const NAMES: [(&str, Sort); 6] = [
        ("last", Sort::Last),
        ("turns", Sort::Turns),
        ("sent", Sort::Sent),
        ("saved", Sort::Saved),
        ("billed", Sort::Billed),
        ("avoided", Sort::Avoided),
    ];

    /// Sorts stably, so that equal ones stay newest first.
    pub(crate) fn sort(self, conversations: &mut [ConversationSummary]) {
        if self != Sort::Last {
            conversations.sort_by(|one, other| descending(self.figure(one), self.figure(other)));
        }
    }

    fn figure(self, one: &ConversationSummary) -> Option<f64> {
        match self {
            Sort::Last => Some(one.last as f64),
            Sort::Turns => Some(one.turns as f64),
            Sort::Sent => Some(one.tokens_before as f64),
            Sort::Saved => {
                let (before, after) = (one.tokens_before as f64, one.tokens_after as f64);
                (one.tokens_before > 0).then(|| 1.0 - after / before)
            }
            Sort::Billed => one.cost_usd,
            Sort::Avoided => {
                one.unedited_cost_usd.zip(one.cost_usd).map(|(unedited, billed)| unedited - billed)
            }
        }
    }
}

fn descending(one: Option<f64>, other: Option<f64>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => other.total_cmp(&one),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_comes_first_and_the_unknown_last() {
        let one = |name: &str, cost_usd, turns| ConversationSummary {
            name: name.to_owned(),
            cost_usd,
            turns,
            ..ConversationSummary::default()
        };
        let all = [one("unknown", None, 2), one("cheap", Some(0.1), 9), one("dear", Some(2.0), 1)];
        let names = |sort: Sort| {
            let mut sorted = all.clone();
            sort.sort(&mut sorted);
            sorted.map(|one| one.name)
        };
        assert_eq!(names(Sort::Billed), ["dear", "cheap", "unknown"]);
        assert_eq!(names(Sort::Turns), ["cheap", "unknown", "dear"]);
        assert_eq!(names(Sort::Last), ["unknown", "cheap", "dear"]);
    }
}
