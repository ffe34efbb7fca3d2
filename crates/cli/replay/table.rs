//! Renders the result for people.

use super::ReplayResult;
use crate::conversations::terminal::one_line;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use std::fmt::Write;
use std::io::IsTerminal;
use tidegate_explain::grouped;
use tidegate_replay::{Figures, Kind, Need, Policy, Setup};

pub(super) fn render(result: &ReplayResult<'_>) -> String {
    let ReplayResult { setup, comparison, .. } = result;
    let mut out = String::new();
    let requests = comparison.totals.first().and_then(|totals| totals.first()).map_or(0, |raw| raw.requests);
    let models: Vec<String> = comparison.models.iter().map(|model| one_line(model)).collect();
    let _ = writeln!(
        out,
        "{}, {}, {}",
        plural(comparison.conversations.len() as u64, "conversation"),
        plural(requests, "request"),
        models.join(", ")
    );
    for note in &result.notes {
        let _ = writeln!(out, "  {}", one_line(note));
    }
    if let Some(needs) = &result.needs {
        let _ = writeln!(out, "\nneed, at {}\n{}", setup.regimes[0], need(setup, needs).trim_fmt());
    }
    for regime in 0..setup.regimes.len() {
        let _ = writeln!(out, "\n{}\n{}", setup.regimes[regime], policies(result, regime).trim_fmt());
        if setup.policies.len() > setup.main {
            let _ = writeln!(out, "\nby window, cost / raw\n{}", windows(result, regime).trim_fmt());
        }
        if let Some(recommendations) = &result.recommendations {
            let _ = write!(out, "\n{}", recommendation(result, regime, recommendations[regime].as_ref()));
        }
    }
    out
}

