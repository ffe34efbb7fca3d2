use std::collections::HashSet;

use crate::fence::without_bullet;
use crate::{Section, Summary};

/// The summary without the lines that the pinned memory says already.
///
/// Conservative: only whole lines that are equal but for case, spacing and a bullet go. A line that says the same in other words,
/// or says more, stays, because losing a fact is worse than reading it twice.
pub fn without(summary: &Summary, pinned: &str) -> Summary {
    let known: HashSet<String> = pinned.lines().map(plain).filter(|line| !line.is_empty()).collect();
    let is_new = |line: &str| !known.contains(&plain(line));
    let mut kept = summary.clone();
    if summary.summary_text.lines().any(|line| !is_new(line)) {
        kept.summary_text =
            summary.summary_text.lines().filter(|line| is_new(line)).collect::<Vec<_>>().join("\n");
    }
    for section in Section::ALL {
        kept.list_mut(section).retain(|entry| is_new(&entry.text));
    }
    kept
}

/// A line as it is compared with the pinned memory: lower case, one space between words, without a bullet.
fn plain(line: &str) -> String {
    let line = line.trim();
    // A minus before a digit is a sign, and two marks in a row are emphasis or the name of a flag.
    let is_bullet =
        |after: &str| !after.starts_with(|next: char| BULLETS.contains(&next) || next.is_ascii_digit());
    let body = line.strip_prefix(BULLETS).filter(|after| is_bullet(after)).unwrap_or(line);
    body.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

const BULLETS: [char; 3] = ['-', '*', '•'];

/// A line as two of one summary are compared: lower case, one space between words, without the bullet or heading mark before
/// it, the emphasis around its words and the punctuation at its end. Signs inside (`C++`, `1.5`, `-5`) make a
/// difference.
pub(crate) fn normal(line: &str) -> String {
    let body = without_bullet(line.trim());
    let mut normal = String::with_capacity(body.len());
    for word in body.split_whitespace() {
        let word = word.trim_matches(|c| matches!(c, '*' | '_' | '`' | '~'));
        if word.is_empty() {
            continue;
        }
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.extend(word.chars().flat_map(char::to_lowercase));
    }
    let end = normal.trim_end_matches(['.', ',', ';', ':', '!', '。', '…', '*', '_', '`', ' ']).len();
    normal.truncate(end);
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    #[test]
    fn lines_that_differ_in_dress_only_are_equal() {
        for line in [
            "User prefers dark mode",
            "  - user   prefers dark MODE. ",
            "* **User** prefers `dark mode`",
            "• User prefers\tdark mode!",
            "## User prefers dark mode:",
            "- [x] User prefers _dark mode_",
            "> user prefers dark mode",
        ] {
            assert_eq!(normal(line), "user prefers dark mode", "{line}");
        }
    }

    #[test]
    fn lines_that_say_something_else_differ() {
        for (one, other) in [
            ("Use C", "Use C++"),
            ("Offset is 5", "Offset is -5"),
            ("Rate 1.5", "Rate 15"),
            ("Ask Ann", "Ask Ann about the key"),
            ("Deploy?", "Deploy"),
        ] {
            assert_ne!(normal(one), normal(other));
        }
    }

    #[test]
    fn only_repeated_lines_go() {
        let summary = Summary {
            summary_text: "Lives in Oslo.\nMoved there in 2019.".into(),
            key_facts: vec![Entry::new("Allergic to nuts", []), Entry::new("Allergic to nuts and milk", [])],
            decisions: vec![Entry::new("- Use METRIC  units.", []), Entry::new("Use metric units", [])],
            ..Summary::default()
        };
        let kept =
            without(&summary, "# Memory\n- lives in Oslo.\n• allergic to  nuts\n\n* use metric units.\n");
        assert_eq!(kept.summary_text, "Moved there in 2019.");
        assert_eq!(kept.key_facts, [Entry::new("Allergic to nuts and milk", [])]);
        assert_eq!(kept.decisions, [Entry::new("Use metric units", [])]);
    }

    #[test]
    fn a_mark_that_is_no_bullet_makes_a_difference() {
        for bulleted in ["uses vim", "- uses vim", "-uses vim", "*\tUses  VIM", "• uses vim", "-"] {
            let expected = if bulleted == "-" { "" } else { "uses vim" };
            assert_eq!(plain(bulleted), expected, "{bulleted}");
        }
        for other in ["-5 degrees", "**uses** vim", "--uses vim", "+ uses vim", "uses vim.", "uses, vim"] {
            assert_ne!(plain(other), plain("uses vim"));
            assert_ne!(plain(other), plain("5 degrees"));
        }
    }

    #[test]
    fn an_empty_memory_changes_nothing() {
        let summary = Summary { summary_text: "One.\n\nTwo.".into(), ..Summary::default() };
        assert_eq!(without(&summary, "\n - \n"), summary);
    }
}
