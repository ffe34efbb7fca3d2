//! What happened to each request of the demo, and why, in words.

use tidegate_config::Settings;
use tidegate_engine::{Pace, Strategy};
use tidegate_tokens::Model;

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
    /// Why something is masked, when it is.
    masks: &'static [&'static str],
    before: Edits,
    has_explained_waiting: bool,
}

/// The first request whose oldest result has left the ten turns that are kept.
const FIRST_DUE: usize = 11;

const WAITS: &[&str] = &[
    "why: a result is older than ten turns and could be masked. But that would",
    "     break the provider's cache, which costs more than it saves yet.",
];
const PAID: &[&str] = &["why: keeping them has cost as much as the cache miss that masking causes."];
const FREE: &[&str] = &["why: they have left the turns that are kept, and masking breaks no discount."];
const EVERY_TURN: &[&str] = &["why: they have left the turns that are kept, and `mask.pace` is every turn."];
const BATCH: &[&str] = &["why: as many have left the turns that are kept as `mask.pace` collects."];
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
    pub(super) fn new(settings: &Settings, model: &Model) -> Story {
        let route = settings.routes.first();
        let strategy = route.map_or(Strategy::Passthrough, |route| route.context.strategy);
        let pace = route.map_or(Pace::BreakEven, |route| route.context.mask.policy.pace);
        Story { strategy, masks: masks(pace, model), before: Edits::default(), has_explained_waiting: false }
    }

    pub(super) fn tell(&mut self, turn: usize, edits: Edits) -> Happened {
        let before = std::mem::replace(&mut self.before, edits);
        let why = if edits.folded > before.folded {
            FOLDS
        } else if edits.dropped > before.dropped {
            DROPS
        } else if edits.masked > before.masked {
            self.masks
        } else {
            self.why_not(turn, edits)
        };
        let is_new = edits != before && edits != Edits::default();
        Happened { what: edits.words(is_new), is_new, why }
    }

    fn why_not(&mut self, turn: usize, edits: Edits) -> &'static [&'static str] {
        let waits = self.strategy.masks()
            && turn >= FIRST_DUE
            && edits == Edits::default()
            && !self.has_explained_waiting;
        self.has_explained_waiting |= waits;
        if waits { WAITS } else { &[] }
    }
}

fn masks(pace: Pace, model: &Model) -> &'static [&'static str] {
    match pace {
        Pace::EveryTurn => EVERY_TURN,
        Pace::Batch(_) => BATCH,
        Pace::BreakEven if has_discount(model) => PAID,
        Pace::BreakEven => FREE,
    }
}

/// Whether cached input costs less than fresh, as is assumed where prices are unknown. Where it does not, there is nothing to break
/// even with.
fn has_discount(model: &Model) -> bool {
    model.prices.is_none_or(|prices| prices.lowest_cached() < prices.input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::{Flags, Source, load};
    use tidegate_context::model_table;

    fn told(config: &str, model: &str) -> &'static [&'static str] {
        let settings = load(Source::new("proxy.toml", config), &Flags::default(), &|_| None).unwrap();
        let model = model_table(&settings.models).lookup(model);
        Story::new(&settings, &model).tell(20, Edits::parse("masked=6,folded=0,dropped=0")).why
    }

    fn story() -> Story {
        Story {
            strategy: Strategy::Masking,
            masks: PAID,
            before: Edits::default(),
            has_explained_waiting: false,
        }
    }

    #[test]
    fn the_reason_for_masking_is_that_of_the_pace_and_the_price() {
        assert_eq!(told("", "gpt-4o"), PAID);
        let flat = "[models.mine]\nwindow = 128000\ninput = 1.0\ncached_input = 1.0\noutput = 2.0\n";
        assert_eq!(told(flat, "mine"), FREE);
        let pace = |pace: &str| told(&format!("[context.mask]\npace = {pace}\n"), "gpt-4o");
        assert_eq!(pace("\"every_turn\""), EVERY_TURN);
        assert_eq!(pace("{ batch = 4 }"), BATCH);
        for why in [PAID, FREE, EVERY_TURN, BATCH] {
            assert!(why.iter().all(|line| line.len() <= 76), "{why:?}");
        }
    }

    #[test]
    fn an_edit_is_told_once_and_then_repeated() {
        let mut story = story();
        let masked = Edits::parse("masked=6,folded=0,dropped=0");
        assert_eq!(story.tell(0, Edits::default()).what, "unchanged");
        let first = story.tell(1, masked);
        assert_eq!((first.what.as_str(), first.is_new, first.why), ("6 masked now", true, PAID));
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
