use std::collections::{BTreeSet, HashMap};

use super::artifact::Artifacts;
use super::candidate::{Candidate, Origin, TASK_SCORE};
use super::claim::Claim;
use super::cue;
use super::observation::{Answer, ERROR_PREFIX, findings};
use super::question::{Statement, is_answered};
use super::worth::{WORTH_KEEPING, worth};
use crate::excerpt::head;
use crate::fence::clean_line;
use crate::sentence::{Sentence, sentences};
use crate::word::{Kind, stem};
use crate::{MessageRef, Section, Source, Speaker, Summary};

/// Requests and announcements further from the end than this many messages have been dealt with.
const PENDING_REACH: usize = 6;
const MAX_QUESTIONS: usize = 16;
/// Sentences that differ only in their numbers and come up in so many messages are routine.
const ROUTINE: usize = 3;
/// How the prose of an extract begins.
pub(super) const REPORT_PREFIX: &str = "Last report: ";

const OFFERS: &str = "\
    would you like, shall i, do you want, should i, anything else, is there anything, want me, can i";

/// Everything that was found worth a look, message by message.
#[derive(Debug, Default)]
pub(super) struct Reading<'a> {
    pub(super) candidates: Vec<Candidate>,
    pub(super) errors: Vec<Candidate>,
    answers: Vec<(usize, MessageRef, Answer)>,
    /// Questions, and what an earlier fold left to be done: both go when a later message deals with them.
    questions: Vec<(Sentence<'a>, Origin, Candidate)>,
    statements: Vec<Statement>,
    pub(super) artifacts: Artifacts,
    /// The sentences that came up, numbers aside.
    routine: HashMap<String, Routine>,
    /// The words of the latest user message.
    user_said: BTreeSet<String>,
    pub(super) last_report: Option<String>,
    has_task: bool,
}

/// How often something was said.
#[derive(Debug, Default)]
struct Routine {
    messages: usize,
    last: usize,
    by_user: bool,
}

impl<'a> Reading<'a> {
    pub(super) fn earlier(&mut self, previous: &'a Summary) {
        self.artifacts.read_earlier(&previous.artifacts);
        self.has_task = !previous.goals.is_empty();
        for section in [
            Section::Goals,
            Section::Decisions,
            Section::KeyFacts,
            Section::ActionItems,
            Section::OpenQuestions,
        ] {
            for (index, entry) in previous.list(section).iter().enumerate() {
                let sentence = Sentence::new(&entry.text);
                let mut candidate = Candidate::new(section, &sentence, Origin::Earlier, 0, &entry.rests_on);
                candidate.binds = section == Section::Decisions;
                self.count(0, &candidate.text, Origin::Earlier);
                if section == Section::Goals && index == 0 {
                    candidate.score = TASK_SCORE;
                }
                match section {
                    Section::OpenQuestions | Section::ActionItems => {
                        self.questions.push((sentence, Origin::Earlier, candidate))
                    }
                    Section::KeyFacts if entry.text.starts_with(ERROR_PREFIX) => self.errors.push(candidate),
                    Section::KeyFacts | Section::Goals | Section::Decisions | Section::Artifacts => {
                        self.candidates.push(candidate);
                    }
                }
            }
        }
        // The prose is rewritten, so what it alone says has to move into the lists.
        for sentence in sentences(&previous.summary_text) {
            if !sentence.text.starts_with(REPORT_PREFIX)
                && worth(&sentence, &Claim::of(&sentence), Origin::Assistant) >= WORTH_KEEPING
            {
                self.candidates.push(Candidate::new(Section::KeyFacts, &sentence, Origin::Assistant, 0, &[]));
            }
        }
    }

