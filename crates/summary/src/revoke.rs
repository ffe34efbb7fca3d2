//! The words by which English says that something is no longer so.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::word::{stem, word_list};

/// Whether a word, given by its stem, only says that something is no longer so.
pub(crate) fn is_mark(stemmed: &str) -> bool {
    static ALL: LazyLock<HashSet<String>> =
        LazyLock::new(|| BEFORE.iter().chain(ENDS.iter()).map(|word| stem(word)).collect());
    ALL.contains(stemmed)
}

word_list! {
    /// What stands right before the thing that is given up.
    BEFORE = "\
        replace, replacing, replaces, replaced, drop, dropped, ditch, ditched, scrap, scrapped, forget, abandon, \
        abandoned, not, isn't, wasn't, aren't, kill, cancel, cancelled, canceled, disregard, ignore, skip, \
        scratch, strike, against, succeeds, supersedes, fired, hates, withdrew, retire, retired, discard, \
        undo, revert, unlike, instead, dislike, hate, reject, rejected, refuse, refused, decline, declined, \
        remove, removed, avoid, leave, left, sack, sacked, lost, former"
}

word_list! {
    /// What follows it.
    ENDS = "\
        out, off, void, dead, gone, cancelled, canceled, dropped, scrapped, full, frozen, broken, leaving, \
        left, quit, resigned, wrong, unavailable, impossible, not, never, no, isn't, aren't, wasn't, doesn't, \
        didn't, don't, won't, can't, cannot, couldn't, fell, failed, replaced, obsolete, deprecated, rejected, anymore, declined, refused, withdrew, closed, sold, broke, burned, \
        ill, sick, late, slow, expensive, ugly, bad, useless, unusable, unreliable, overbooked, \
        discontinued, retired, shut, flooded, booked, taken, expired, crashed, collapsed, stolen, ruined"
}
