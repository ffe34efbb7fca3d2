//! What a tool's output is worth remembering for: that it failed, or what it answered if that was short.

use std::collections::HashSet;

use super::without_numbers;
use crate::excerpt::head;
use crate::fence::clean_line;
use crate::word::{has_substance, phrases};

const MAX_LINE_CHARS: usize = 160;
const SHORT_CHARS: usize = 240;
/// A long output is a file or a log, and of those only the last line tells how it went.
const MAX_LINES: usize = 12;

/// Returns the first and the last error of an observation or, if there is none, what it answered.
pub(super) fn findings(tool: Option<&str>, text: &str) -> Vec<String> {
    let tool = head(&clean_line(tool.unwrap_or("a tool")), 60);
    // Compilers say what is wrong first and interpreters say it last.
    let mut errors =
        text.lines().filter(|line| is_error(line)).map(|line| head(&clean_line(line), MAX_LINE_CHARS));
    let first = errors.next();
    let last = errors.next_back().filter(|last| Some(last) != first.as_ref());
    let failed: Vec<String> =
        first.into_iter().chain(last).map(|line| format!("{ERROR_PREFIX}{tool}: {line}")).collect();
    if !failed.is_empty() {
        return failed;
    }
    // The lines that say something that the lines before them did not, numbers aside.
    let mut seen = HashSet::new();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut lines: Vec<&str> = lines.filter(|line| seen.insert(without_numbers(line))).collect();
    if lines.len() > MAX_LINES {
        lines = text.lines().rfind(|line| !line.trim().is_empty()).into_iter().collect();
    }
    let whole = clean_line(&lines.join(" "));
    let last = || clean_line(lines.last().copied().unwrap_or_default());
    let text = if whole.len() <= SHORT_CHARS { whole } else { last() };
    let is_news = text.len() <= SHORT_CHARS && has_substance(&text);
    is_news.then(|| format!("{tool}{ANSWERED}{text}")).into_iter().collect()
}

const ERROR_PREFIX: &str = "Error from ";
const ANSWERED: &str = " answered: ";

/// Whether an entry of a summary tells what a tool said.
pub(super) fn is_finding(entry: &str) -> bool {
    entry.starts_with(ERROR_PREFIX) || entry.contains(ANSWERED)
}

fn is_error(line: &str) -> bool {
    if line.len() > 2_000 {
        return false;
    }
    let lower = line.to_lowercase();
    if phrases(NO_ERRORS).any(|phrase| lower.contains(phrase)) {
        return false;
    }
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let names_one = words.any(|word| {
        matches!(
            word,
            "panicked"
                | "panic"
                | "failed"
                | "failure"
                | "fatal"
                | "denied"
                | "refused"
                | "segfault"
                | "abort"
        ) || word.ends_with("error")
            || word.ends_with("exception")
    });
    names_one || phrases(FAILURES).any(|phrase| lower.contains(phrase)) || exit_code(&lower)
}

fn exit_code(lower: &str) -> bool {
    ["exit code", "exit status", "exited with", "returncode"].iter().any(|phrase| {
        lower.split(phrase).nth(1).is_some_and(|rest| {
            let digits = rest
                .trim_start_matches(|c: char| !c.is_ascii_digit())
                .chars()
                .take_while(char::is_ascii_digit);
            digits.clone().count() > 0 && digits.clone().any(|digit| digit != '0')
        })
    })
}

const FAILURES: &str = "\
    not found, no such file, timed out, cannot open, unauthorized, command not recognized";

const NO_ERRORS: &str = "\
    0 error, no error, 0 failed, 0 failures, without error, errors: 0, error: null, \"error\":null, \
    error_handl, no failures";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_error_are_kept() {
        let log = "running\nerror[E0308]: mismatched types\nwarning: x\nerror: 2 more\nerror: could not compile `a`";
        let errors = findings(Some("bash"), log);
        assert_eq!(
            errors,
            [
                "Error from bash: error[E0308]: mismatched types",
                "Error from bash: error: could not compile `a`"
            ]
        );
    }

    #[test]
    fn exit_codes_count_unless_zero() {
        assert_eq!(findings(None, "exit code: 101"), ["Error from a tool: exit code: 101"]);
        let ok = "test result: ok. 12 passed; 0 failed";
        assert_eq!(findings(None, ok), [format!("a tool answered: {ok}")]);
        assert_eq!(findings(None, "exit code: 0"), ["a tool answered: exit code: 0"]);
    }

    #[test]
    fn short_answers_and_closing_lines_are_results() {
        assert_eq!(findings(Some("balance"), "{\"eur\": 12}"), ["balance answered: {\"eur\": 12}"]);
        let long: String = (0..50).map(|n| format!("{}line of text\n", "x".repeat(n))).collect();
        let long = format!("{long}test result: ok. 12 passed\n\n");
        assert_eq!(findings(Some("t"), &long), ["t answered: test result: ok. 12 passed"]);
        assert!(findings(Some("t"), "done").is_empty());
    }
}
