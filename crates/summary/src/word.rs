//! Words, and which of them carry a meaning of their own.

use std::collections::HashSet;
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) kind: Kind,
    /// Whether punctuation after it ends a clause.
    pub(crate) ends_clause: bool,
    /// Whether a colon follows.
    pub(crate) introduces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Something with a name: capitalized inside a sentence, quoted, or spelt like an identifier.
    Name,
    /// Something with a digit in it.
    Figure,
}

pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut before = '.';
    for raw in text.split_whitespace().flat_map(assigned) {
        let word = raw.trim_matches(is_edge);
        if word.is_empty() {
            if is_arrow(raw) {
                words.push(Word { text: raw, kind: Kind::Plain, ends_clause: false, introduces: false });
            } else if let Some(last) = words.last_mut().filter(|_| raw.chars().all(is_dash)) {
                last.ends_clause = true;
            }
            continue;
        }
        let quoted = raw.starts_with(['"', '`', '“', '«']) || raw.ends_with('`');
        let closed = raw.trim_end_matches(['*', '_', '"', '”', '`', '»']);
        let ends_clause = closed.ends_with([',', ';', ':', '.', '!', '?', '。', '，', ')', '—']);
        // After a colon a sentence can begin, but `The winner: Ann` names somebody.
        let starts_sentence = match before {
            '.' | '!' | '?' => true,
            ':' => word != "May" && is_stopword(&word.to_lowercase()),
            _ => false,
        };
        let kind = kind(word, quoted, starts_sentence);
        words.push(Word { text: word, kind, ends_clause, introduces: closed.ends_with(':') });
        before = raw.chars().next_back().unwrap_or(' ');
    }
    words
}

/// `retries=5` as three words. Links, paths and comparisons stay whole.
fn assigned(raw: &str) -> impl Iterator<Item = &str> {
    let parts = raw.split_once('=').filter(|(name, value)| {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '`');
        !name.is_empty() && !value.is_empty() && name.chars().all(is_name) && !value.contains('=')
    });
    let parts = match parts {
        Some((name, value)) => [name, &raw[name.len()..=name.len()], value],
        None => [raw, "", ""],
    };
    parts.into_iter().filter(|part| !part.is_empty())
}

fn is_arrow(raw: &str) -> bool {
    matches!(raw, "->" | "-->" | "=>" | "==>")
}

fn is_dash(c: char) -> bool {
    matches!(c, '-' | '–' | '—')
}

/// Whether the text names something or somebody, or holds a number.
pub(crate) fn has_substance(text: &str) -> bool {
    words(text).iter().any(|word| word.kind != Kind::Plain)
}

/// The members of a list that is written as a sentence would be: `let's use, we agreed, never`.
pub(crate) fn phrases(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ")
}

/// Words that are looked up one by one.
pub(crate) type Words = LazyLock<HashSet<&'static str>>;

