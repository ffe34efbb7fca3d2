//! The numbers and sentences that the table and the JSON object share.

use super::fate::{Fate, Why};
use super::{Case, Ending};
use crate::number::grouped;
use std::time::Duration;
use tidegate_engine::{Cause, Pace, Plan, Strategy, Tokens};

/// Where a model's entry, or its window, was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// `[models]`
    Config,
    /// The built-in table.
    Table,
    /// Nowhere.
    Unknown,
}

impl Source {
    /// The name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Source::Config => "config",
            Source::Table => "table",
            Source::Unknown => "unknown",
        }
    }
}

/// Whose the entry is that matched the model, and whose the window.
///
/// An entry of the configuration wins over the built-in ones, under its own name in lower case. Every built-in one has a
/// window.
pub(super) fn sources(case: &Case<'_>) -> (Source, Source) {
    let mut entries = case.settings.models.iter();
    let own = entries.find(|(name, _)| name.eq_ignore_ascii_case(&case.model.name)).map(|(_, entry)| entry);
    let window = match (own, case.model.window) {
        (_, None) => Source::Unknown,
        (Some(entry), Some(_)) if entry.window.is_some() => Source::Config,
        (_, Some(_)) => Source::Table,
    };
    (if own.is_some() { Source::Config } else { window }, window)
}

/// How far the request would be over its budget.
pub(super) fn over(plan: &Plan) -> Tokens {
    plan.after.saturating_sub(plan.budget.input)
}

pub(super) fn verdict(case: &Case<'_>) -> String {
    let plan = &case.assessment.decision.plan;
    let (over, left) = (over(plan), plan.budget.input.saturating_sub(plan.after));
    let edits = edits(&case.fates);
    let how = match case.ending() {
        Ending::Refused => {
            return format!(
                "refused with 422 context_budget_exceeded: it needs {} input tokens{}, and {} may be used",
                tokens(plan.after),
                if plan.masked.is_empty() { "" } else { " even masked" },
                tokens(plan.budget.input),
            );
        }
        Ending::AsSent => "forwarded byte for byte as sent".to_owned(),
        Ending::Edited => format!("forwarded with {edits}"),
    };
    if case.strategy == Strategy::Passthrough {
        let beyond = if over > Tokens::ZERO {
            format!(", although it is {} tokens over its budget", tokens(over))
        } else {
            String::new()
        };
        format!("{how}{beyond}: `passthrough` neither masks nor refuses")
    } else if case.route.context.observe {
        let would = match plan.masked.len() {
            0 => "nothing would be masked".to_owned(),
            count => format!("{} would be masked", counted(count, "message")),
        };
        let end = if over > Tokens::ZERO { "be refused" } else { "fit" };
        format!("{how}, because `context.observe` is true: else {would}, and it would {end}")
    } else {
        format!("fits: {how}, {} of {} input tokens left", tokens(left), tokens(plan.budget.input))
    }
}

fn edits(fates: &[Fate]) -> String {
    let masked = fates.iter().filter(|fate| fate.action.masks()).count();
    let untagged = fates.iter().filter(|fate| fate.action.untags()).count();
    match (masked, untagged) {
        (masked, 0) => format!("{} masked", counted(masked, "message")),
        (0, untagged) => format!("{} removed", counted(untagged, "tag")),
        (masked, untagged) => {
            format!("{} masked and {} removed", counted(masked, "message"), counted(untagged, "tag"))
        }
    }
}

pub(super) fn why(case: &Case<'_>, why: Why) -> String {
    let keep = || format!("mask.keep = {}", case.setting("mask.keep"));
    match why {
        Why::Passthrough => "strategy is passthrough".to_owned(),
        Why::Instruction => "instruction".to_owned(),
        Why::Speech => "not an observation".to_owned(),
        Why::OwnWords => "an assistant's own words are never masked".to_owned(),
        Why::NoContent => "no content to mask".to_owned(),
        Why::ExcludedTool => "tool is excluded by mask.exclude_tools".to_owned(),
        Why::NotShorter => "placeholder would not be shorter".to_owned(),
        Why::UnresolvedEnd => "unresolved end".to_owned(),
        Why::InsideWindow => format!("inside {}", keep()),
        Why::OutsideWindow => format!("older than {}", keep()),
        Why::Observed => format!("observe = true, else masked: older than {}", keep()),
        Why::Postponed => format!("postponed: {}", waiting(case)),
    }
}

