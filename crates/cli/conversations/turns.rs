//! Renders the turns of a conversation: one row each, or every recorded figure.

use super::figures;
use super::terminal::one_line;
use std::fmt::Write;
use tidegate_context::{BlockSizes, TurnRecord};
use tidegate_explain::grouped;

/// One row per turn.
pub(super) fn table(turns: &[TurnRecord]) -> String {
    let row = |turn: &TurnRecord| {
        let optional = |text: &Option<String>| one_line(text.as_deref().unwrap_or("-"));
        [
            figures::moment(turn.at),
            one_line(&turn.model),
            figures::change(turn.tokens_before, forwarded(turn)),
            grouped(turn.budget),
            turn.masked.len().to_string(),
            turn.folded.to_string(),
            turn.dropped.to_string(),
            optional(&turn.trigger),
            figures::usd(turn.cost_usd),
            status(turn),
            optional(&turn.degraded),
        ]
    };
    let header = [
        "time", "model", "tokens", "budget", "masked", "folded", "dropped", "trigger", "cost", "status",
        "degraded",
    ];
    figures::table(header, &[2, 3, 4, 5, 6, 8], turns.iter().map(row).collect())
}

/// Every figure of every turn. Figures that do not apply are omitted.
pub(super) fn details(turns: &[TurnRecord]) -> String {
    let mut out = String::new();
    for turn in turns {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{}  {}  {}  {}  {}",
            figures::moment(turn.at),
            one_line(&turn.request_id),
            one_line(&turn.route),
            one_line(&turn.model),
            status(turn)
        );
        for (name, value) in lines(turn) {
            let _ = writeln!(out, "    {name:10}{value}");
        }
    }
    out
}

fn window(turn: &TurnRecord) -> String {
    if turn.window == 0 {
        return "unknown".to_owned();
    }
    format!("{}, input budget {}", grouped(turn.window), grouped(turn.budget))
}

fn lines(turn: &TurnRecord) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("strategy", one_line(&turn.strategy)),
        ("window", window(turn)),
        ("tokens", tokens(turn)),
        ("messages", count(turn.messages)),
    ];
    let mut add = |is_shown: bool, name, value: &dyn Fn() -> String| {
        if is_shown {
            lines.push((name, value()));
        }
    };
    add(turn.overflow_rejected, "refused", &|| {
        "even the smallest allowed request exceeds the budget".to_owned()
    });
    add(!turn.masked.is_empty() || turn.postponed > 0, "masked", &|| {
        let (masked, tokens) = (count(turn.masked.len()), grouped(turn.masked_tokens));
        format!("{masked} observations of {tokens} tokens, {} postponed", count(turn.postponed))
    });
    add(turn.bound > 0, "bound", &|| {
        format!("{} messages, by the model's thinking behind them", count(turn.bound))
    });
    add(turn.left_alone, "left alone", &|| "the provider has refused an edited request".to_owned());
    add(!turn.trimmed.is_empty(), "trimmed", &|| {
        let (trimmed, saved) = (count(turn.trimmed.len()), grouped(turn.saved_by_trimming));
        format!("{trimmed} observations of {} tokens, {saved} left out", grouped(turn.trimmed_tokens))
    });
    add(turn.folded > 0 || turn.summary_triggered, "summary", &|| {
        let new = if turn.summary_triggered { ", written for this turn" } else { "" };
        format!("of {} messages in {} tokens{new}", count(turn.folded), grouped(turn.summary_tokens))
    });
    add(turn.dropped > 0 || turn.prune_triggered, "dropped", &|| {
        let pruned = if turn.prune_triggered { ", pruned beyond what the summary covers" } else { "" };
        format!("{} messages, replaced by a marker{pruned}", count(turn.dropped))
    });
    add(turn.trigger.is_some(), "trigger", &|| one_line(turn.trigger.as_deref().unwrap_or_default()));
    add(turn.blocks.is_some(), "blocks", &|| turn.blocks.as_ref().map(blocks).unwrap_or_default());
    add(true, "cost", &|| cost(turn));
    add(turn.stop_hint.is_some(), "hint", &|| {
        format!("no progress for {} turns", turn.stop_hint.unwrap_or_default())
    });
    add(turn.degraded.is_some(), "degraded", &|| one_line(turn.degraded.as_deref().unwrap_or_default()));
    add(true, "time", &|| {
        let first = turn.first_byte_ms.map(|first| format!(", first byte after {} ms", grouped(first)));
        let overhead = grouped(turn.overhead_us);
        format!(
            "{} ms{}, {overhead} µs added by Tidegate",
            grouped(turn.duration_ms),
            first.unwrap_or_default()
        )
    });
    lines
}

fn tokens(turn: &TurnRecord) -> String {
    let TurnRecord { tokens_before, tokens_after_summary, tokens_after_prune, tokens_after, .. } = *turn;
    let mut steps = format!("{} as sent", grouped(tokens_before));
    if turn.summary_triggered {
        let _ = write!(steps, ", {} with summary", grouped(tokens_after_summary));
    }
    if turn.prune_triggered {
        let _ = write!(steps, ", {} after pruning", grouped(tokens_after_prune));
    }
    let _ = write!(steps, ", {} forwarded", grouped(forwarded(turn)));
    if turn.observed {
        let _ = write!(steps, ", {} planned and not applied", grouped(tokens_after));
    }
    steps
}

