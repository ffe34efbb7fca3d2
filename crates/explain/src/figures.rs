//! The numbers and sentences that the table and the JSON share.

use crate::case::CaseKind;
use crate::fate::{Action, Why};
use crate::folding::Insertion;
use crate::grouped;
use crate::{Case, Ending};
use std::time::Duration;
use tidegate_engine::{Capacity, Cause, ContextWindow, Pace, Plan, Strategy, Tokens, Verdict};

/// Where a model's entry or its window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `budget.windows` of the route or its profile.
    Route,
    /// `[models]`
    Config,
    /// The built-in table.
    Table,
    /// The upstream has named it.
    Learnt,
    /// `budget.fallback_window`
    Fallback,
    Unknown,
}

impl Source {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Source::Route => "route",
            Source::Config => "config",
            Source::Table => "table",
            Source::Learnt => "learnt",
            Source::Fallback => "fallback",
            Source::Unknown => "unknown",
        }
    }
}

/// Returns the source of the model's entry and the source of its window.
///
/// An entry of the configuration takes precedence over the built-in one. A window set by the route takes precedence over both.
pub fn sources(case: &Case<'_>) -> (Source, Source) {
    let model = case.request.model;
    let mut entries = case.request.settings.models.keys();
    let entry = if entries.any(|name| name.eq_ignore_ascii_case(&model.name)) {
        Source::Config
    } else if model.is_known {
        Source::Table
    } else {
        Source::Unknown
    };
    let is_in_models = matches!(model.window, ContextWindow::Configured(_));
    let asked = case.request.outline.model.as_deref().unwrap_or_default();
    let window = match case.assessment.decision.plan.budget.window {
        ContextWindow::Configured(_)
            if case.request.route.context.window_of(asked, is_in_models).is_some() =>
        {
            Source::Route
        }
        ContextWindow::Configured(_) => Source::Config,
        ContextWindow::Known(_) | ContextWindow::Typical(_) => Source::Table,
        ContextWindow::Learnt(_) => Source::Learnt,
        ContextWindow::Fallback(_) => Source::Fallback,
        ContextWindow::Unknown => Source::Unknown,
    };
    (entry, window)
}

/// By how many tokens the planned request exceeds its budget.
pub fn over(plan: &Plan) -> Tokens {
    plan.budget.excess(plan.after)
}

/// Returns the tokens of the messages as sent, and of everything else: tools, response format, the start of the answer.
#[must_use]
pub fn parts(case: &Case<'_>) -> (Tokens, Tokens) {
    let messages: Tokens = case.assessment.chat.messages.iter().map(|one| one.tokens).sum();
    match case.kind {
        CaseKind::Preview => (messages, case.assessment.chat.fixed),
        // Tools are not recorded, but their cost is.
        CaseKind::Recorded => (messages, case.assessment.decision.plan.before.saturating_sub(messages)),
    }
}

/// Whether the reserve for the answer comes from the request's `max_tokens`.
#[must_use]
pub fn is_output_asked_for(case: &Case<'_>) -> bool {
    let budget = &case.assessment.decision.plan.budget;
    match case.kind {
        CaseKind::Preview => case.request.outline.output_limit.is_some(),
        // `max_tokens` is not recorded, but the resulting reserve is.
        CaseKind::Recorded => {
            let assumed = Capacity::of(budget.window);
            case.request.route.context.budget.budget(&assumed).output != budget.output
        }
    }
}

/// Describes what happens to the request, in one sentence.
pub fn verdict(case: &Case<'_>) -> String {
    let plan = &case.assessment.decision.plan;
    let over = over(plan);
    let how = match case.ending() {
        Ending::Refused => {
            return format!(
                "refused with 422 context_budget_exceeded: it needs {} input tokens{}, and {} may be used",
                tokens(plan.after),
                match (plan.folded.is_some(), !plan.masked.is_empty()) {
                    (false, false) if !plan.trimmed.is_empty() => " even trimmed",
                    (false, false) => "",
                    (false, true) => " even masked",
                    (true, false) => " even folded",
                    (true, true) => " even folded and masked",
                },
                limit(plan.budget.refuse_above),
            );
        }
        Ending::AsSent => "forwarded byte for byte as sent".to_owned(),
        Ending::Edited if case.is_folded_later() => {
            format!("forwarded with {} once the summary is there", edits(case))
        }
        Ending::Edited => format!("forwarded with {}", edits(case)),
    };
    if case.request.strategy == Strategy::Passthrough {
        let beyond = if over > Tokens::ZERO {
            format!(", although it is {} tokens over its budget", tokens(over))
        } else {
            String::new()
        };
        format!("{how}{beyond}: `passthrough` neither masks nor refuses")
    } else if case.request.route.context.observe {
        let folded = plan.folded.as_ref().map_or(0, |folded| folded.removed.len());
        let would = match (folded, plan.masked.len()) {
            (0, 0) if case.request.strategy.folds() => "nothing would be changed".to_owned(),
            (0, 0) => "nothing would be masked".to_owned(),
            (0, masked) => format!("{} would be masked", counted(masked, "message")),
            (folded, 0) => format!("{} would be folded", counted(folded, "message")),
            (folded, masked) => {
                format!(
                    "{} would be folded and {} masked",
                    counted(folded, "message"),
                    grouped(masked as u64)
                )
            }
        };
        let would = match (folded + plan.masked.len(), plan.trimmed.len()) {
            (_, 0) => would,
            (0, trimmed) => format!("{} would be trimmed", counted(trimmed, "message")),
            (_, trimmed) => format!("{would} and {} trimmed", grouped(trimmed as u64)),
        };
        let end = match plan.verdict {
            Verdict::Fits => "fit",
            Verdict::OverBudget => "be forwarded although it is over its budget",
            Verdict::Refused => "be refused",
        };
        format!("{how}, because `context.observe` is true: else {would}, and it would {end}")
    } else if plan.verdict == Verdict::Fits {
        match plan.budget.input {
            Some(input) => {
                let left = input.saturating_sub(plan.after);
                format!("fits: {how}, {} of {} input tokens left", tokens(left), tokens(input))
            }
            None => format!("{how}: the model's window is unknown, so nothing limits it"),
        }
    } else {
        format!("{how}, {} tokens over its budget: the upstream judges whether it fits", tokens(over))
    }
}