/// A list of [`Words`], written as a sentence would be.
macro_rules! word_list {
    ($(#[$doc:meta])* $name:ident = $list:expr) => {
        $(#[$doc])*
        pub(crate) static $name: crate::word::Words = std::sync::LazyLock::new(|| crate::word::phrases($list).collect());
    };
}
pub(crate) use word_list;

/// Whether a word says nothing about what its sentence is about.
pub(crate) fn is_stopword(lower: &str) -> bool {
    static ALL: Words = LazyLock::new(|| phrases(STOPWORDS).collect());
    ALL.contains(lower)
}

/// A word reduced so that `caching` and `cache`, `weeks` and `week`, are one.
pub(crate) fn stem(word: &str) -> String {
    let lower = word.to_lowercase().replace('’', "'");
    let lower = lower.strip_suffix("'s").unwrap_or(&lower);
    if lower.chars().any(|c| !c.is_ascii_alphabetic()) || lower.len() <= 3 {
        return lower.to_owned();
    }
    let mut stem = lower;
    if stem.ends_with('s') && !stem.ends_with("ss") {
        stem = &stem[..stem.len() - 1];
    }
    // `delivery` and `deliver`, `entries` and `entry`.
    if let Some(short) = stem
        .strip_suffix("ie")
        .or(stem.strip_suffix('y'))
        .filter(|short| short.len() > 3 && !short.ends_with(['a', 'e', 'i', 'o', 'u']))
    {
        stem = short;
    }
    for ending in ["ing", "ed"] {
        if let Some(short) = stem.strip_suffix(ending).filter(|short| short.len() > 2) {
            stem = short;
            break;
        }
    }
    stem.strip_suffix('e').filter(|short| short.len() > 2).unwrap_or(stem).to_owned()
}

fn is_edge(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '"'
            | '\''
            | '`'
            | '*'
            | '_'
            | '~'
    ) || matches!(
        c,
        '“' | '”'
            | '‘'
            | '’'
            | '«'
            | '»'
            | '…'
            | '—'
            | '–'
            | '-'
            | '。'
            | '，'
            | '、'
            | '！'
            | '？'
            | '<'
            | '>'
    )
}

fn kind(word: &str, quoted: bool, starts_sentence: bool) -> Kind {
    if word.chars().any(char::is_numeric) {
        return Kind::Figure;
    }
    let mut chars = word.chars();
    let first_upper = chars.next().is_some_and(char::is_uppercase);
    let inner_upper = chars.clone().any(char::is_uppercase);
    let shouted = word.chars().all(|c| c.is_uppercase() || !c.is_alphabetic());
    let is_pronoun = word == "I" || word.starts_with("I'") || word.starts_with("I’");
    let identifier =
        word.contains(['_', '/', '@', '\\']) || word.trim_matches('.').contains('.') || word.contains("::");
    let common = ["OK", "TODO", "FIXME", "NB", "PS", "FYI", "BTW", "ASAP", "TBD", "NOT", "AND", "DO"];
    let capitalized = first_upper && (!starts_sentence || (inner_upper && !common.contains(&word)));
    let cased = (first_upper && !shouted) || inner_upper || (shouted && word.len() >= 2);
    if is_pronoun || common.contains(&word) {
        Kind::Plain
    } else if quoted
        || identifier
        || (capitalized && (cased || word.len() == 1))
        || (!first_upper && inner_upper)
    {
        Kind::Name
    } else {
        Kind::Plain
    }
}

/// Words that say nothing about what a sentence is about: grammar, cues and fillers.
const STOPWORDS: &str = "\
    a, an, the, this, that, these, those, it, its, it's, he, she, they, them, their, his, her, we, us, \
    our, you, your, i, i'm, i'd, i'll, i've, me, my, mine, we'll, we're, we've, we'd, let's, lets, let, \
    is, are, was, were, be, been, being, am, do, does, did, done, don't, has, have, had, having, will, \
    would, shall, should, can, could, may, might, must, not, no, nor, and, or, but, if, then, than, so, \
    as, at, by, for, from, in, into, of, off, on, onto, out, over, to, up, with, without, about, after, \
    before, until, till, during, through, per, via, there, here, what, which, who, whom, whose, when, \
    where, why, how, all, any, both, each, some, such, only, own, same, too, very, just, also, again, \
    still, yet, already, now, please, ok, okay, yes, well, right, sure, actually, instead, rather, use, \
    uses, using, used, go, goes, going, went, gone, get, gets, got, make, makes, made, keep, keeps, set, \
    sets, take, takes, change, changed, changes, switch, switched, switching, move, moved, moves, replace, \
    replaced, decide, decided, decision, agreed, agree, settle, settled, stick, opt, opted, choose, chose, \
    chosen, pick, picked, prefer, want, wants, need, needs, like, think, know, say, said, tell, note, \
    remember, noted, thing, things, way, bit, lot, one, more, most, less, much, many, longer, second, \
    thought, thoughts, scratch, forget, drop, dropped, plan, plans, mind, heart, update, updated, \
    correction, everyone, everything, something, anything, turns, end, finally, final, new, really, quite, \
    wait, sorry, hmm, oh, bump, raise, lower, increase, reduce, push, pushed, put, back, came, come, \
    comes, call, called, works, work, better, best, good, great, time, today, because, since, while, \
    though, however, anyway, swap, swapped, revised, revise, rename, renamed, isn't, aren't, wasn't, weren't, \
    won't, wouldn't, doesn't, didn't, can't, cannot, couldn't, shouldn't, hasn't, haven't, hadn't, it'll, \
    that's, there's, he's, she's, they're, they've, they'll, they'd, you're, you've, you'll, you'd, \
    what's, who's, here's, that'll, else, nah, nope, yeah, yep, never, ever, always, maybe, perhaps, \
    therefore, meanwhile, otherwise, unfortunately, apparently, basically, honestly, reflection, recap, \
    regarding, concerning, according, definitely, certainly, hm, nothing, nobody, none, typo, meant, mean, thank, thanks, \
    fine, every, ordered, booked, reserved, \
    hired, selected";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_figures_are_told_from_words() {
        let named = |text| {
            let kinds = words(text).into_iter().filter(|word| word.kind != Kind::Plain);
            kinds.map(|word| word.text).collect::<Vec<_>>()
        };
        assert_eq!(named("The owner is Ann Lee, I think."), ["Ann", "Lee"]);
        assert_eq!(named("Use `serde` and config.toml on 10.0.0.1"), ["serde", "config.toml", "10.0.0.1"]);
        assert_eq!(named("The winner: Ann. Note: The end."), ["Ann"]);
        assert_eq!(named("PostgreSQL beats nothing. OK TODO"), ["PostgreSQL"]);
        assert!(!has_substance("it was long ago"));
    }

    #[test]
    fn stems_join_the_forms_of_a_word() {
        for (one, other) in [
            ("caching", "cache"),
            ("weeks", "week"),
            ("Redis", "redis"),
            ("deployed", "deploy"),
            ("Ann’s", "ann"),
        ] {
            assert_eq!(stem(one), stem(other));
        }
        assert_eq!(stem("v1.2"), "v1.2");
    }
}
