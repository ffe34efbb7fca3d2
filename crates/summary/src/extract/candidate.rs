use super::claim::Claim;
use super::cue;
use super::worth::worth;
use crate::fence::clean_line;
use crate::sentence::Sentence;
use crate::{MessageRef, Section};

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The summary of an earlier fold.
    Earlier,
    User,
    Assistant,
    Tool,
}

/// Something that may become an entry.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) section: Section,
    pub(super) text: String,
    pub(super) rests_on: Vec<MessageRef>,
    pub(super) score: i32,
    /// The place of its message among those being folded; 0 is the earlier summary.
    pub(super) place: usize,
    pub(super) claim: Claim,
    /// Whether it can replace what was said before it.
    pub(super) binds: bool,
}

impl Candidate {
    pub(super) fn new(
        section: Section,
        sentence: &Sentence<'_>,
        origin: Origin,
        place: usize,
        rests_on: &[MessageRef],
    ) -> Self {
        let text = clean_line(sentence.text);
        let mut score = worth(sentence, origin);
        match section {
            // What was settled binds whatever follows, however plainly it was put.
            Section::Decisions => score = score.max(0) + SETTLING,
            Section::ActionItems if cue::is_pending(sentence) => score += 3,
            // A question rarely names anything, and it is what the next answer has to be about.
            Section::OpenQuestions => score += 2,
            Section::ActionItems | Section::Goals | Section::KeyFacts | Section::Artifacts => {}
        }
        let binds = section == Section::Decisions || (section == Section::KeyFacts && origin == Origin::User);
        Self { section, text, rests_on: rests_on.to_vec(), score, place, claim: Claim::of(sentence), binds }
    }

    /// Takes over what an earlier candidate with the same text has.
    pub(super) fn absorb(&mut self, earlier: &Self) {
        self.rests_on.splice(0..0, earlier.rests_on.iter().copied());
        self.score = self.score.max(earlier.score);
        self.binds |= earlier.binds;
        // A decision that is repeated as a mere fact is still a decision.
        if earlier.section == Section::Decisions || earlier.section == Section::Goals {
            self.section = earlier.section;
        }
    }
}

/// What a statement gains by settling something.
pub(super) const SETTLING: i32 = 3;
