//! What became of every request of a conversation: a row each, or everything that was recorded.

use super::figures;
use super::terminal::one_line;
use std::fmt::Write;
use tidegate_context::{BlockSizes, TurnRecord};
use tidegate_explain::grouped;

/// A row a turn.
pub(super) fn table(turns: &[TurnRecord]) -> String {
    let row = |turn: &TurnRecord| {
        let optional = |text: &Option<String>| one_line(text.as_deref().unwrap_or("-"));
        [
            figures::moment(turn.at),
            one_line(&turn.model),
            figures::change(turn.tokens_before, turn.tokens_after),
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

/// Every figure, in some lines a turn. What did not happen has no line.
pub(super) fn details(turns: &[TurnRecord]) -> String {
    let mut out = String::new();
    for turn in turns {
        // Writing into a string does not fail.
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

fn lines(turn: &TurnRecord) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("strategy", one_line(&turn.strategy)),
        ("window", format!("{}, {} of it for the input", grouped(turn.window), grouped(turn.budget))),
        ("tokens", tokens(turn)),
        ("messages", count(turn.messages)),
    ];
    let mut add = |is_worth_it: bool, name, value: &dyn Fn() -> String| {
        if is_worth_it {
            lines.push((name, value()));
        }
    };
    add(turn.overflow_rejected, "refused", &|| "not even the least that may be sent fits".to_owned());
    add(!turn.masked.is_empty() || turn.postponed > 0, "masked", &|| {
        let (masked, tokens) = (count(turn.masked.len()), grouped(turn.masked_tokens));
        format!("{masked} observations of {tokens} tokens, {} postponed", count(turn.postponed))
    });
    add(turn.folded > 0 || turn.summary_triggered, "summary", &|| {
        let made = if turn.summary_triggered { ", made for this turn" } else { "" };
        format!("for {} messages in {} tokens{made}", count(turn.folded), grouped(turn.summary_tokens))
    });
    add(turn.dropped > 0 || turn.prune_triggered, "dropped", &|| {
        let pruned = if turn.prune_triggered { ", beyond what the summary covers by itself" } else { "" };
        format!("{} messages behind a marker{pruned}", count(turn.dropped))
    });
    add(turn.trigger.is_some(), "trigger", &|| one_line(turn.trigger.as_deref().unwrap_or_default()));
    add(turn.blocks.is_some(), "blocks", &|| turn.blocks.as_ref().map(blocks).unwrap_or_default());
    add(true, "cost", &|| cost(turn));
    add(turn.stop_hint.is_some(), "hint", &|| {
        format!("nothing new for {} turns", turn.stop_hint.unwrap_or_default())
    });
    add(turn.degraded.is_some(), "degraded", &|| one_line(turn.degraded.as_deref().unwrap_or_default()));
    add(true, "time", &|| {
        let first = turn.first_byte_ms.map(|first| format!(", first byte after {} ms", grouped(first)));
        let ours = grouped(turn.overhead_us);
        format!("{} ms{}, {ours} µs of it ours", grouped(turn.duration_ms), first.unwrap_or_default())
    });
    lines
}

fn tokens(turn: &TurnRecord) -> String {
    let TurnRecord { tokens_before, tokens_after_summary, tokens_after_prune, tokens_after, .. } = *turn;
    let mut steps = format!("{} as sent", grouped(tokens_before));
    if turn.summary_triggered {
        let _ = write!(steps, ", {} with the summary", grouped(tokens_after_summary));
    }
    if turn.prune_triggered {
        let _ = write!(steps, ", {} once more had gone", grouped(tokens_after_prune));
    }
    let _ = write!(steps, ", {} forwarded", grouped(if turn.overflow_rejected { 0 } else { tokens_after }));
    steps
}

fn blocks(sizes: &BlockSizes) -> String {
    let mut all = format!(
        "memory {}, summary {}, history {}",
        figures::change(sizes.memory_before, sizes.memory_after),
        figures::change(sizes.summary_before, sizes.summary_after),
        figures::change(sizes.history_before, sizes.history_after)
    );
    if sizes.removed_lines > 0 {
        let _ = write!(all, ", {} lines that the memory says already", count(sizes.removed_lines));
    }
    if sizes.fell_back_to_words {
        all.push_str(", in words although tokens are asked for");
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
        outcome => format!("{} {}", turn.status, one_line(outcome)),
    }
}

fn count(number: usize) -> String {
    grouped(number.try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_without_edits_has_few_lines() {
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
            "1970-01-01 00:00:00Z  r1  default  gpt-4o\\u{1b}  200\n    strategy  masking\n    window    128,000, 119,552 of it \
             for the input\n    tokens    8 as sent, 8 forwarded\n    messages  2\n    cost      n/a: n/a prompt, n/a of them \
             cached, n/a completion\n    time      1,200 ms, 290 µs of it ours\n"
        );
    }

    #[test]
    fn everything_that_happened_is_said() {
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
        let said = details(&[turn]);
        for line in [
            "tokens    9,000 as sent, 2,000 with the summary, 1,500 once more had gone, 1,500 forwarded",
            "masked    2 observations of 800 tokens, 1 postponed",
            "summary   for 7 messages in 300 tokens, made for this turn",
            "dropped   2 messages behind a marker, beyond what the summary covers by itself",
            "trigger   overflow",
            "blocks    memory 400 → 300, summary 0 → 0, history 0 → 0, 2 lines that the memory says already, in words although tokens are asked for",
            "cost      $0.001250: 1,510 prompt, n/a of them cached, n/a completion",
            "hint      nothing new for 3 turns",
            "degraded  store_timeout",
            "time      0 ms, first byte after 40 ms, 0 µs of it ours",
        ] {
            assert!(said.contains(&format!("    {line}\n")), "{line} in {said}");
        }
        let refused = TurnRecord { overflow_rejected: true, tokens_after: 9_000, ..TurnRecord::default() };
        let said = details(&[refused]);
        assert!(said.contains("0 forwarded") && said.contains("refused   not even"), "{said}");
    }
}
