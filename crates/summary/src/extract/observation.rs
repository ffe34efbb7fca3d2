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
    pub(super) answer: Option<Answer>,
}

/// What a tool answered, line by line, so that lines that come up again and again can be left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    tool: String,
    pub(super) lines: Vec<String>,
}

const MAX_LINE_CHARS: usize = 160;
const SHORT_CHARS: usize = 240;
/// A long output is a file or a log, and of those only the last line tells how it went.
const MAX_LINES: usize = 12;

pub(super) fn findings(tool: Option<&str>, text: &str) -> Finding {
    let tool = head(&clean_line(tool.unwrap_or("a tool")), 60);
    // Compilers say what is wrong first and interpreters say it last.
    let mut errors =
        text.lines().filter(|line| is_error(line)).map(|line| head(&clean_line(line), MAX_LINE_CHARS));
    let first = errors.next();
    let last = errors.next_back().filter(|last| Some(last) != first.as_ref());
    let failed: Vec<String> =
        first.into_iter().chain(last).map(|line| format!("{ERROR_PREFIX}{tool}: {line}")).collect();
    if !failed.is_empty() {
        return Finding { errors: failed, answer: None };
    }
    // The lines that say something that the lines before them did not, numbers aside.
    let mut seen = HashSet::new();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut lines: Vec<&str> = lines.filter(|line| seen.insert(without_numbers(line))).collect();
    if lines.len() > MAX_LINES {
        lines = text.lines().rfind(|line| !line.trim().is_empty()).into_iter().collect();
    }
    let lines: Vec<String> = lines.into_iter().map(|line| clean_line(once(line))).collect();
    Finding { errors: failed, answer: Some(Answer { tool, lines }) }
}

impl Answer {
    /// The answer with the lines that are news, or the last of them where that is too long.
    pub(super) fn text(&self, is_news: impl Fn(&str) -> bool) -> Option<String> {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).filter(|line| is_news(line)).collect();
        let whole = clean_line(&lines.join(" "));
        let text = if whole.len() <= SHORT_CHARS { whole } else { clean_line(lines.last()?) };
        (text.len() <= SHORT_CHARS && has_substance(&text)).then(|| format!("{}{ANSWERED}{text}", self.tool))
    }
}

/// How an answer begins in a summary, after the tool's name.
const ANSWERED: &str = " answered: ";

/// Whether an entry of a summary tells what a tool said.
pub(super) fn is_observation(entry: &str) -> bool {
    entry.starts_with(ERROR_PREFIX) || entry.contains(ANSWERED)
}

/// What a line repeats, if it is nothing but repetitions.
fn once(line: &str) -> &str {
    let bytes = line.as_bytes();
    if bytes.len() > MAX_REPEATED {
        return line;
    }
    // The length of the longest beginning that is also an end tells the period.
    let mut borders = vec![0; bytes.len()];
    for at in 1..bytes.len() {
        let mut border: usize = borders[at - 1];
        while border > 0 && bytes[at] != bytes[border] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(bytes[at] == bytes[border]);
    }
    let period = bytes.len() - borders.last().copied().unwrap_or(0);
    let repeats = period >= MIN_REPEATED && bytes.len().is_multiple_of(period.max(1));
    if repeats { line.get(..period).unwrap_or(line) } else { line }
}

const MIN_REPEATED: usize = 8;
const MAX_REPEATED: usize = 4_000;

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

    fn answer(tool: &str, text: &str) -> Option<String> {
        findings(Some(tool), text).answer.and_then(|answer| answer.text(|_| true))
    }

    #[test]
    fn short_answers_and_closing_lines_are_results() {
        assert_eq!(answer("balance", "{\"eur\": 12}").as_deref(), Some("balance answered: {\"eur\": 12}"));
        let long: String = (0..50).map(|n| format!("{}line of text\n", "x".repeat(n))).collect();
        let long = format!("{long}test result: ok. 12 passed\n\n");
        assert_eq!(answer("t", &long).as_deref(), Some("t answered: test result: ok. 12 passed"));
        assert_eq!(answer("t", "done"), None);
    }

    #[test]
    fn repetitions_and_old_lines_are_left_out() {
        assert_eq!(answer("t", &"{\"page\": 3}".repeat(4)).as_deref(), Some("t answered: {\"page\": 3}"));
        let found = findings(Some("t"), "synced 3 rows\nroom: Cedar\nsynced 4 rows").answer;
        let text = found.and_then(|answer| answer.text(|line| !line.starts_with("synced")));
        assert_eq!(text.as_deref(), Some("t answered: room: Cedar"));
    }
}
