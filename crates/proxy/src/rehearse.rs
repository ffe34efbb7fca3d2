//! A conversation as the proxy would treat it, request by request, without a network, a store or a clock.
//!
//! The same steps in the same code: recall, assess, fold, splice, remember. Only who calls them differs. What a running proxy
//! learns from outside is left out: counts are never corrected by an upstream's reports, and an LLM never summarizes; the
//! built-in summarizer does.

use crate::assess::{Assessment, Question, Rule};
use crate::course::{Course, Step};
use crate::dress::dressed;
use crate::fold::COOL_DOWN;
use crate::journey::needs_rewrite;
use crate::limit;
use crate::look::Look;
use crate::material::fold_offline;
use crate::pinned_message::PinnedMessage;
use crate::summary_message::{State, SummaryMessage, tokens};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_config::Context;
use tidegate_engine::{FoldJob, Plan, Timestamp, Tokens, Verdict};
use tidegate_store::{Recalled, StoredFold};
use tidegate_tokens::Model;
use tidegate_wire::{Edit, Outline, ParsedRequest, Piece, Reader};

/// What is remembered of one conversation under one policy.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    context: &'a Context,
    recalled: Recalled,
    /// Until when summarizing is not tried again.
    cooling: u64,
    /// Our own messages as they look for a model.
    dress: Option<Dress>,
    /// What own messages cost that were counted before.
    own: HashMap<Bytes, Tokens>,
    summaries_made: u32,
}

#[derive(Debug)]
struct Dress {
    model: Arc<Model>,
    pinned: Option<PinnedMessage>,
    summaries: Vec<SummaryMessage>,
}

/// One request, as a client would send it.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub body: &'a [u8],
    pub outline: &'a Outline,
    pub model: &'a Arc<Model>,
    pub now: Timestamp,
    pub splice: Splice,
}

/// Whether anybody looks at the very bytes that would be forwarded, or only at what they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splice {
    Wanted,
    Unwanted,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Outcome {
    Forwarded(Box<Forwarded>),
    /// `422`: with everything that the policy allows it does not fit, or the conversation has reached a limit.
    Refused,
    /// Its messages cannot be read, so it goes out as it came.
    Unreadable,
}

/// A request that goes out.
#[derive(Debug)]
pub struct Forwarded {
    pub chat: ParsedRequest,
    pub plan: Plan,
    /// What it is made of, in order.
    pub parts: Vec<Part>,
    pub is_edited: bool,
    /// The request in pieces, where they were wanted; none if it is the client's own.
    pub pieces: Option<Vec<Piece>>,
}

/// One message of a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub what: What,
    pub tokens: Tokens,
}

/// Where a forwarded message comes from. Indexes are those of the client's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The client's own bytes, but perhaps without our tag.
    Client(usize),
    Masked(usize),
    /// A message of our own: what is pinned, a summary, a marker.
    Own(Bytes),
}

