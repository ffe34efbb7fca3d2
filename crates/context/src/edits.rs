//! Converts a plan into wire edits and applies them.

use crate::markers;
use crate::placement::{Insertion, OwnKind, Placed};
use crate::{Assessment, ConversationState, TurnInput, recall_tool};
use bytes::Bytes;
use std::borrow::Cow;
use tidegate_engine::{Plan, Role, Strategy};
use tidegate_wire::{BadEdit, Edit, OwnRole, Piece, Placeholder, RecallOffer, Substitutes, splice};

/// Puts the definition of our own tool at this place of the client's body, which no edit touches: it is outside the messages.
fn with_tool(pieces: Vec<Piece>, at: usize) -> Vec<Piece> {
    let tool = || Piece::New(Bytes::from_static(recall_tool().as_bytes()));
    let divided = |piece| match piece {
        Piece::Client(range) if range.contains(&at) => {
            vec![Piece::Client(range.start..at), tool(), Piece::Client(at..range.end)]
        }
        piece => vec![piece],
    };
    pieces.into_iter().flat_map(divided).collect()
}

impl Assessment {
    /// The request as it is to be forwarded; `None` if that is what the client sent.
    pub fn pieces(
        &self,
        input: &TurnInput,
        state: &ConversationState,
    ) -> Result<Option<Vec<Piece>>, BadEdit> {
        let edits = self.edits(input, state);
        let tool = match input.recall() {
            Some(RecallOffer::Tool { at }) if self.offers_recall(input) => Some(at),
            Some(_) | None => None,
        };
        if edits.is_empty() && tool.is_none() {
            return Ok(None);
        }
        let pieces = splice(&input.body, &input.outline, &self.chat.parsed, &edits)?;
        Ok(Some(match tool {
            Some(at) => with_tool(pieces, at),
            None => pieces,
        }))
    }

    /// The plan as wire edits, in the order of the messages.
    #[must_use]
    pub fn edits(&self, input: &TurnInput, state: &ConversationState) -> Vec<Edit> {
        let mut plan = Cow::Borrowed(&self.decision.plan);
        if input.context.observe {
            let Plan { masked, trimmed, folded, dropped, .. } = plan.to_mut();
            masked.clear();
            trimmed.clear();
            dropped.clear();
            *folded = None;
        }
        let placeholder = Placeholder::new(&input.context.mask.placeholder);
        let insertions = self.insertions(&plan, input, state);
        let placed = self.placed(&plan, input, insertions);
        let placed = if input.context.observe { placed } else { self.with_excerpts(placed) };
        let mut placed = placed.into_iter().peekable();
        let mut edits = Vec::new();
        let (mut masked, mut trimmed) = (plan.masked.iter().peekable(), plan.trimmed.iter().peekable());
        let removed = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
        let (mut removed, mut dropped) = (removed.iter().peekable(), plan.dropped.iter().peekable());
        for (message, parsed) in self.chat.parsed.iter().enumerate() {
            let stands_here =
                |placed: &Placed| matches!(placed, Placed::Message { before, .. } if *before == message);
            while let Some(Placed::Message { before, json, breakpoint }) = placed.next_if(stands_here) {
                let dialect = input.outline.dialect;
                let with = breakpoint.map_or(json.clone(), |marker| dialect.with_breakpoint(&json, &marker));
                edits.push(Edit::Insert { before, with });
            }
            if removed.next_if_eq(&&message).is_some() || dropped.next_if_eq(&&message).is_some() {
                match edits.last_mut() {
                    Some(Edit::Remove { messages }) if messages.end == message => messages.end += 1,
                    _ => edits.push(Edit::Remove { messages: message..message + 1 }),
                }
                continue;
            }
            // The tag is our own extension; providers refuse members that they do not know.
            if parsed.facts.tag.is_some() {
                edits.push(Edit::Untag { message });
            }
            if masked.next_if_eq(&&message).is_some() {
                edits.push(match self.substitutes(message) {
                    Some(own) => Edit::Shorten { message, texts: own.placeholders_in(parsed) },
                    None => Edit::Mask { message, placeholder: placeholder.clone() },
                });
            }
            if trimmed.next_if_eq(&&message).is_some()
                && let Some(own) = self.substitutes(message)
            {
                edits.push(Edit::Shorten { message, texts: own.excerpts_in(parsed) });
            }
            let is_part =
                |placed: &Placed| matches!(placed, Placed::Part { message: into, .. } if *into == message);
            if let Some(Placed::Part { message, side, texts }) = placed.next_if(is_part) {
                edits.push(Edit::Extend { message, texts, side });
            }
        }
        edits
    }

