//! What happened to each request of the demo, and why, in words.

use tidegate_config::Settings;
use tidegate_engine::Strategy;

/// The edits of one request, as its response's headers count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edits {
    masked: u64,
    folded: u64,
    dropped: u64,
}

/// What to say about one request. Each line fits 80 columns together with what stands before it.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) what: String,
    /// Whether something was edited that had not been before.
    pub(super) is_new: bool,
    pub(super) why: &'static [&'static str],
}

#[derive(Debug)]
pub(super) struct Story {
    strategy: Strategy,
    before: Edits,
    has_explained_waiting: bool,
}

/// The first request whose oldest result has left the ten turns that are kept.
const FIRST_DUE: usize = 11;

const WAITS: &[&str] = &[
    "why: a result is older than ten turns and could be masked. But that would",
    "     break the provider's cache, which costs more than it saves yet.",
];
const MASKS: &[&str] = &["why: keeping them has cost as much as the cache miss that masking causes."];
const FOLDS: &[&str] = &["why: the conversation is long enough for a summary to pay."];
const DROPS: &[&str] = &["why: the conversation no longer fits its window."];

impl Edits {
    /// Reads `masked=3,folded=0,dropped=0`.
    pub(super) fn parse(header: &str) -> Edits {
        let count = |edit: &str| {
            let parts = header.split(',').filter_map(|part| part.trim().split_once('='));
            parts.filter(|(name, _)| *name == edit).find_map(|(_, count)| count.parse().ok()).unwrap_or(0)
        };
        Edits { masked: count("masked"), folded: count("folded"), dropped: count("dropped") }
    }

    /// At most 22 columns: a single edit says whether it is new.
    fn words(self, is_new: bool) -> String {
        let counts = [(self.masked, "masked"), (self.folded, "folded"), (self.dropped, "dropped")];
        let some = counts.into_iter().filter(|(count, _)| *count > 0);
        let edits: Vec<String> = some.map(|(count, edit)| format!("{count} {edit}")).collect();
        match edits.as_slice() {
            [] => "unchanged".to_owned(),
            [edit] => format!("{edit} {}", if is_new { "now" } else { "still" }),
            several => several.join(" "),
        }
    }
}

impl Story {
    pub(super) fn new(settings: &Settings) -> Story {
        let strategy = settings.routes.first().map_or(Strategy::Passthrough, |route| route.context.strategy);
        Story { strategy, before: Edits::default(), has_explained_waiting: false }
    }

    pub(super) fn tell(&mut self, turn: usize, edits: Edits) -> Happened {
        let before = std::mem::replace(&mut self.before, edits);
        let why = if edits.folded > before.folded {
            FOLDS
        } else if edits.dropped > before.dropped {
            DROPS
        } else if edits.masked > before.masked {
            MASKS
        } else {
            self.why_not(turn, edits)
        };
        let is_new = edits != before && edits != Edits::default();
        Happened { what: edits.words(is_new), is_new, why }
    }

    fn why_not(&mut self, turn: usize, edits: Edits) -> &'static [&'static str] {
        let masks = matches!(self.strategy, Strategy::Masking | Strategy::Hybrid);
        let waits = masks && turn >= FIRST_DUE && edits == Edits::default() && !self.has_explained_waiting;
        self.has_explained_waiting |= waits;
        if waits { WAITS } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story() -> Story {
        Story { strategy: Strategy::Masking, before: Edits::default(), has_explained_waiting: false }
    }

    #[test]
    fn an_edit_is_told_once_and_then_repeated() {
        let mut story = story();
        let masked = Edits::parse("masked=6,folded=0,dropped=0");
        assert_eq!(story.tell(0, Edits::default()).what, "unchanged");
        let first = story.tell(1, masked);
        assert_eq!((first.what.as_str(), first.is_new, first.why), ("6 masked now", true, MASKS));
        let again = story.tell(2, masked);
        assert_eq!((again.what.as_str(), again.is_new, again.why.len()), ("6 masked still", false, 0));
        assert_eq!(story.tell(3, Edits::parse("masked=6,folded=9,dropped=0")).why, FOLDS);
    }

    #[test]
    fn waiting_is_explained_once() {
        let mut story = story();
        let why = [10, 11, 12].map(|turn| story.tell(turn, Edits::default()).why);
        assert_eq!(why, [&[][..], WAITS, &[]]);
    }
}