/// Formats a limit that there may be none of.
#[must_use]
pub fn limit(limit: Option<Tokens>) -> String {
    limit.map_or_else(|| "none".to_owned(), tokens)
}

fn edits(case: &Case<'_>) -> String {
    let mut edits = shortenings(case);
    let untagged = case.fates.iter().filter(|fate| fate.action.untags()).count();
    if untagged > 0 {
        edits.push(format!("{} removed", counted(untagged, "tag")));
    }
    if case.insertions().iter().any(|(_, insertion)| matches!(insertion, Insertion::Memory { .. })) {
        edits.push("the pinned memory added".to_owned());
    }
    listed(edits)
}

/// Describes the edits that shorten the request. Empty if there are none.
pub fn savings(case: &Case<'_>) -> String {
    listed(shortenings(case))
}

fn shortenings(case: &Case<'_>) -> Vec<String> {
    let count = |of: fn(Action) -> bool| case.fates.iter().filter(|fate| of(fate.action)).count();
    let folded = count(|action| action == Action::Fold);
    let dropped = count(|action| action == Action::Drop);
    let masked = count(Action::masks);
    let mut edits = Vec::new();
    match case.summary() {
        Some((_, size, _)) => edits.push(format!(
            "{} folded into a summary of {} tokens",
            counted(folded, "message"),
            tokens(size)
        )),
        // The summary is no longer stored, or only repeats the pinned notes.
        None if folded > 0 => edits.push(format!("{} folded", counted(folded, "message"))),
        None => {}
    }
    if dropped > 0 {
        edits.push(format!("{} dropped", counted(dropped, "message")));
    }
    if masked > 0 {
        edits.push(format!("{} masked", counted(masked, "message")));
    }
    let trimmed = count(Action::trims);
    if trimmed > 0 {
        edits.push(format!("{} trimmed", counted(trimmed, "message")));
    }
    edits
}

fn listed(mut edits: Vec<String>) -> String {
    let last = edits.pop().unwrap_or_default();
    if edits.is_empty() { last } else { format!("{} and {last}", edits.join(", ")) }
}

/// Describes a reason.
pub fn why(case: &Case<'_>, why: Why) -> String {
    let keep = || format!("mask.keep = {}", case.setting("mask.keep"));
    match why {
        Why::Passthrough => "strategy is passthrough".to_owned(),
        Why::Native => {
            "the provider manages the context, as the request asks: context.native = \"defer\"".to_owned()
        }
        Why::LeftAlone => {
            "the provider has refused the conversation once it was edited, so it is left as it is".to_owned()
        }
        Why::BoundThinking => {
            "the model's later thinking is bound to it: an edit here would make the provider refuse that"
                .to_owned()
        }
        Why::UpstreamHistory => {
            "the provider keeps the messages before these, so nothing is edited".to_owned()
        }
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
        Why::Answered => format!("long, and answered: trim.after = {}", case.setting("trim.after")),
        Why::ObservedAnswered => {
            format!("observe = true, else trimmed: trim.after = {}", case.setting("trim.after"))
        }
        Why::Postponed => format!("postponed: {}", waiting(case)),
        Why::Covered => "covered by the summary".to_owned(),
        Why::ObservedCovered => "observe = true, else folded: covered by the summary".to_owned(),
        Why::Dropped => "no summary covers it, and it does not fit".to_owned(),
        Why::LeftOut => "between the head and the tail, and not all of it fits".to_owned(),
        Why::HeadOrTail => "in the head or in the tail".to_owned(),
        Why::LastRequest => "what the user asked for last".to_owned(),
        Why::Spared => {
            "covered by the summary, but there is room for it or the summary rests on it".to_owned()
        }
        Why::PinnedTask => "the task: fold.pin_task = true".to_owned(),
        Why::BehindSummary => {
            format!("behind what the summary covers: fold.keep = {}", case.setting("fold.keep"))
        }
        Why::NoSummary if case.is_summary_useless() => "summary would not be shorter".to_owned(),
        Why::NoSummary => "no summary is due".to_owned(),
    }
}

