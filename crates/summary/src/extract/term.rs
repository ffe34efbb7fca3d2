//! What a text is about, in any language: its words, and pairs of characters where words are not separated.

use std::collections::HashMap;

use super::cue::{self, Cue, Cues};
use super::language::{Spoken, Tongues};

/// The terms of all texts, and how often each occurs.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    ids: HashMap<String, TermId>,
    terms: Vec<Counts>,
    spoken: Spoken,
}

pub(super) type TermId = usize;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The number of texts with the term.
    texts: u32,
    capitalized: u32,
    lower: u32,
    is_number: bool,
    /// Spelt like a path, an address or a name in a program.
    is_identifier: bool,
}

/// The terms of one text, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    /// What the text is about: neither grammar nor a cue.
    pub(super) content: Vec<TermId>,
    /// Cues: they are of little weight, and tell nothing of the subject.
    pub(super) cues: Vec<TermId>,
    /// Numbers in the order of the text. They are also among the content.
    pub(super) numbers: Vec<TermId>,
    /// What the text gives up by name: the content right behind `not` or `instead of`.
    pub(super) denied: Vec<TermId>,
    pub(super) found: Cues,
    pub(super) words: usize,
    /// Whether the first word is content. Never where words are not separated.
    pub(super) begins_with_content: bool,
}

/// Words with the same beginning of this length are forms of one word.
const STEM_CHARS: usize = 7;

impl Lexicon {
    /// A lexicon for the texts of the same conversation.
    pub(super) fn empty(&self) -> Lexicon {
        Lexicon { spoken: self.spoken, ..Lexicon::default() }
    }

    /// Learns in which languages people talk.
    pub(super) fn hear(&mut self, text: &str) {
        self.spoken.hear(text);
    }

    /// The languages that a text may be in.
    pub(super) fn tongues(&self, text: &str) -> Tongues {
        self.spoken.of(text)
    }

    /// Reads a text and counts its terms.
    pub(super) fn read(&mut self, text: &str) -> Terms {
        let tongues = self.tongues(text);
        let words = words(text);
        let lower: Vec<String> =
            words.iter().map(|word| word.text.to_lowercase().replace('’', "'")).collect();
        let spelled: Vec<&str> = lower.iter().map(String::as_str).collect();
        let mut role = vec![None; words.len()];
        let mut gives_up = vec![false; words.len()];
        let mut terms = Terms { words: words.len(), ..Terms::default() };
        terms.found = cue::among(&spelled, tongues, |place, cue| {
            gives_up[place] |= matches!(cue, Cue::Deny | Cue::Revoke);
            if role[place].is_none() || cue == Cue::Function {
                role[place] = Some(cue);
            }
        });
        let is_spaced = words.first().is_some_and(|word| !word.is_unspaced);
        terms.begins_with_content = is_spaced && role.first().is_some_and(Option::is_none);
        let (mut follows_number, mut is_denied) = (false, false);
        for (place, ((word, lower), role)) in words.iter().zip(&lower).zip(role).enumerate() {
            is_denied &= !word.begins_clause;
            if gives_up[place] {
                is_denied = true;
            }
            if word.is_unspaced {
                self.read_unspaced(word.text, tongues, follows_number, &mut terms);
                follows_number = false;
                continue;
            }
            follows_number = lower.ends_with(char::is_numeric);
            match role {
                Some(Cue::Function | Cue::Deny) => {}
                Some(Cue::And) => is_denied = false,
                Some(_) => {
                    is_denied &= gives_up[place];
                    let id = self.id(lower);
                    push(&mut terms.cues, id);
                }
                None => {
                    let id = self.id(stem(lower));
                    self.terms[id].note(word);
                    push(&mut terms.content, id);
                    if is_denied {
                        push(&mut terms.denied, id);
                    }
                    if self.terms[id].is_number {
                        terms.numbers.push(id);
                    }
                }
            }
        }
        for id in terms.content.iter().chain(&terms.cues) {
            self.terms[*id].texts += 1;
        }
        terms
    }

    fn read_unspaced(&mut self, run: &str, tongues: Tongues, follows_number: bool, terms: &mut Terms) {
        let (cues, rest) = cue::within(run, tongues);
        for cue in [
            Cue::Change,
            Cue::Revoke,
            Cue::Deny,
            Cue::Reject,
            Cue::Decide,
            Cue::Goal,
            Cue::Todo,
            Cue::Filler,
            Cue::Unsure,
        ] {
            if cues.has(cue) {
                terms.found.add(cue);
            }
        }
        for part in rest.split(' ') {
            let signs: Vec<char> = part.chars().collect();
            // A single sign is a word, as in `赤ではなく青`, but not if it is grammar or the unit of a number.
            if let [sign @ '\u{3400}'..='\u{9fff}'] = signs[..]
                && !(follows_number && run.starts_with(sign))
            {
                let id = self.id(part);
                push(&mut terms.content, id);
            }
            for pair in signs.windows(2) {
                let id = self.id(&pair.iter().collect::<String>());
                push(&mut terms.content, id);
            }
        }
    }

