use std::collections::BTreeSet;

use crate::word::stem;

/// A matter that a sentence speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topic {
    /// The stems of its words: `batch` and `size`.
    pub(super) words: BTreeSet<String>,
    /// The stem of the word that the others tell more of: `size`. What begins a sentence without an article
    /// may end in a verb that nobody knows, and then has none.
    pub(super) head: Option<String>,
    /// Names and figures among its words. `Bob's phone` is never `my phone`.
    pub(super) labels: BTreeSet<String>,
    /// Whether the form of the sentence gives it a value. `Buy plates for the main course` only mentions it.
    pub(super) is_firm: bool,
    /// Whether the value stands right beside it, as in `The venue is …` and `… as the venue`.
    pub(super) is_direct: bool,
    /// Its words among those of the sentence.
    pub(super) place: (usize, usize),
}

/// How one topic fits another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// They share words, but perhaps not the thing: `the technician` and `the technician's visit`.
    Loose,
    /// The later one says more: `the staging budget` after `the budget`.
    Narrower,
    /// The later one says less.
    Wider,
    Same,
}

impl Topic {
    pub(super) fn fit(&self, earlier: &Self) -> Option<Fit> {
        if self.words == earlier.words {
            return Some(Fit::Same);
        }
        let heads_agree = match (&self.head, &earlier.head) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        let is_wider = self.words.is_subset(&earlier.words);
        let is_narrower = self.words.is_superset(&earlier.words);
        if self.labels != earlier.labels || !(is_wider || is_narrower) {
            None
        } else if !heads_agree {
            Some(Fit::Loose)
        } else if is_wider {
            Some(Fit::Wider)
        } else {
            Some(Fit::Narrower)
        }
    }

    /// Whether both are things of one kind and not the same: `the staging budget` and `the production budget`.
    pub(super) fn is_rival_of(&self, other: &Self) -> bool {
        self.head.is_some()
            && self.head == other.head
            && !self.words.is_subset(&other.words)
            && !self.words.is_superset(&other.words)
    }

    /// Whether it is nothing but a name.
    pub(super) fn is_name(&self) -> bool {
        self.words == self.labels
    }
}

/// The stems of a word; those of `batch_size` are two.
pub(super) fn stems(word: &str) -> impl Iterator<Item = String> {
    word.split('_').filter(|part| !part.is_empty()).map(stem)
}