    pub(super) fn message(&mut self, place: usize, source: &'a Source<'_>, from_end: usize) {
        let origin = match source.speaker {
            Speaker::User => Origin::User,
            Speaker::Assistant | Speaker::Other(_) => Origin::Assistant,
            Speaker::Observation { .. } => Origin::Tool,
        };
        self.artifacts.read_text(&source.text, origin, source.number);
        for call in &source.calls {
            self.artifacts.read_call(call, source.number);
        }
        if let Speaker::Observation { tool } = source.speaker {
            self.observation(place, tool, source);
            return;
        }
        let said = sentences(&source.text);
        let of_task =
            if origin == Origin::User && !self.has_task { self.task(place, &said, source.number) } else { 0 };
        if origin == Origin::Assistant
            && let Some(sentence) = said.iter().rev().find(|sentence| is_report(sentence))
        {
            self.last_report = Some(head(&clean_line(sentence.text), 240));
        }
        if origin == Origin::User {
            self.user_said =
                said.iter().flat_map(|sentence| &sentence.words).map(|word| stem(word.text)).collect();
        }
        for sentence in &said {
            self.statements.push(Statement::new(place, origin, sentence));
            self.count(place, &clean_line(sentence.text), origin);
        }
        for sentence in said.into_iter().skip(of_task) {
            self.sentence(place, sentence, origin, source.number, from_end);
        }
    }