    fn id(&mut self, term: &str) -> TermId {
        if let Some(id) = self.ids.get(term) {
            return *id;
        }
        self.ids.insert(term.to_owned(), self.terms.len());
        self.terms.push(Counts::default());
        self.terms.len() - 1
    }

    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }

    /// How much a term tells: the rarer, the more, and numbers, names and identifiers the most.
    pub(super) fn weight(&self, id: TermId, texts: usize) -> f64 {
        let Counts { texts: with_it, is_number, is_identifier, .. } = self.terms[id];
        let rarity = ((texts + 1) as f64 / f64::from(with_it.max(1))).ln();
        let kind = match () {
            () if is_number => NUMBER,
            () if is_identifier || self.is_name(id) => NAME,
            () => 1.0,
        };
        rarity * kind
    }

    pub(super) fn is_name(&self, id: TermId) -> bool {
        self.terms[id].capitalized > self.terms[id].lower
    }

    pub(super) fn is_number(&self, id: TermId) -> bool {
        self.terms[id].is_number
    }

    pub(super) fn is_identifier(&self, id: TermId) -> bool {
        self.terms[id].is_identifier
    }

    /// The number of texts with a term.
    pub(super) fn texts(&self, id: TermId) -> u32 {
        self.terms[id].texts
    }

    /// How much it tells that two texts have a term in common: little, if many have it.
    pub(super) fn distinction(&self, id: TermId, texts: usize) -> f64 {
        let usual = u32::try_from(texts / 12).unwrap_or(u32::MAX).max(4);
        if self.terms[id].texts > usual { 0.3 } else { 1.0 }
    }
}

/// How many times the weight of another word, as measured on long chats.
const NUMBER: f64 = 5.0;
const NAME: f64 = 2.5;

impl Counts {
    fn note(&mut self, word: &Word<'_>) {
        let mut chars = word.text.chars();
        let first = chars.next().unwrap_or(' ');
        self.is_number |= word.text.chars().any(char::is_numeric);
        let inner = word.text.trim_matches('.');
        self.is_identifier |= inner.contains(['_', '/', '@', '\\', '.']) && !self.is_number
            || (first.is_lowercase() && chars.any(char::is_uppercase));
        if first.is_uppercase() && !word.begins_sentence {
            self.capitalized += 1;
        } else if first.is_lowercase() {
            self.lower += 1;
        }
    }
}

fn push(list: &mut Vec<TermId>, id: TermId) {
    if !list.contains(&id) {
        list.push(id);
    }
}

/// The beginning that the forms of a word have in common.
fn stem(word: &str) -> &str {
    if word.chars().any(char::is_numeric) {
        return word;
    }
    let word = word.strip_suffix("'s").unwrap_or(word);
    match word.char_indices().nth(STEM_CHARS) {
        Some((end, _)) => &word[..end],
        None if word.len() > 4 => word.strip_suffix('s').unwrap_or(word),
        None => word,
    }
}

struct Word<'a> {
    text: &'a str,
    begins_sentence: bool,
    begins_clause: bool,
    /// Whether it is a run of signs without spaces between words.
    is_unspaced: bool,
}

/// Splits a text into words. Signs within a word belong to it, as in `4,500`, `don't` and `src/main.rs`.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let (mut begins_sentence, mut begins_clause) = (true, true);
    let mut start = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let is_unspaced = is_unspaced(c);
        let joins = start.is_some()
            && matches!(c, '.' | ',' | ':' | '\'' | '’' | '-' | '/' | '\\' | '_' | '@' | '%' | '+')
            && next.is_some_and(|next| next.is_alphanumeric() && !self::is_unspaced(next));
        let opens =
            start.is_none() && matches!(c, '/' | '@' | '_' | '#') && next.is_some_and(char::is_alphanumeric);
        let is_part =
            (c.is_alphanumeric() || joins || opens) && (c != ',' || next.is_some_and(char::is_numeric));
        if is_part {
            let begin = *start.get_or_insert(at);
            let goes_on = next.is_some_and(|next| {
                let same_script = self::is_unspaced(next) == is_unspaced;
                (next.is_alphanumeric() && same_script) || (!is_unspaced && is_joint(next))
            });
            if goes_on {
                continue;
            }
            let text = &text[begin..at + c.len_utf8()];
            words.push(Word { text, begins_sentence, begins_clause, is_unspaced });
            (begins_sentence, begins_clause) = (false, false);
        } else if let Some(begin) = start.filter(|begin| *begin < at) {
            let text = &text[begin..at];
            words.push(Word { text, begins_sentence, begins_clause, is_unspaced: false });
            (begins_sentence, begins_clause) = (false, false);
        }
        start = None;
        begins_sentence |= matches!(c, '.' | '!' | '?' | ':' | '。' | '！' | '？');
        begins_clause |= begins_sentence || matches!(c, ',' | ';' | '，' | '；' | '、' | '–' | '—' | '(');
    }
    words.retain(|word| word.text.chars().any(char::is_alphanumeric));
    words
}

fn is_joint(c: char) -> bool {
    matches!(c, '.' | ',' | ':' | '\'' | '’' | '-' | '/' | '\\' | '_' | '@' | '%' | '+')
}

/// Whether words of this script are not separated by spaces.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{0e00}'..='\u{0eff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_keep_the_signs_inside_them() {
        assert_eq!(
            texts("It's 4,500 euros, see src/main.rs (or @ann_lee)."),
            ["It's", "4,500", "euros", "see", "src/main.rs", "or", "@ann_lee"]
        );
        assert_eq!(texts("预算是5000元，用redb"), ["预算是", "5000", "元", "用", "redb"]);
        assert_eq!(texts("Well... -5, a/b; c."), ["Well", "5", "a/b", "c"]);
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        assert_eq!(stem("deadlines"), stem("deadline"));
        assert_eq!(stem("budgets"), stem("budget"));
        assert_eq!(stem("2026"), "2026");
    }

    #[test]
    fn numbers_and_names_weigh_the_most() {
        let mut lexicon = Lexicon::default();
        let terms = lexicon.read("The owner of port 8080 is Marta.");
        let by_weight = |id: &TermId| lexicon.weight(*id, 10);
        let weights: Vec<f64> = terms.content.iter().map(by_weight).collect();
        assert!(weights[2] > weights[3] && weights[3] > weights[0], "{weights:?}");
    }
}
