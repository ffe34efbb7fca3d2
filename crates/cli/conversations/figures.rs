//! Formats numbers and times for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::io::IsTerminal;
use std::time::{Duration, UNIX_EPOCH};
use tidegate_explain::grouped;

pub(super) fn change(before: u64, after: u64) -> String {
    format!("{} → {}", grouped(before), grouped(after))
}

/// The reduction from `before` to `after` in percent.
pub(super) fn saved(before: u64, after: u64) -> String {
    if before == 0 {
        return "-".to_owned();
    }
    // Token counts are far below the integers that a float represents exactly.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let share = 100.0 * (before as f64 - after as f64) / before as f64;
    format!("{share:.0}%")
}

/// An amount in USD with the significant digits; `n/a` if unknown.
pub(super) fn usd(amount: Option<f64>) -> String {
    match amount {
        None => "n/a".to_owned(),
        Some(amount) if amount >= 1.0 => format!("${amount:.2}"),
        Some(amount) if amount >= 0.01 => format!("${amount:.4}"),
        Some(amount) if amount >= 0.000_001 || amount == 0.0 => format!("${amount:.6}"),
        Some(_) => "<$0.000001".to_owned(),
    }
}

/// The savings and the estimated cost without edits. Negative if editing cost more than it saved.
pub(super) fn avoided(cost: Option<f64>, unedited: Option<f64>) -> String {
    let (Some(cost), Some(unedited)) = (cost, unedited) else { return "n/a".to_owned() };
    let saved = unedited - cost;
    let sign = if saved < 0.0 { "-" } else { "" };
    format!("{sign}{} of {}, estimated", usd(Some(saved.abs())), usd(Some(unedited)))
}

/// The time since `then` in the largest unit. Both are milliseconds since 1970.
pub(super) fn ago(now: u64, then: u64) -> String {
    match now.saturating_sub(then) / 1000 {
        0..5 => "just now".to_owned(),
        seconds @ 5..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// Formats milliseconds since 1970 as date and time in UTC.
pub(super) fn moment(millis: u64) -> String {
    let moment = UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_seconds(moment).to_string().replace('T', " ")
}

/// A table without borders, with the columns in `right` right-aligned.
pub(super) fn table<const N: usize>(header: [&str; N], right: &[usize], rows: Vec<[String; N]>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        // A pipe has no width: print one row per line, never wrapped.
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table.set_header(header);
    table.add_rows(rows);
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_formatted_as_dates() {
        assert_eq!(moment(0), "1970-01-01 00:00:00Z");
        assert_eq!(moment(951_827_696_789), "2000-02-29 12:34:56Z");
        assert_eq!(moment(1_709_251_199_000), "2024-02-29 23:59:59Z");
        assert_eq!(moment(1_709_251_200_000), "2024-03-01 00:00:00Z");
        assert_eq!(moment(4_102_444_799_999), "2099-12-31 23:59:59Z");
    }

    #[test]
    fn ages_use_the_largest_unit() {
        let shown = [0, 5_000, 59_999, 180_000, 3_600_000, 172_800_000]
            .map(|then| ago(200_000_000_000, 200_000_000_000 - then));
        assert_eq!(shown, ["just now", "5 s ago", "59 s ago", "3 min ago", "1 h ago", "2 days ago"]);
        assert_eq!(ago(1, 9_000), "just now", "clocks of two machines may differ");
    }

    #[test]
    fn avoided_costs_can_be_negative() {
        assert_eq!(avoided(Some(1.5), Some(4.0)), "$2.50 of $4.00, estimated");
        assert_eq!(avoided(Some(0.05), Some(0.02)), "-$0.0300 of $0.0200, estimated");
        assert_eq!([avoided(None, Some(1.0)), avoided(Some(1.0), None)], ["n/a", "n/a"]);
    }

    #[test]
    fn savings_are_percentages() {
        assert_eq!([saved(0, 0), saved(200, 50), saved(100, 100), saved(10, 12)], ["-", "75%", "0%", "-20%"]);
        assert_eq!(change(12_345, 999), "12,345 → 999");
    }

    #[test]
    fn small_amounts_are_not_rounded_to_zero() {
        let amounts = [1_234.5, 1.0, 0.25, 0.01, 0.001_25, 0.000_002, 0.000_000_001, 0.0].map(Some).map(usd);
        let shown =
            ["$1234.50", "$1.00", "$0.2500", "$0.0100", "$0.001250", "$0.000002", "<$0.000001", "$0.000000"];
        assert_eq!(amounts, shown);
        assert_eq!(usd(None), "n/a");
    }
}