    /// The first thing of substance that a user says is what the conversation is for. Returns how many
    /// sentences that took.
    fn task(&mut self, place: usize, said: &[Sentence<'_>], number: MessageRef) -> usize {
        let is_task = |sentence: &Sentence<'_>| sentence.words.len() >= 3 && !cue::is_chatter(sentence);
        let Some(first) = said.iter().position(is_task) else { return 0 };
        let end = first + 1 + usize::from(said.get(first + 1).is_some_and(is_task));
        let task = said[first..end].iter().map(|sentence| sentence.text).collect::<Vec<_>>().join(" ");
        let mut goal = Candidate::new(Section::Goals, &Sentence::new(&task), Origin::User, place, &[number]);
        goal.score = TASK_SCORE;
        self.candidates.push(goal);
        self.has_task = true;
        end
    }

    fn sentence(
        &mut self,
        place: usize,
        sentence: Sentence<'a>,
        origin: Origin,
        number: MessageRef,
        from_end: usize,
    ) {
        let from_user = origin == Origin::User;
        if origin == Origin::Assistant && self.is_echo(&sentence) {
            return;
        }
        let is_recent = from_end <= PENDING_REACH;
        let claim = Claim::of(&sentence);
        let value = worth(&sentence, &claim, origin);
        let asks = from_user
            && (cue::requests(&sentence) || (sentence.is_question() && cue::asks_politely(&sentence)));
        // `Could you make that Friday?` settles it, however polite it is.
        let settles =
            cue::settles(&sentence, &claim, from_user) || (asks && settles_by_asking(&sentence, &claim));
        let section = if cue::is_chatter(&sentence) && value < WORTH_KEEPING && !settles {
            return;
        } else if asks && !settles {
            match (is_recent, value > WORTH_KEEPING) {
                (true, _) => Section::ActionItems,
                (false, true) => Section::KeyFacts,
                (false, false) => return,
            }
        } else if sentence.is_question() && !settles {
            let offers = !from_user && sentence.starts_with(OFFERS);
            if !offers && sentence.words.len() >= 3 {
                let open = Candidate::new(Section::OpenQuestions, &sentence, origin, place, &[number]);
                self.questions.push((sentence, origin, open));
            }
            return;
        } else if cue::leaves_open(&sentence) {
            Section::OpenQuestions
        } else if from_user && cue::aims(&sentence) {
            Section::Goals
        } else if cue::is_pending(&sentence) {
            Section::ActionItems
        } else if settles {
            Section::Decisions
        } else if !from_user && is_recent && cue::announces(&sentence) {
            Section::ActionItems
        } else if value >= WORTH_KEEPING {
            Section::KeyFacts
        } else {
            return;
        };
        self.candidates.push(Candidate::claiming(claim, section, &sentence, origin, place, &[number]));
    }

    fn observation(&mut self, place: usize, tool: Option<&str>, source: &Source<'_>) {
        let found = findings(tool, &source.text);
        for text in found.errors.iter().chain(found.answer.iter().flat_map(|answer| &answer.lines)) {
            self.count(place, text, Origin::Tool);
        }
        self.errors.extend(found.errors.iter().map(|text| told(text, place, source.number)));
        self.answers.extend(found.answer.map(|answer| (place, source.number, answer)));
    }

    /// What tools answered, without the lines that they say all the time.
    pub(super) fn results(&mut self) -> Vec<Candidate> {
        let mut results = Vec::new();
        for (place, number, answer) in std::mem::take(&mut self.answers) {
            if let Some(text) = answer.text(|line| !self.is_old_line(line, place)) {
                self.count(place, &text, Origin::Tool);
                results.push(told(&text, place, number));
            }
        }
        results
    }

    fn is_old_line(&self, line: &str, place: usize) -> bool {
        let routine = self.routine.get(&without_numbers(line));
        routine.is_some_and(|routine| routine.messages >= ROUTINE - 1 && place != routine.last)
    }

    fn count(&mut self, place: usize, text: &str, origin: Origin) {
        let routine = self.routine.entry(without_numbers(text)).or_default();
        routine.messages += usize::from(routine.last != place || place == 0);
        routine.last = place;
        routine.by_user |= origin == Origin::User;
    }

    /// Whether an assistant only confirms what the user just said: `Noted, 40 for the limit.`
    fn is_echo(&self, sentence: &Sentence<'_>) -> bool {
        let mut named = named(sentence).peekable();
        !sentence.is_question() && named.peek().is_some() && named.all(|name| self.user_said.contains(&name))
    }

    /// Whether the same was said again with other numbers, and this was not the last time.
    ///
    /// What was settled is left to those who compare what it is about. And who says to another room another
    /// number speaks of many things: `Room 12 has 40 seats`.
    pub(super) fn is_stale_routine(&self, candidate: &Candidate) -> bool {
        if candidate.section == Section::Decisions {
            return false;
        }
        self.routine.get(&without_numbers(&candidate.text)).is_some_and(|routine| {
            let often = if routine.by_user { ROUTINE } else { ROUTINE - 1 };
            let is_list = routine.by_user && candidate.figures > 1;
            routine.messages >= often && candidate.place != routine.last && !is_list
        })
    }

    /// Keeps the questions without an answer. Of very many only the latest are looked at, each against
    /// everything after it.
    pub(super) fn close_questions(&mut self) {
        let surplus = self.questions.len().saturating_sub(MAX_QUESTIONS);
        for (sentence, asker, open) in self.questions.drain(..).skip(surplus) {
            if !is_answered(&sentence, asker, open.place, &self.statements) {
                self.candidates.push(open);
            }
        }
    }
}

/// What a tool said, as a fact.
fn told(text: &str, place: usize, number: MessageRef) -> Candidate {
    Candidate::new(Section::KeyFacts, &Sentence::new(text), Origin::Tool, place, &[number])
}

fn settles_by_asking(sentence: &Sentence<'_>, claim: &Claim) -> bool {
    let gives = !claim.values.is_empty() || !claim.disowned.is_empty() || !sentence.is_question();
    let sets = claim.is_setting() && !claim.values.is_empty();
    gives && (claim.is_change || sets || !claim.disowned.is_empty())
}

fn named<'s>(sentence: &'s Sentence<'_>) -> impl Iterator<Item = String> + use<'s> {
    sentence.words.iter().filter(|word| word.kind != Kind::Plain).map(|word| stem(word.text))
}

/// Whether an assistant's sentence tells what it found or did.
fn is_report(sentence: &Sentence<'_>) -> bool {
    sentence.words.len() >= 4
        && !sentence.is_question()
        && !cue::is_chatter(sentence)
        && !cue::announces(sentence)
}

/// What remains of a text when its numbers may differ.
pub(super) fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_numeric()).flat_map(char::to_lowercase).collect()
}