fn policies(result: &ReplayResult<'_>, regime: usize) -> Table {
    let ReplayResult { setup, comparison, .. } = result;
    let mut table = table();
    let has_room = table.width().is_none_or(|width| width >= WIDE_TERMINAL);
    let shown: Vec<&Column> = COLUMNS.iter().filter(|column| has_room || !column.is_extra).collect();
    table.set_header(shown.iter().map(|column| column.name));
    let totals = &comparison.totals[regime];
    for (index, (policy, figures)) in setup.policies.iter().zip(totals).take(setup.main).enumerate() {
        let worst = comparison.worst(regime, index).filter(|_| index > 0);
        let row = Row { policy, figures, raw: &totals[0], worst };
        table.add_row(shown.iter().map(|column| (column.cell)(&row)));
    }
    for (column, shown) in table.column_iter_mut().zip(&shown) {
        column.set_padding((0, 2)).set_constraint(ColumnConstraint::ContentWidth);
        if !matches!(shown.name, "policy" | "worst") {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// How often an answer used what a policy had shortened.
fn need(setup: &Setup, needs: &[Need]) -> Table {
    let mut table = table();
    table.set_header(["policy", "answers", "needed", "share", "by chance", "conversations in need"]);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for (policy, need) in setup.policies.iter().zip(needs) {
        table.add_row([
            one_line(&policy.to_string()),
            grouped(need.answers),
            grouped(need.needed),
            percent(need.share()),
            percent(need.chance()),
            format!("{} of {}", grouped(need.conversations_in_need), grouped(need.conversations)),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The terminal width from which all columns fit.
const WIDE_TERMINAL: u16 = 132;

/// The inputs of a row.
struct Row<'a> {
    policy: &'a Policy,
    figures: &'a Figures,
    raw: &'a Figures,
    worst: Option<(&'a str, f64)>,
}

struct Column {
    name: &'static str,
    /// Whether narrow terminals omit the column.
    is_extra: bool,
    cell: fn(&Row<'_>) -> String,
}

const COLUMNS: [Column; 11] = [
    Column { name: "policy", is_extra: false, cell: |row| one_line(&row.policy.to_string()) },
    Column { name: "requests", is_extra: true, cell: |row| grouped(row.figures.requests) },
    Column { name: "tokens sent", is_extra: false, cell: |row| grouped(row.figures.sent) },
    Column {
        name: "cached",
        is_extra: false,
        cell: |row| format!("{:.0} %", row.figures.cached_share() * 100.0),
    },
    Column { name: "input cost", is_extra: false, cell: |row| cost(row.figures) },
    Column {
        name: "/ raw",
        is_extra: false,
        cell: |row| format!("{:.3}", row.figures.cost.ratio_to(&row.raw.cost)),
    },
    Column {
        name: "worst",
        is_extra: false,
        cell: |row| row.worst.map_or("-".to_owned(), |(id, ratio)| format!("{ratio:.2} {}", shortened(id))),
    },
    Column { name: "refused", is_extra: false, cell: |row| grouped(row.figures.unanswered()) },
    Column { name: "edited", is_extra: false, cell: |row| grouped(row.figures.edited) },
    Column { name: "moves", is_extra: true, cell: |row| grouped(row.figures.moves) },
    Column { name: "summaries", is_extra: true, cell: |row| grouped(row.figures.summaries) },
];

/// One row per window, one column per policy tried with it.
fn windows(result: &ReplayResult<'_>, regime: usize) -> Table {
    let ReplayResult { setup, comparison, .. } = result;
    let totals = &comparison.totals[regime];
    let swept: Vec<(&Policy, &Figures)> = setup.policies.iter().zip(totals).skip(setup.main).collect();
    let mut kinds: Vec<&Kind> = swept.iter().map(|(policy, _)| &policy.kind).collect();
    kinds.dedup();
    let mut turns: Vec<_> = swept.iter().filter_map(|(policy, _)| policy.keep).collect();
    turns.sort_unstable();
    turns.dedup();
    let mut table = table();
    let name = |kind: &&Kind| Policy { kind: (*kind).clone(), keep: None }.to_string();
    table.set_header(std::iter::once("turns kept".to_owned()).chain(kinds.iter().map(name)));
    for turns in turns {
        let ratio = |kind: &&Kind| {
            let found = swept.iter().find(|(policy, _)| policy.kind == **kind && policy.keep == Some(turns));
            found.map_or("-".to_owned(), |(_, figures)| {
                format!("{:.3}", figures.cost.ratio_to(&totals[0].cost))
            })
        };
        table.add_row(std::iter::once(turns.to_string()).chain(kinds.iter().map(ratio)));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn recommendation(
    result: &ReplayResult<'_>,
    regime: usize,
    best: Option<&tidegate_replay::Recommendation>,
) -> String {
    let Some(best) = best else {
        return "recommended: nothing, because no policy is within these limits\n  hint: loosen --keep-at-least, --peak or --only, or try more --windows\n"
            .to_owned();
    };
    let figures = &result.comparison.totals[regime][best.policy];
    let policy = &result.setup.policies[best.policy];
    let mut text = format!(
        "recommended: {policy}, at {:.3} of the cost of raw ({}), no request longer than {} tokens\n\n",
        best.ratio,
        cost(figures),
        grouped(figures.peak)
    );
    for line in best.snippet.lines() {
        let _ = writeln!(text, "{}", format!("    {line}").trim_end());
    }
    text += "\n  a smaller window nearly always costs less, and may cost quality: --keep-at-least N allows any of N turns or more,\n  \
             and without it none below the configured one is recommended\n";
    text
}

fn cost(figures: &Figures) -> String {
    match figures.cost.known_usd() {
        Some(usd) if usd >= 100.0 => format!("${usd:.0}"),
        Some(usd) if usd >= 1.0 => format!("${usd:.2}"),
        Some(usd) => format!("${usd:.4}"),
        None => "n/a".to_owned(),
    }
}

fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Shortens a conversation id to the width of its column.
fn shortened(id: &str) -> String {
    const MAX_WIDTH: usize = 20;
    let id = one_line(id);
    if id.chars().count() <= MAX_WIDTH {
        return id;
    }
    id.chars().take(MAX_WIDTH - 1).chain(['…']).collect()
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        // A pipe has no width: print one policy per line, never wrapped.
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table
}
