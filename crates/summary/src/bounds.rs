use crate::excerpt::head;
use crate::whole_sentences::whole_sentences;
use crate::{Section, Summary};

/// The maximum length of a brief answer, in units that a schema can express: characters of a text, entries of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub(crate) prose_chars: usize,
    pub(crate) entry_chars: usize,
    /// The number of entries per share of a list.
    shares: usize,
}

/// The assumed minimum length of a token. If tokens are shorter, the end of the answer is cut off.
const CHARS_PER_TOKEN: usize = 3;
/// The length of an entry: long enough for a sentence, too short for several.
const ENTRY_CHARS: (usize, usize) = (80, 160);

impl Bounds {
    /// Splits the tokens evenly between the prose, which small models write best, and the lists.
    pub fn of(max_tokens: u32) -> Self {
        let half = usize::try_from(max_tokens).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN) / 2;
        let entries: usize = Section::ALL.iter().map(|&section| share(section)).sum();
        let (shortest, longest) = ENTRY_CHARS;
        let entry_chars = (half / entries).clamp(shortest, longest);
        // If rounding gives the lists more than half, the end of the last list may be cut off.
        Self { prose_chars: half.max(shortest), entry_chars, shares: (half / entries / entry_chars).max(1) }
    }

    /// The most tokens that an answer within these bounds takes, so that its length limit does not cut it off: of numbers, two
    /// characters are a token.
    #[must_use]
    pub fn longest_answer(&self) -> u64 {
        const SYNTAX: usize = 64;
        let entries: usize = Section::ALL.iter().map(|&section| self.entries(section)).sum();
        let chars = self.prose_chars.saturating_add(entries.saturating_mul(self.entry_chars));
        (chars / 2).saturating_add(SYNTAX) as u64
    }

    /// The minimum length of the prose, so that a word or two do not pass for a summary.
    pub(crate) fn shortest_prose(&self) -> usize {
        self.prose_chars.min(20)
    }

    pub(crate) fn entries(&self, section: Section) -> usize {
        share(section).saturating_mul(self.shares)
    }

    /// Removes what the bounds cut off, because half a sentence may end in half a number. An incomplete entry is dropped; prose
    /// without a complete sentence keeps its complete words.
    pub fn mended(&self, mut summary: Summary) -> Summary {
        if is_full(&summary.summary_text, self.prose_chars) {
            summary.summary_text = match whole_sentences(&summary.summary_text) {
                "" => without_last_word(&summary.summary_text),
                whole => whole.to_owned(),
            };
        }
        for section in Section::ALL {
            let list = summary.list_mut(section);
            for entry in list.iter_mut().filter(|entry| is_full(&entry.text, self.entry_chars)) {
                entry.text = whole_sentences(&entry.text).to_owned();
            }
            list.retain(|entry| !entry.text.is_empty());
        }
        summary
    }
}

/// The relative length of a list.
fn share(section: Section) -> usize {
    match section {
        Section::Decisions | Section::KeyFacts => 2,
        Section::Goals | Section::OpenQuestions | Section::ActionItems | Section::Artifacts => 1,
    }
}

/// Whether a text may have been cut off by its bound. The parser has trimmed it. A longer text means that the endpoint ignores
/// bounds.
fn is_full(text: &str, bound: usize) -> bool {
    (bound.saturating_sub(2)..=bound).contains(&text.chars().count())
}

fn without_last_word(text: &str) -> String {
    match text.trim_end().rfind(char::is_whitespace).map(|at| text[..at].trim_end()) {
        Some(words) if !words.is_empty() => format!("{words}…"),
        // A single word, or a script without spaces.
        _ => head(text, text.chars().count().saturating_sub(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    #[test]
    fn bounds_grow_with_the_tokens_and_are_never_zero() {
        let mut before = Bounds::of(0);
        for tokens in (1..4_000).step_by(7) {
            let bounds = Bounds::of(tokens);
            assert!(bounds.prose_chars >= before.prose_chars && bounds.entry_chars >= before.entry_chars);
            assert!(Section::ALL.iter().all(|&section| bounds.entries(section) >= 1));
            assert!((1..=bounds.prose_chars).contains(&bounds.shortest_prose()));
            before = bounds;
        }
        assert_eq!(Bounds::of(u32::MAX).entry_chars, 160);
    }

    /// In tokens of three characters.
    #[test]
    fn an_answer_within_the_bounds_has_at_most_the_requested_tokens() {
        for tokens in [450, 600, 1_000, 1_500] {
            let bounds = Bounds::of(tokens);
            let entries: usize = Section::ALL.iter().map(|&section| bounds.entries(section)).sum();
            let chars = bounds.prose_chars + entries * bounds.entry_chars;
            assert!(chars <= 3 * tokens as usize, "{tokens}: {chars}");
        }
    }

    #[test]
    fn text_cut_off_by_a_bound_is_removed() {
        let bounds = Bounds { prose_chars: 40, entry_chars: 24, shares: 1 };
        let entry = |text: &str| Entry::new(text, []);
        let summary = Summary {
            summary_text: "The import works. It has 48,000 files at".into(),
            goals: vec![entry("Ship it")],
            decisions: vec![entry("Use redb. Then move 48,0"), entry("Move all of the 48,000 f")],
            key_facts: vec![entry("The archive was written."), entry(&"x".repeat(24))],
            artifacts: vec![entry("longer than the bound, from an endpoint that does not keep it")],
            ..Summary::default()
        };
        let mended = bounds.mended(summary);
        assert_eq!(mended.summary_text, "The import works.");
        assert_eq!(mended.goals, [entry("Ship it")]);
        assert_eq!(mended.decisions, [entry("Use redb.")]);
        assert_eq!(mended.key_facts, [entry("The archive was written.")]);
        assert_eq!(mended.artifacts.len(), 1);
    }

    #[test]
    fn prose_is_never_removed_entirely() {
        let bounds = Bounds { prose_chars: 12, entry_chars: 24, shares: 1 };
        for (prose, expected) in
            [("Moving 48,00", "Moving…"), ("Moving48,000", "Moving48,0…"), ("Moving 48", "Moving 48")]
        {
            let summary = bounds.mended(Summary { summary_text: prose.into(), ..Summary::default() });
            assert_eq!(summary.summary_text, expected);
        }
    }
}