    /// What can stand for a message, where that is not the same placeholder for all of them.
    fn substitutes(&self, message: usize) -> Option<&Substitutes> {
        self.chat.substitutes.get(message)?.as_deref()
    }

    /// Messages of our own, each with the index of the client's message that it stands before.
    pub(crate) fn insertions(
        &self,
        plan: &Plan,
        input: &TurnInput,
        state: &ConversationState,
    ) -> Vec<Insertion> {
        let messages = &self.chat.messages;
        let first_after_instructions = messages.iter().position(|message| !message.role.is_instruction());
        let (notes, summary) = self.own_messages(plan, input, state);
        let is_left_alone = self.is_native || self.continues_upstream || plan.is_left_alone;
        let own = [(OwnKind::Notes, notes), (OwnKind::Summary, summary)].into_iter();
        let own = own.filter_map(|(kind, json)| json.map(|json| (kind, json)));
        let own = own.filter(|(_, json)| !json.is_empty() && !is_left_alone);
        // A request of instructions alone has no message that the notes could stand before.
        let insertion = |kind, before: usize, json: Bytes| Insertion { kind, before, json, breakpoint: None };
        let mut insertions: Vec<Insertion> = own
            .filter_map(|(kind, json)| first_after_instructions.map(|before| insertion(kind, before, json)))
            .collect();
        if let Some(first) = plan.dropped.first() {
            let text = match input.strategy {
                Strategy::Window => markers::left_out_middle(plan.dropped.len()),
                _ => {
                    let begins_turn = |index: &&usize| messages[**index].role == Role::Assistant;
                    markers::missing_turns(plan.dropped.iter().filter(begins_turn).count().max(1))
                }
            };
            insertions.push(insertion(
                OwnKind::Marker,
                *first,
                input.outline.dialect.own_message(OwnRole::User, &text),
            ));
        }
        self.move_breakpoint(plan, input, &mut insertions);
        insertions
    }

    /// Moves the last cache marker of the messages that go to the nearest message of our own before it. So there are never more
    /// markers than the client has set.
    fn move_breakpoint(&self, plan: &Plan, input: &TurnInput, insertions: &mut [Insertion]) {
        let folded = plan.folded.iter().flat_map(|folded| &folded.removed);
        let marked =
            folded.chain(&plan.dropped).filter(|index| self.chat.parsed[**index].facts.breakpoint.is_some());
        let Some(&lost) = marked.max() else { return };
        let Some(marker) = self.chat.parsed[lost].facts.breakpoint else { return };
        let place = input.outline.messages[lost].range().start;
        let marker = place + marker.range().start..place + marker.range().end;
        // Providers want longer-lived markers first, so a marker never moves past another one.
        let goes = |index: usize| {
            let folded = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
            folded.binary_search(&index).is_ok() || plan.dropped.binary_search(&index).is_ok()
        };
        let is_past_another = |own: &Insertion| {
            (own.before..lost).any(|index| !goes(index) && self.chat.parsed[index].facts.breakpoint.is_some())
        };
        let nearest = insertions.iter_mut().rev().find(|own| own.before <= lost);
        if let Some(own) = nearest.filter(|own| !is_past_another(own)) {
            own.breakpoint = Some(input.body.slice(marker));
        }
    }

    /// The pinned notes and the summary that go into the request.
    fn own_messages(
        &self,
        plan: &Plan,
        input: &TurnInput,
        state: &ConversationState,
    ) -> (Option<Bytes>, Option<Bytes>) {
        if let Some(trimmed) = &self.trimmed {
            let summary = trimmed.summary.as_ref().filter(|_| plan.folded.is_some());
            return (
                trimmed.notes.as_ref().map(|notes| notes.json.clone()),
                summary.map(|summary| summary.json.clone()),
            );
        }
        let summary = plan.folded.as_ref().and_then(|folded| state.summary(folded.covers));
        (state.notes_in(input).map(|notes| notes.json.clone()), summary.map(|summary| summary.json.clone()))
    }
}