impl<'a> Rehearsal<'a> {
    /// A conversation that nothing is known of, with what is pinned to it.
    #[must_use]
    pub fn new(context: &'a Context, pinned: Option<Arc<str>>) -> Rehearsal<'a> {
        let mut recalled = Recalled::default();
        recalled.pinned = pinned;
        Rehearsal { context, recalled, cooling: 0, dress: None, own: HashMap::new(), summaries_made: 0 }
    }

    /// How many summaries were made so far.
    #[must_use]
    pub fn summaries_made(&self) -> u32 {
        self.summaries_made
    }

    /// What would become of the conversation's next request. It is remembered.
    pub fn next(&mut self, reader: &Reader, line: Line<'_>) -> Outcome {
        self.dress_for(line.model);
        let Some(mut assessment) = self.assess(reader, line, Rule::Decide) else {
            return Outcome::Unreadable;
        };
        let context = self.context;
        let is_limited = !context.observe && needs_rewrite(context.strategy, line.body);
        if is_limited && limit::check(&context.limits, &assessment.chat.messages, None).is_err() {
            return Outcome::Refused;
        }
        let mut course = Course::new();
        loop {
            let rule = match course.next(context, &assessment.decision) {
                Step::Fold(job) => match self.fold(line, &assessment.chat, &job) {
                    Ok(()) => Rule::Decide,
                    Err(Unmade { reason, was_tried }) => {
                        course.failed(reason, was_tried, &job, &assessment.decision);
                        continue;
                    }
                },
                Step::Truncate => Rule::Truncate,
                Step::Stand => break,
            };
            let Some(again) = self.assess(reader, line, rule) else { return Outcome::Unreadable };
            assessment = again;
        }
        if assessment.decision.plan.verdict == Verdict::OverBudget && !context.observe {
            return Outcome::Refused;
        }
        let question = self.question(line);
        let edits = assessment.edits(&question);
        let is_edited = !edits.is_empty();
        let pieces = match line.splice {
            Splice::Wanted => assessment.spliced(&question, &edits),
            Splice::Unwanted => Ok(None),
        };
        let Ok(pieces) = pieces else { return Outcome::Unreadable };
        let parts = self.parts(&assessment, edits, line.model);
        if let Some(waypoint) = assessment.decision.waypoint.filter(|one| !self.recalled.knows(one)) {
            self.recalled.memory.add(waypoint);
        }
        if let Some(job) = course.later(context, &assessment.decision).cloned() {
            // Whether it could be made shows at the next request.
            let _ = self.fold(line, &assessment.chat, &job);
        }
        let Assessment { chat, decision, .. } = assessment;
        Outcome::Forwarded(Box::new(Forwarded { chat, plan: decision.plan, parts, is_edited, pieces }))
    }

    /// Our own messages, as this model's tokens count them.
    fn dress_for(&mut self, model: &Arc<Model>) {
        if self.dress.as_ref().is_some_and(|dress| Arc::ptr_eq(&dress.model, model)) {
            return;
        }
        let Recalled { folds, pinned, .. } = &self.recalled;
        let (summaries, pinned) =
            dressed(self.context, self.context.strategy, model, folds, pinned.as_deref());
        self.dress = Some(Dress { model: model.clone(), pinned, summaries });
        // Another model may count the same words differently.
        self.own.clear();
    }

    fn assess(&self, reader: &Reader, line: Line<'_>, rule: Rule) -> Option<Assessment> {
        let question = self.question(line);
        let lookup = question.look_up(reader);
        question.assess_from(lookup, reader, &self.recalled.memory, rule, line.now).ok()
    }

    fn question<'q>(&'q self, line: Line<'q>) -> Question<'q> {
        let dress = self.dress.as_ref();
        Question {
            body: line.body,
            outline: line.outline,
            context: self.context,
            strategy: self.context.strategy,
            model: line.model,
            factor: 1.0,
            summaries: dress.map_or(&[], |dress| &dress.summaries),
            pinned: dress.and_then(|dress| dress.pinned.as_ref()),
        }
    }

    /// Makes a summary, unless there is one or none could be made a moment ago.
    fn fold(&mut self, line: Line<'_>, chat: &ParsedRequest, job: &FoldJob) -> Result<(), Unmade> {
        if line.now.0 < self.cooling {
            return Err(Unmade { reason: "summarizer_cooling", was_tried: false });
        }
        let known = |covers| self.recalled.folds.iter().find(|fold| fold.covers == covers);
        let fold = match known(job.covers) {
            Some(fold) => fold.clone(),
            None => {
                let previous = job.previous.and_then(known).and_then(State::of).map(|state| state.summary);
                match fold_offline(&self.question(line), chat, job, previous.as_ref()) {
                    Ok(fold) => fold,
                    Err(reason) => {
                        let pause = u64::try_from(COOL_DOWN.as_millis()).unwrap_or(0);
                        self.cooling = line.now.0.saturating_add(pause);
                        return Err(Unmade { reason, was_tried: true });
                    }
                }
            }
        };
        self.add(fold, line.model);
        Ok(())
    }

    fn add(&mut self, fold: StoredFold, model: &Model) {
        if self.recalled.folds.iter().any(|known| known.covers == fold.covers) {
            return;
        }
        let look = Look::of(self.context, model, self.recalled.pinned.as_deref());
        if let Some(dress) = &mut self.dress {
            dress.summaries.extend(SummaryMessage::of(&fold, &look));
        }
        self.summaries_made += 1;
        self.recalled.folds.push(fold);
    }

    /// The messages that go out, each with what it costs.
    fn parts(&mut self, assessment: &Assessment, edits: Vec<Edit>, model: &Model) -> Vec<Part> {
        let messages = &assessment.chat.messages;
        let mut parts = Vec::with_capacity(messages.len() + 2);
        let as_sent = |indexes: std::ops::Range<usize>| {
            indexes.map(|index| (What::Client(index), messages[index].tokens))
        };
        let mut next = 0;
        for edit in edits {
            let (at, behind, new) = match edit {
                Edit::Insert { before, with } => {
                    let tokens = self.own_tokens(&with, model);
                    (before, before, Some((What::Own(with), tokens)))
                }
                Edit::Remove { messages } | Edit::Replace { messages, .. } => {
                    (messages.start, messages.end, None)
                }
                Edit::Mask { message, .. } => {
                    let masked = messages[message].tokens.saturating_sub(messages[message].saving());
                    (message, message + 1, Some((What::Masked(message), masked)))
                }
                // A masked one comes right behind it.
                Edit::Untag { message } => (message, message, None),
            };
            parts.extend(as_sent(next..at));
            parts.extend(new);
            next = behind;
        }
        parts.extend(as_sent(next..messages.len()));
        parts.into_iter().map(|(what, tokens)| Part { what, tokens }).collect()
    }

    fn own_tokens(&mut self, json: &Bytes, model: &Model) -> Tokens {
        let (role, encoding) = (self.context.fold.role, model.encoding);
        *self.own.entry(json.clone()).or_insert_with(|| {
            let message: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
            tokens(message["content"].as_str().unwrap_or_default(), role, encoding)
        })
    }
}

/// A summary that is not there.
struct Unmade {
    reason: &'static str,
    was_tried: bool,
}
