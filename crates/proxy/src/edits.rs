//! A plan in the words of `splice`, and the request that comes of it.

use crate::assess::{Assessment, Question};
use crate::summary_message::{gap_marker, marker, message};
use bytes::Bytes;
use std::borrow::Cow;
use tidegate_config::FoldRole;
use tidegate_engine::{Message, Plan, Role, Strategy, Tokens};
use tidegate_wire::{BadEdit, Edit, Piece, Placeholder, splice};

impl Assessment {
    /// The request as it is to be forwarded; nothing if that is what the client sent.
    pub fn pieces(&self, question: &Question<'_>) -> Result<Option<Vec<Piece>>, BadEdit> {
        self.spliced(question, &self.edits(question))
    }

    /// The same request under a plan that was made for it before.
    #[must_use]
    pub fn with_plan(mut self, plan: Plan) -> Assessment {
        self.decision.plan = plan;
        self.decision.wanted = None;
        self.trimmed = None;
        self
    }

    /// The same for whoever needs the edits themselves, too.
    pub(crate) fn spliced(
        &self,
        question: &Question<'_>,
        edits: &[Edit],
    ) -> Result<Option<Vec<Piece>>, BadEdit> {
        if edits.is_empty() {
            return Ok(None);
        }
        splice(question.body, question.outline, &self.chat.parsed, edits).map(Some)
    }

    /// The plan in the words of `splice`, in the order of the messages.
    pub(crate) fn edits(&self, question: &Question<'_>) -> Vec<Edit> {
        let mut plan = Cow::Borrowed(&self.decision.plan);
        if question.context.observe {
            let Plan { masked, folded, dropped, .. } = plan.to_mut();
            masked.clear();
            dropped.clear();
            *folded = None;
        }
        let placeholder = Placeholder::new(&question.context.mask.placeholder);
        let mut insertions = self.insertions(&plan, question).into_iter().peekable();
        let mut edits = Vec::new();
        let mut masked = plan.masked.iter().peekable();
        let removed = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
        let (mut removed, mut dropped) = (removed.iter().peekable(), plan.dropped.iter().peekable());
        for (message, parsed) in self.chat.parsed.iter().enumerate() {
            while let Some((before, with)) = insertions.next_if(|(before, _)| *before == message) {
                edits.push(Edit::Insert { before, with });
            }
            if removed.next_if_eq(&&message).is_some() || dropped.next_if_eq(&&message).is_some() {
                match edits.last_mut() {
                    Some(Edit::Remove { messages }) if messages.end == message => messages.end += 1,
                    _ => edits.push(Edit::Remove { messages: message..message + 1 }),
                }
                continue;
            }
            // The tag is between the client and us; providers refuse members that they do not know.
            if parsed.facts.tag.is_some() {
                edits.push(Edit::Untag { message });
            }
            if masked.next_if_eq(&&message).is_some() {
                edits.push(Edit::Mask { message, placeholder: placeholder.clone() });
            }
        }
        edits
    }

    /// The messages of our own, each with the client's before which it stands.
    fn insertions(&self, plan: &Plan, question: &Question<'_>) -> Vec<(usize, Bytes)> {
        let messages = &self.chat.messages;
        let mut insertions = Vec::new();
        let behind_instructions = messages.iter().position(|message| !message.role.is_instruction());
        let (summary, pinned) = self.own(plan, question);
        let own = pinned.into_iter().chain(summary).filter(|json| !json.is_empty());
        // The engine uses no summary that it was not given, and none that covers no message. What is pinned to a conversation
        // of instructions alone has no message to stand before.
        insertions.extend(own.filter_map(|json| behind_instructions.map(|before| (before, json))));
        if let Some(first) = plan.dropped.first() {
            let text = match question.strategy {
                Strategy::Window => gap_marker(plan.dropped.len()),
                _ => {
                    let turns = plan.dropped.iter().filter(|&&index| begins_turn(&messages[index])).count();
                    marker(turns.max(1))
                }
            };
            insertions.push((*first, message(FoldRole::User, &text)));
        }
        insertions
    }

    /// The summary and the notes that go into the request.
    fn own(&self, plan: &Plan, question: &Question<'_>) -> (Option<Bytes>, Option<Bytes>) {
        if let Some((summary, pinned)) = &self.trimmed {
            let summary = summary.as_ref().filter(|_| plan.folded.is_some()).map(|one| one.json.clone());
            return (summary, pinned.as_ref().map(|one| one.json.clone()));
        }
        let covers = plan.folded.as_ref().map(|folded| folded.covers);
        let summary = question.summaries.iter().find(|summary| Some(summary.fold.covers) == covers);
        (summary.map(|one| one.json.clone()), question.pinned().map(|one| one.json.clone()))
    }

    /// Counts what the total of the blocks has taken from the summary and the notes.
    pub(crate) fn without_what_is_trimmed(mut self, question: &Question<'_>) -> Assessment {
        let Some((summary, pinned)) = &self.trimmed else { return self };
        let plan = &mut self.decision.plan;
        let sum =
            |own: [Option<Tokens>; 2]| own.into_iter().flatten().map(|tokens| question.scaled(tokens)).sum();
        let before: Tokens = plan.folded.as_ref().map_or(Tokens::ZERO, |folded| folded.tokens)
            + sum([question.pinned().map(|one| one.tokens), None]);
        let summary = summary.as_ref().map(|one| one.fold.tokens);
        let after: Tokens = sum([summary, pinned.as_ref().map(|one| one.tokens)]);
        plan.after = plan.after.saturating_sub(before) + after;
        if let (Some(folded), Some(tokens)) = (&mut plan.folded, summary) {
            folded.tokens = question.scaled(tokens);
        }
        self
    }
}

fn begins_turn(message: &Message) -> bool {
    message.role == Role::Assistant
}
