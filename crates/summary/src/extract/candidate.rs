use super::claim::Claim;
use super::cue;
use super::observation::is_observation;
use super::worth::worth;
use crate::fence::clean_line;
use crate::sentence::Sentence;
use crate::word::{Kind, stem};
use crate::{Entry, MessageRef, Section};

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
    pub(super) origin: Origin,
    /// How many words of it hold a digit.
    pub(super) figures: usize,
}

impl Candidate {
    pub(super) fn new(
        section: Section,
        sentence: &Sentence<'_>,
        origin: Origin,
        place: usize,
        rests_on: &[MessageRef],
    ) -> Self {
        Self::claiming(Claim::of(sentence), section, sentence, origin, place, rests_on)
    }

    /// The same for a sentence that was read already.
    pub(super) fn claiming(
        claim: Claim,
        section: Section,
        sentence: &Sentence<'_>,
        origin: Origin,
        place: usize,
        rests_on: &[MessageRef],
    ) -> Self {
        let text = clean_line(sentence.text);
        let mut score = worth(sentence, &claim, origin);
        match section {
            // What was settled binds whatever follows, however plainly it was put.
            Section::Decisions => score = score.max(0) + SETTLING - i32::from(claim.values.is_empty()),
            Section::ActionItems if cue::is_pending(sentence) => score += 3,
            // A question rarely names anything, and it is what the next answer has to be about.
            Section::OpenQuestions => score += 2,
            Section::ActionItems | Section::Goals | Section::KeyFacts | Section::Artifacts => {}
        }
        // An assistant states much, and only what it says to be new can replace anything.
        let states = origin == Origin::User || (origin == Origin::Assistant && claim.is_change);
        let binds = match section {
            Section::Decisions => true,
            Section::KeyFacts | Section::Goals => states,
            Section::ActionItems | Section::OpenQuestions | Section::Artifacts => false,
        };
        Self {
            section,
            text,
            rests_on: rests_on.to_vec(),
            score,
            place,
            claim,
            binds,
            origin,
            figures: sentence.count(Kind::Figure),
        }
    }

    /// Says what a bare `make it 40` is about, as the statement that it replaces told.
    pub(super) fn tell_about(&mut self, earlier: Claim) {
        let is_said = |word: &String| self.claim.all.contains(&stem(word));
        if !earlier.about.iter().all(is_said) && !self.text.contains(ABOUT) {
            self.text.push_str(&format!("{ABOUT}{})", earlier.about.join(" ")));
        }
        self.claim.inherit(earlier);
    }

    /// Whether a tool said so, now or in an earlier fold. Nobody takes that back by saying something else.
    pub(super) fn is_observed(&self) -> bool {
        let is_marked = || is_observation(&self.text);
        self.origin == Origin::Tool || (self.origin == Origin::Earlier && is_marked())
    }

    /// What it is worth for its length: where there is little room, two short facts are better than a long one.
    pub(super) fn rank(&self) -> i32 {
        let length = i32::try_from(self.text.chars().count()).unwrap_or(i32::MAX);
        self.score - length / LONG_CHARS
    }

    pub(super) fn entry(&self) -> Entry {
        Entry::new(self.text.clone(), self.rests_on.clone())
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

const ABOUT: &str = " (about: ";

/// So many characters cost a point.
const LONG_CHARS: i32 = 110;

/// What a statement gains by settling something.
pub(super) const SETTLING: i32 = 3;

/// Above everything that a sentence can reach by its words.
pub(super) const TASK_SCORE: i32 = 20;
