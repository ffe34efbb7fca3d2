//! Thanks, greetings and agreement around what somebody says.

use super::cue::Cue;
use super::term::Lexicon;

/// A longer clause says more than thanks.
const MAX_CHARS: usize = 40;

/// The text without the clauses before and after it that only greet, thank or agree: `Great, let's use Postgres.`
pub(super) fn without_filler<'a>(text: &'a str, lexicon: &Lexicon) -> &'a str {
    let mut rest = text;
    while let Some((clause, after)) = first_clause(rest) {
        if !is_filler(clause, lexicon) {
            break;
        }
        rest = after;
    }
    while let Some((before, clause)) = last_clause(rest) {
        if !is_filler(clause, lexicon) {
            break;
        }
        rest = before;
    }
    rest
}

/// Whether a clause has words of thanks and agreement, and no other that tells something.
fn is_filler(clause: &str, lexicon: &Lexicon) -> bool {
    if clause.chars().count() > MAX_CHARS {
        return false;
    }
    let terms = lexicon.empty().read(clause);
    let tells = [Cue::Change, Cue::Revoke, Cue::Reject, Cue::Decide, Cue::Goal, Cue::Todo, Cue::Unsure];
    terms.found.has(Cue::Filler) && terms.content.is_empty() && !tells.iter().any(|cue| terms.found.has(*cue))
}

fn first_clause(text: &str) -> Option<(&str, &str)> {
    let (at, c) = text.char_indices().find(|(at, c)| ends_clause(*c, &text[at + c.len_utf8()..]))?;
    let rest = text[at + c.len_utf8()..].trim_start();
    (!rest.is_empty()).then_some((&text[..at], rest))
}

fn last_clause(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_end_matches(ENDS);
    let (at, c) = inner.char_indices().rev().find(|(at, c)| ends_clause(*c, &inner[at + c.len_utf8()..]))?;
    let before = text[..at].trim_end();
    (!before.is_empty()).then_some((before, &inner[at + c.len_utf8()..]))
}

const ENDS: [char; 6] = ['.', '!', '…', '。', '！', ' '];

fn ends_clause(c: char, rest: &str) -> bool {
    match c {
        ',' | '.' | '!' | ';' | ':' | '–' => rest.starts_with(char::is_whitespace),
        '，' | '。' | '！' | '；' | '、' | '：' | '—' | '…' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_beside_thanks_stays() {
        for (text, left) in [
            ("Hello, my name is Ravi.", "my name is Ravi."),
            ("Great, thanks! Let's use Postgres.", "Let's use Postgres."),
            ("Port 8080, thanks.", "Port 8080"),
            ("Danke, wir nehmen Postgres.", "wir nehmen Postgres."),
            ("好的，用青色。", "用青色。"),
            ("はい、京都にします。", "京都にします。"),
            ("Super, merci !", "merci !"),
            ("No, thanks, use spaces.", "No, thanks, use spaces."),
            ("Thanks Mel, it works.", "Thanks Mel, it works."),
            ("...", "..."),
            ("", ""),
        ] {
            assert_eq!(without_filler(text, &Lexicon::default()), left);
        }
    }
}