/// Returns what made the mask frontier move.
pub fn mask_cause(case: &Case<'_>) -> Option<Cause> {
    let decision = &case.assessment.decision;
    // If a summary is still wanted, the plan's cause is that of the summary.
    decision.plan.cause.filter(|cause| decision.wanted.is_none() && !asks_for_summary(*cause))
}

/// Describes what made the mask frontier move, or why it did not.
pub fn cause(case: &Case<'_>) -> String {
    let plan = &case.assessment.decision.plan;
    match mask_cause(case) {
        None if plan.bound > 0 && plan.postponed == 0 => {
            "none: the model's thinking is bound to what stands before it".to_owned()
        }
        None if plan.postponed > 0 => format!("none yet: {}", waiting(case)),
        None => "none: there is nothing to mask".to_owned(),
        Some(cause) => format!("{}: {}", cause.name(), sentence(cause)),
    }
}

/// Whether a cause only ever applies to summaries.
#[must_use]
pub fn asks_for_summary(cause: Cause) -> bool {
    match cause {
        Cause::Messages | Cause::Turns | Cause::Prune | Cause::Blocks => true,
        Cause::Budget | Cause::Free | Cause::EveryTurn | Cause::Batch | Cause::BreakEven => false,
    }
}

/// Describes the cause of a decision.
#[must_use]
pub fn sentence(cause: Cause) -> &'static str {
    match cause {
        Cause::Budget => "the request would not fit otherwise, whatever the pace",
        Cause::Free => "the provider has nothing of it in its cache, or bills it alike, so it costs nothing",
        Cause::EveryTurn => "an observation has left the window, and the pace follows at once",
        Cause::Batch => "enough observations have left the window",
        Cause::BreakEven => "keeping the observations has cost as much as masking them",
        Cause::Messages => "as many messages as fold.when allows have no summary",
        Cause::Turns => "as many turns as fold.when allows have come since the last summary",
        Cause::Prune => "the request hardly fits: prune.when holds, and it cannot wait",
        Cause::Blocks => "the history is longer than blocks.history_max or blocks.total_max allows",
    }
}

fn waiting(case: &Case<'_>) -> String {
    let left = case.assessment.decision.plan.postponed;
    match case.request.route.context.mask.policy.pace {
        Pace::Batch(size) => format!("{left} of a batch of {size} outside the window"),
        Pace::BreakEven | Pace::EveryTurn => "masking would cost more than it saves for now".to_owned(),
    }
}

/// Describes how masking may differ in a running proxy, which knows what it has sent before.
pub fn note(case: &Case<'_>) -> &'static str {
    if case.assessment.is_native || case.assessment.continues_upstream {
        return "nothing is masked in this request: its history is left to the provider";
    }
    match case.request.route.context.mask.policy.pace {
        _ if case.kind == CaseKind::Recorded => "",
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

pub fn tokens(count: Tokens) -> String {
    grouped(count.0)
}

/// Formats a count with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// Formats a duration in the largest unit that is exact.
pub fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis % 1_000 != 0 => format!("{millis}ms"),
        millis if millis % 60_000 != 0 || millis == 0 => format!("{}s", millis / 1_000),
        millis if millis % 3_600_000 != 0 => format!("{}m", millis / 60_000),
        millis => format!("{}h", millis / 3_600_000),
    }
}

/// The maximum length of a displayed name, in characters.
const MAX_NAME: usize = 48;

/// Makes a client-supplied name safe for a terminal: escapes control characters and limits its length.
pub fn printable(name: &str) -> String {
    let mut plain: String = name.chars().take(MAX_NAME).flat_map(escaped).collect();
    if name.chars().nth(MAX_NAME).is_some() {
        plain.push('…');
    }
    plain
}

fn escaped(letter: char) -> impl Iterator<Item = char> {
    let escaped = letter.is_control().then(|| letter.escape_unicode());
    let plain = (!letter.is_control()).then_some(letter);
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_largest_exact_unit() {
        let shown = [0, 1, 1_000, 90_000, 600_000, 3_600_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(shown, ["0s", "1ms", "1s", "90s", "10m", "1h"]);
    }

    #[test]
    fn control_characters_in_names_are_escaped() {
        assert_eq!(printable("read\u{1b}[31m\n"), "read\\u{1b}[31m\\u{a}");
        assert_eq!(printable(&"é".repeat(50)).chars().count(), 49);
    }
}
