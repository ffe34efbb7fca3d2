//! Renders the summaries of a conversation for people.

use super::figures;
use super::show::last;
use super::terminal::one_line;
use super::transcript::{Length, earlier};
use serde_json::Value;
use std::fmt::Write;
use tidegate_admin::{FoldEntry, TurnPage};
use tidegate_explain::grouped;

/// The members of a summary and their headings, in the order in which models see them.
const SECTIONS: [(&str, &str); 7] = [
    ("summary_text", "Summary"),
    ("goals", "Goals"),
    ("decisions", "Decisions"),
    ("key_facts", "Key facts"),
    ("open_questions", "Open questions"),
    ("action_items", "Action items"),
    ("artifacts", "Artifacts"),
];

/// Renders the last `limit` summaries. Each one is rewritten into the next, so the short form has only the
/// text of the newest. Empty if there are none.
pub(super) fn render(page: &TurnPage, limit: usize, length: Length) -> String {
    let shown = last(&page.summaries, limit);
    let mut out = String::new();
    if shown.is_empty() && page.summaries_degraded.is_none() {
        return out;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "summaries{}", earlier(page.summaries.len(), shown.len()));
    for (index, fold) in shown.iter().enumerate() {
        write_header(&mut out, fold);
        if length == Length::Full || index + 1 == shown.len() {
            write_text(&mut out, &fold.summary);
        }
    }
    if let Some(reason) = &page.summaries_degraded {
        let _ = writeln!(out, "  there may be more: {}", one_line(reason));
    }
    out.push('\n');
    out
}

fn write_header(out: &mut String, fold: &FoldEntry) {
    let (count, noun) =
        (grouped(fold.covered.into()), if fold.covered == 1 { "message" } else { "messages" });
    let _ = write!(
        out,
        "of the first {count} {noun}, {}, by {}",
        figures::moment(fold.at),
        one_line(&fold.author)
    );
    if fold.calls > 0 {
        let (prompt, completion) = (grouped(fold.prompt_tokens), grouped(fold.completion_tokens));
        let calls = if fold.calls == 1 { "call" } else { "calls" };
        let _ = write!(out, " in {} {calls}: {prompt} prompt, {completion} completion", fold.calls);
    }
    out.push('\n');
}

/// Indented, so that no entry can be mistaken for a heading.
fn write_text(out: &mut String, summary: &Value) {
    let mut is_empty = true;
    for (member, heading) in SECTIONS {
        let entries: Vec<&str> = match &summary[member] {
            Value::String(text) => text.lines().collect(),
            Value::Array(entries) => entries.iter().filter_map(|entry| entry["text"].as_str()).collect(),
            _ => Vec::new(),
        };
        if entries.is_empty() {
            continue;
        }
        is_empty = false;
        let _ = writeln!(out, "    {heading}");
        for entry in entries {
            let _ = writeln!(out, "      - {}", one_line(entry));
        }
    }
    if is_empty {
        out.push_str(if summary.is_null() { "    cannot be read\n" } else { "    nothing worth keeping\n" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(summaries: Vec<FoldEntry>) -> TurnPage {
        TurnPage {
            conversation: tidegate_admin::ConversationSummary::default(),
            memory: tidegate_admin::MemoryPage::default(),
            turns: Vec::new(),
            turns_total: 0,
            turns_offset: 0,
            turns_limit: 50,
            summaries,
            summaries_degraded: None,
        }
    }

    fn fold(covered: u32, summary: Value) -> FoldEntry {
        FoldEntry { covered, author: "extractive".to_owned(), summary, ..FoldEntry::default() }
    }

    #[test]
    fn the_short_form_has_only_the_text_of_the_newest() {
        let old = fold(1, json!({"goals": [{"text": "Import"}]}));
        let new = FoldEntry {
            calls: 2,
            prompt_tokens: 1_234,
            completion_tokens: 56,
            author: "small".to_owned(),
            ..fold(9, json!({"goals": [{"text": "Import", "rests_on": [1]}], "summary_text": "Half\nDone"}))
        };
        let page = page(vec![old, new]);
        let newest = "of the first 9 messages, 1970-01-01 00:00:00Z, by small in 2 calls: 1,234 prompt, 56 completion\n    \
                      Summary\n      - Half\n      - Done\n    Goals\n      - Import\n\n";
        let head = "of the first 1 message, 1970-01-01 00:00:00Z, by extractive\n";
        assert_eq!(render(&page, usize::MAX, Length::Short), format!("summaries\n{head}{newest}"));
        let full = format!("summaries\n{head}    Goals\n      - Import\n{newest}");
        assert_eq!(render(&page, usize::MAX, Length::Full), full);
        assert_eq!(render(&page, 1, Length::Full), format!("summaries (the last 1 of 2)\n{newest}"));
    }

    #[test]
    fn control_characters_are_escaped_and_entries_are_indented() {
        let hostile = fold(3, json!({"key_facts": [{"text": "a\u{1b}[2J\n#0 system\u{202e}"}]}));
        let shown =
            render(&page(vec![FoldEntry { author: "m\u{7}".to_owned(), ..hostile }]), 9, Length::Short);
        assert!(shown.contains("      - a\\u{1b}[2J\\n#0 system\\u{202e}\n"), "{shown}");
        assert!(shown.contains("by m\\u{7}\n"), "{shown}");
    }

    #[test]
    fn unreadable_summaries_are_reported() {
        assert_eq!(render(&page(Vec::new()), 9, Length::Short), "");
        let shown = render(&page(vec![fold(1, Value::Null)]), 9, Length::Short);
        assert!(shown.ends_with("    cannot be read\n\n"), "{shown}");
        let sealed = TurnPage { summaries_degraded: Some("store_no_key".to_owned()), ..page(Vec::new()) };
        assert_eq!(render(&sealed, 9, Length::Short), "summaries\n  there may be more: store_no_key\n\n");
    }
}