/// What made the frontier move, or why it stays.
pub(super) fn cause(case: &Case<'_>) -> String {
    let plan = &case.assessment.decision.plan;
    match plan.cause {
        None if plan.postponed > 0 => format!("none yet: {}", waiting(case)),
        None => "none: there is nothing to mask".to_owned(),
        Some(cause) => {
            let sentence = match cause {
                Cause::Budget => "the request would not fit otherwise, whatever the pace",
                Cause::Free => {
                    "the provider has nothing of it in its cache, or bills it alike, so it costs nothing"
                }
                Cause::EveryTurn => "an observation has left the window, and the pace follows at once",
                Cause::Batch => "enough observations have left the window",
                Cause::BreakEven => "keeping the observations has cost as much as masking them",
            };
            format!("{}: {sentence}", cause.name())
        }
    }
}

fn waiting(case: &Case<'_>) -> String {
    let left = case.assessment.decision.plan.postponed;
    match case.route.context.mask.policy.pace {
        Pace::Batch(size) => format!("{left} of a batch of {size} outside the window"),
        Pace::BreakEven | Pace::EveryTurn => "masking would cost more than it saves for now".to_owned(),
    }
}

/// What a running proxy may do otherwise, because it knows what it has sent before.
pub(super) fn note(pace: Pace) -> &'static str {
    match pace {
        Pace::BreakEven => {
            "no earlier request is known: the cache counts as cold and masking as free; in a running conversation it \
             waits until keeping the observations has cost as much as masking them"
        }
        Pace::Batch(_) => {
            "no earlier request is known: every observation outside the window counts for the batch; in a running \
             conversation only those since the last one do"
        }
        Pace::EveryTurn => "no earlier request is known: with this pace that makes no difference",
    }
}

pub(super) fn tokens(count: Tokens) -> String {
    grouped(count.0)
}

pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// In the largest unit that is exact.
pub(super) fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis % 1_000 != 0 => format!("{millis}ms"),
        millis if millis % 60_000 != 0 || millis == 0 => format!("{}s", millis / 1_000),
        millis if millis % 3_600_000 != 0 => format!("{}m", millis / 60_000),
        millis => format!("{}h", millis / 3_600_000),
    }
}

/// The longest name that is shown whole.
const LONGEST_NAME: usize = 48;

/// A name that a client chose, made safe for a terminal: no control characters, no endless line.
pub(super) fn printable(name: &str) -> String {
    let mut plain: String = name.chars().take(LONGEST_NAME).flat_map(shown).collect();
    if name.chars().nth(LONGEST_NAME).is_some() {
        plain.push('…');
    }
    plain
}

fn shown(letter: char) -> impl Iterator<Item = char> {
    let escaped = letter.is_control().then(|| letter.escape_unicode());
    let plain = (!letter.is_control()).then_some(letter);
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        let numbers = [0, 7, 999, 1_000, 12_345, 999_999, 1_000_000].map(grouped);
        assert_eq!(numbers, ["0", "7", "999", "1,000", "12,345", "999,999", "1,000,000"]);
    }

    #[test]
    fn durations_are_exact() {
        let shown = [0, 1, 1_000, 90_000, 600_000, 3_600_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(shown, ["0s", "1ms", "1s", "90s", "10m", "1h"]);
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(printable("read\u{1b}[31m\n"), "read\\u{1b}[31m\\u{a}");
        assert_eq!(printable(&"é".repeat(50)).chars().count(), 49);
    }
}