/// The tokens that reached the upstream. The plan of an observed turn was not applied, and what is refused goes nowhere.
fn forwarded(turn: &TurnRecord) -> u64 {
    if turn.overflow_rejected || turn.outcome == "refused" {
        0
    } else if turn.observed {
        turn.tokens_before
    } else {
        turn.tokens_after
    }
}

fn blocks(sizes: &BlockSizes) -> String {
    let mut all = format!(
        "memory {}, summary {}, history {}",
        figures::change(sizes.memory_before, sizes.memory_after),
        figures::change(sizes.summary_before, sizes.summary_after),
        figures::change(sizes.history_before, sizes.history_after)
    );
    if sizes.removed_lines > 0 {
        let _ = write!(all, ", {} duplicate lines removed", count(sizes.removed_lines));
    }
    if sizes.fell_back_to_words {
        all.push_str(", counted in words because tokens could not be counted");
    }
    all
}

fn cost(turn: &TurnRecord) -> String {
    let reported = |value: Option<u64>| value.map_or_else(|| "n/a".to_owned(), grouped);
    format!(
        "{}: {} prompt, {} of them cached, {} completion",
        figures::usd(turn.cost_usd),
        reported(turn.prompt_tokens),
        reported(turn.cached_tokens),
        reported(turn.completion_tokens)
    )
}

fn status(turn: &TurnRecord) -> String {
    match turn.outcome.as_str() {
        "" | "answered" => turn.status.to_string(),
        outcome => match &turn.reason {
            Some(reason) => format!("{} {}: {}", turn.status, one_line(outcome), one_line(reason)),
            None => format!("{} {}", turn.status, one_line(outcome)),
        },
    }
}

fn count(number: usize) -> String {
    grouped(number.try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_without_edits_omits_unused_lines() {
        let turn = TurnRecord {
            request_id: "r1".to_owned(),
            route: "default".to_owned(),
            model: "gpt-4o\u{1b}".to_owned(),
            strategy: "masking".to_owned(),
            status: 200,
            messages: 2,
            tokens_before: 8,
            tokens_after: 8,
            window: 128_000,
            budget: 119_552,
            duration_ms: 1_200,
            overhead_us: 290,
            ..TurnRecord::default()
        };
        assert_eq!(
            details(&[turn]),
            "1970-01-01 00:00:00Z  r1  default  gpt-4o\\u{1b}  200\n    strategy  masking\n    window    128,000, input budget \
             119,552\n    tokens    8 as sent, 8 forwarded\n    messages  2\n    cost      n/a: n/a prompt, n/a of them \
             cached, n/a completion\n    time      1,200 ms, 290 µs added by Tidegate\n"
        );
    }

    #[test]
    fn what_was_only_planned_or_refused_was_not_forwarded() {
        let observed =
            TurnRecord { observed: true, tokens_before: 900, tokens_after: 400, ..TurnRecord::default() };
        assert_eq!(tokens(&observed), "900 as sent, 900 forwarded, 400 planned and not applied");
        let refused = TurnRecord {
            status: 422,
            outcome: "refused".to_owned(),
            reason: Some("max_turns_exceeded".to_owned()),
            tokens_before: 900,
            tokens_after: 400,
            ..TurnRecord::default()
        };
        assert_eq!(tokens(&refused), "900 as sent, 0 forwarded");
        assert_eq!(status(&refused), "422 refused: max_turns_exceeded");
        assert!(table(&[observed, refused]).contains("900 → 900"));
    }

    #[test]
    fn every_recorded_figure_is_shown() {
        let turn = TurnRecord {
            tokens_before: 9_000,
            tokens_after_summary: 2_000,
            tokens_after_prune: 1_500,
            tokens_after: 1_500,
            summary_triggered: true,
            prune_triggered: true,
            folded: 7,
            summary_tokens: 300,
            dropped: 2,
            masked: vec![3, 5],
            masked_tokens: 800,
            postponed: 1,
            trigger: Some("overflow".to_owned()),
            blocks: Some(BlockSizes {
                memory_before: 400,
                memory_after: 300,
                removed_lines: 2,
                fell_back_to_words: true,
                ..BlockSizes::default()
            }),
            cost_usd: Some(0.001_25),
            prompt_tokens: Some(1_510),
            stop_hint: Some(3),
            degraded: Some("store_timeout".to_owned()),
            first_byte_ms: Some(40),
            ..TurnRecord::default()
        };
        let shown = details(&[turn]);
        for line in [
            "tokens    9,000 as sent, 2,000 with summary, 1,500 after pruning, 1,500 forwarded",
            "masked    2 observations of 800 tokens, 1 postponed",
            "summary   of 7 messages in 300 tokens, written for this turn",
            "dropped   2 messages, replaced by a marker, pruned beyond what the summary covers",
            "trigger   overflow",
            "blocks    memory 400 → 300, summary 0 → 0, history 0 → 0, 2 duplicate lines removed, counted in words because tokens could not be counted",
            "cost      $0.001250: 1,510 prompt, n/a of them cached, n/a completion",
            "hint      no progress for 3 turns",
            "degraded  store_timeout",
            "time      0 ms, first byte after 40 ms, 0 µs added by Tidegate",
        ] {
            assert!(shown.contains(&format!("    {line}\n")), "{line} in {shown}");
        }
        let refused = TurnRecord { overflow_rejected: true, tokens_after: 9_000, ..TurnRecord::default() };
        let shown = details(&[refused]);
        assert!(shown.contains("0 forwarded") && shown.contains("refused   even the smallest"), "{shown}");
    }
}
