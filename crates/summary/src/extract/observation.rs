//! What a tool's output is worth remembering for: that it failed, or what it answered if that was short.

use std::collections::HashSet;

use super::reading::without_numbers;
use crate::excerpt::head;
use crate::fence::clean_line;
use crate::word::{has_substance, phrases};

/// What one observation adds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) errors: Vec<String>,
    pub(super) result: Option<String>,
}

const MAX_LINE_CHARS: usize = 160;
const SHORT_CHARS: usize = 240;

pub(super) fn findings(tool: Option<&str>, text: &str) -> Finding {
    let tool = head(&clean_line(tool.unwrap_or("a tool")), 60);
    // Compilers say what is wrong first and interpreters say it last.
    let mut errors =
        text.lines().filter(|line| is_error(line)).map(|line| head(&clean_line(line), MAX_LINE_CHARS));
    let first = errors.next();
    let last = errors.next_back().filter(|last| Some(last) != first.as_ref());
    let failed: Vec<String> =
        first.into_iter().chain(last).map(|line| format!("{ERROR_PREFIX}{tool}: {line}")).collect();
    let result = if text.len() <= SHORT_CHARS {
        Some(text)
    } else {
        text.lines().rev().find(|line| !line.trim().is_empty())
    };
    let result = result
        .filter(|_| failed.is_empty())
        .map(|text| clean_line(&without_repetitions(text)))
        .filter(|line| line.len() <= SHORT_CHARS && has_substance(line))
        .map(|line| format!("{tool} answered: {line}"));
    Finding { errors: failed, result }
}

/// The lines that say something that the lines before them did not, numbers aside.
fn without_repetitions(text: &str) -> String {
    let mut seen = HashSet::new();
    let lines: Vec<&str> = text.lines().filter(|line| seen.insert(without_numbers(line))).collect();
    lines.join("\n")
}

/// How an error begins in a summary, also in the one of an earlier fold.
pub(super) const ERROR_PREFIX: &str = "Error from ";

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
        let errors = findings(Some("bash"), log).errors;
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
        assert_eq!(findings(None, "exit code: 101").errors, ["Error from a tool: exit code: 101"]);
        assert!(findings(None, "exit code: 0").errors.is_empty());
        assert!(findings(None, "test result: ok. 12 passed; 0 failed").errors.is_empty());
    }

    #[test]
    fn short_answers_and_closing_lines_are_results() {
        assert_eq!(
            findings(Some("balance"), "{\"eur\": 12}").result.as_deref(),
            Some("balance answered: {\"eur\": 12}")
        );
        let long = format!("{}\ntest result: ok. 12 passed\n\n", "line of text\n".repeat(50));
        assert_eq!(
            findings(Some("t"), &long).result.as_deref(),
            Some("t answered: test result: ok. 12 passed")
        );
        assert_eq!(findings(Some("t"), "done").result, None);
    }
}
