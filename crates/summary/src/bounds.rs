use crate::excerpt::head;
use crate::whole::whole;
use crate::{Section, Summary};

/// How long a brief answer may get, in what a schema can say: characters of a text, entries of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub(crate) prose_chars: usize,
    pub(crate) entry_chars: usize,
    /// How many times over each list has its share.
    shares: usize,
}

/// What a token is at least, for most of what is said. Where it is less, the end of the answer is cut off.
const CHARS_PER_TOKEN: usize = 3;
/// A shorter entry could hardly be a sentence; a longer one is several.
const ENTRY_CHARS: (usize, usize) = (80, 160);

impl Bounds {
    /// Half of the tokens for the prose, which small models write best, and half for the lists.
    pub fn of(max_tokens: u32) -> Self {
        let half = usize::try_from(max_tokens).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN) / 2;
        let entries: usize = Section::ALL.iter().map(|&section| share(section)).sum();
        let (shortest, longest) = ENTRY_CHARS;
        let entry_chars = (half / entries).clamp(shortest, longest);
        // Where the lists together get more than half, it is the end of the last of them that may be cut off.
        Self { prose_chars: half.max(shortest), entry_chars, shares: (half / entries / entry_chars).max(1) }
    }

    /// Long enough that a word or two do not pass for a summary.
    pub(crate) fn shortest_prose(&self) -> usize {
        self.prose_chars.min(20)
    }

    pub(crate) fn entries(&self, section: Section) -> usize {
        share(section).saturating_mul(self.shares)
    }

    /// An answer that was held to the bounds, without what they broke off, since half a sentence may end in half a number. Prose that is no whole sentence
    /// keeps its words; an entry that is none is nothing.
    pub fn mended(&self, mut summary: Summary) -> Summary {
        if is_full(&summary.summary_text, self.prose_chars) {
            summary.summary_text = match whole(&summary.summary_text) {
                "" => without_last_word(&summary.summary_text),
                whole => whole.to_owned(),
            };
        }
        for section in Section::ALL {
            let list = summary.list_mut(section);
            for entry in list.iter_mut().filter(|entry| is_full(&entry.text, self.entry_chars)) {
                entry.text = whole(&entry.text).to_owned();
            }
            list.retain(|entry| !entry.text.is_empty());
        }
        summary
    }
}

/// How a share of the lists is dealt out.
fn share(section: Section) -> usize {
    match section {
        Section::Decisions | Section::KeyFacts => 2,
        Section::Goals | Section::OpenQuestions | Section::ActionItems | Section::Artifacts => 1,
    }
}

/// Whether a text may have been stopped by its bound. Reading took the spaces at its ends; a longer one shows that the endpoint does
/// not keep to bounds.
fn is_full(text: &str, bound: usize) -> bool {
    (bound.saturating_sub(2)..=bound).contains(&text.chars().count())
}

fn without_last_word(text: &str) -> String {
    match text.trim_end().rfind(char::is_whitespace).map(|at| text[..at].trim_end()) {
        Some(words) if !words.is_empty() => format!("{words}…"),
        // One word, or a script without spaces.
        _ => head(text, text.chars().count().saturating_sub(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    #[test]
    fn a_longer_summary_has_more_room_and_a_short_one_has_some() {
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

    /// The text of a whole answer, in tokens of three characters, is no longer than was asked for.
    #[test]
    fn an_answer_within_the_bounds_fits() {
        for tokens in [450, 600, 1_000, 1_500] {
            let bounds = Bounds::of(tokens);
            let entries: usize = Section::ALL.iter().map(|&section| bounds.entries(section)).sum();
            let chars = bounds.prose_chars + entries * bounds.entry_chars;
            assert!(chars <= 3 * tokens as usize, "{tokens}: {chars}");
        }
    }

    #[test]
    fn what_a_bound_broke_off_goes() {
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
    fn prose_never_goes_as_a_whole() {
        let bounds = Bounds { prose_chars: 12, entry_chars: 24, shares: 1 };
        for (prose, expected) in
            [("Moving 48,00", "Moving…"), ("Moving48,000", "Moving48,0…"), ("Moving 48", "Moving 48")]
        {
            let summary = bounds.mended(Summary { summary_text: prose.into(), ..Summary::default() });
            assert_eq!(summary.summary_text, expected);
        }
    }
}
