//! Renders the changes to each message in the format of `diff -u`.

use std::fmt::Write;
use tidegate_explain::fate::Action;
use tidegate_explain::figures::tokens;
use tidegate_explain::{Case, Change, Insertion, Op, What, folding, grouped};

/// Longer lines are shortened to their first and last characters.
const MAX_LINE: usize = 160;
const HEAD: usize = 80;
const TAIL: usize = 40;

/// Every message that would be changed, removed or inserted. Empty if none would, or if the request would be
/// refused.
pub(super) fn render(case: &Case<'_>) -> String {
    let mut out = String::new();
    for change in case.changes() {
        write(&mut out, &change);
    }
    out
}

fn write(out: &mut String, change: &Change) {
    let (first, last) = (change.messages.start, change.messages.end - 1);
    let which =
        if first == last { format!("messages[{first}]") } else { format!("messages[{first}] to [{last}]") };
    let (sent, forwarded) = (tokens(change.before), tokens(change.after));
    let (old, new) = match &change.what {
        What::Changed(_, own) if own.is_empty() => {
            (format!("{which} as sent, {sent} tokens"), format!("{which} as forwarded, {forwarded} tokens"))
        }
        What::Changed(_, own) => (
            format!("{which} as sent, {sent} tokens"),
            format!("{which} as forwarded with {}, {forwarded} tokens", folding::titles(own)),
        ),
        What::Removed(action) => {
            let why =
                if *action == Action::Fold { "covered by the summary" } else { "dropped for the marker" };
            (format!("{which} as sent, {sent} tokens"), format!("nothing: {why}"))
        }
        What::Inserted(own) => {
            let what: Vec<&str> = own.iter().map(name).collect();
            let what = what.join(" and ");
            let what = match forwarded.as_str() {
                "0" => format!("{what} as forwarded"),
                _ => format!("{what} as forwarded, {forwarded} tokens"),
            };
            (format!("nothing before messages[{first}]"), what)
        }
    };
    let count = |gone: Op| change.lines.iter().filter(|line| line.op != gone).count();
    let range = |lines: usize| if lines == 0 { "0,0".to_owned() } else { format!("1,{lines}") };
    // Writing to a string cannot fail, here and below.
    let _ =
        writeln!(out, "--- {old}\n+++ {new}\n@@ -{} +{} @@", range(count(Op::More)), range(count(Op::Less)));
    for line in &change.lines {
        // Texts of our own are shown in full, because they cannot be read anywhere else.
        match &change.what {
            What::Inserted(_) => write_whole(out, line.op.mark(), &line.text),
            What::Changed(_, own) if !own.is_empty() && line.op == Op::More => {
                write_whole(out, line.op.mark(), &line.text);
            }
            What::Changed(..) | What::Removed(_) => write_line(out, line.op.mark(), &line.text),
        }
    }
}

fn name(insertion: &Insertion) -> &'static str {
    match insertion {
        Insertion::Summary { .. } => "a summary",
        Insertion::Memory { .. } => "the memory",
        Insertion::Marker => "a marker",
    }
}

fn write_whole(out: &mut String, mark: char, line: &str) {
    out.push(mark);
    write_escaped(out, line.chars());
    out.push('\n');
}

fn write_line(out: &mut String, mark: char, line: &str) {
    let length = line.chars().count();
    if length <= MAX_LINE {
        return write_whole(out, mark, line);
    }
    out.push(mark);
    write_escaped(out, line.chars().take(HEAD));
    let _ = write!(out, " … {} characters … ", grouped((length - HEAD - TAIL) as u64));
    write_escaped(out, line.chars().skip(length - TAIL));
    out.push('\n');
}

/// Escapes the few control characters that JSON does not escape.
fn write_escaped(out: &mut String, characters: impl Iterator<Item = char>) {
    for character in characters {
        if character.is_control() {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shortened_in_the_middle() {
        let line = format!("{}{}", "é".repeat(80), "z".repeat(120));
        let mut out = String::new();
        write_line(&mut out, '-', &line);
        assert_eq!(out, format!("-{} … 80 characters … {}\n", "é".repeat(80), "z".repeat(40)));
    }
}
