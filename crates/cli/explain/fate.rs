//! What would become of each message, and why.

use std::collections::HashMap;
use tidegate_engine::{Kind, Message, Role, Strategy, Tokens, unresolved_from};
use tidegate_proxy::{Assessment, Question};
use tidegate_wire::ContentKind;

/// One message of the request.
#[derive(Debug)]
pub(super) struct Fate {
    pub(super) role: &'static str,
    pub(super) kind: Kind,
    /// The tool whose result this is, or the name that the message bears.
    pub(super) tool: Option<String>,
    /// The tools that it calls.
    pub(super) calls: Vec<String>,
    pub(super) tokens: Tokens,
    pub(super) after: Tokens,
    pub(super) action: Action,
    pub(super) why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Keep,
    Mask,
    /// Our own tag goes, and all else stays.
    Untag,
    MaskAndUntag,
}

/// Why a message is masked or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Passthrough,
    Instruction,
    Speech,
    OwnWords,
    NoContent,
    ExcludedTool,
    NotShorter,
    UnresolvedEnd,
    InsideWindow,
    OutsideWindow,
    Observed,
    Postponed,
}

impl Action {
    pub(super) fn name(self) -> &'static str {
        match self {
            Action::Keep => "keep",
            Action::Mask => "mask",
            Action::Untag => "untag",
            Action::MaskAndUntag => "mask+untag",
        }
    }

    pub(super) fn masks(self) -> bool {
        matches!(self, Action::Mask | Action::MaskAndUntag)
    }

    pub(super) fn untags(self) -> bool {
        matches!(self, Action::Untag | Action::MaskAndUntag)
    }
}

impl Why {
    /// The name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Why::Passthrough => "passthrough",
            Why::Instruction => "instruction",
            Why::Speech => "not_an_observation",
            Why::OwnWords => "assistant",
            Why::NoContent => "no_content",
            Why::ExcludedTool => "excluded_tool",
            Why::NotShorter => "not_shorter",
            Why::UnresolvedEnd => "unresolved_end",
            Why::InsideWindow => "inside_window",
            Why::OutsideWindow => "outside_window",
            Why::Observed => "observe",
            Why::Postponed => "postponed",
        }
    }
}

pub(super) fn fates(question: &Question<'_>, assessment: &Assessment) -> Vec<Fate> {
    let mut tools = HashMap::new();
    let mut fates = Vec::with_capacity(assessment.chat.messages.len());
    for (index, (message, known)) in assessment.chat.messages.iter().zip(&assessment.chat.known).enumerate() {
        let facts = &known.facts;
        let calls: Vec<String> = facts.calls.iter().map(|call| call.tool.to_string()).collect();
        tools.extend(facts.calls.iter().map(|call| call.id).zip(calls.iter().cloned()));
        let answered = facts.answers.and_then(|id| tools.get(&id).cloned());
        let why = why(index, message, facts.content, question, assessment);
        let masks = why == Why::OutsideWindow;
        fates.push(Fate {
            role: role(message.role),
            kind: message.kind,
            tool: answered.or_else(|| facts.name.as_deref().map(str::to_owned)),
            calls,
            tokens: message.tokens,
            after: if masks { message.tokens.saturating_sub(message.saving()) } else { message.tokens },
            action: match (masks, facts.tag.is_some()) {
                (false, false) => Action::Keep,
                (true, false) => Action::Mask,
                (false, true) => Action::Untag,
                (true, true) => Action::MaskAndUntag,
            },
            why,
        });
    }
    fates
}

/// The first reason that holds, in the order in which the reader and the engine ask.
fn why(
    index: usize,
    message: &Message,
    content: ContentKind,
    question: &Question<'_>,
    assessment: &Assessment,
) -> Why {
    let plan = &assessment.decision.plan;
    let has_no_content = matches!(content, ContentKind::Absent | ContentKind::Null | ContentKind::Odd);
    if question.strategy == Strategy::Passthrough {
        Why::Passthrough
    } else if message.role.is_instruction() {
        Why::Instruction
    } else if message.kind == Kind::Speech {
        Why::Speech
    } else if message.role == Role::Assistant {
        Why::OwnWords
    } else if has_no_content {
        Why::NoContent
    } else if message.masked.is_none() {
        Why::ExcludedTool
    } else if message.saving() == Tokens::ZERO {
        Why::NotShorter
    } else if plan.masked.binary_search(&index).is_ok() {
        if question.context.observe { Why::Observed } else { Why::OutsideWindow }
    } else if index >= unresolved_from(&assessment.chat.messages) {
        Why::UnresolvedEnd
    } else if index >= plan.edge {
        Why::InsideWindow
    } else {
        Why::Postponed
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Function => "function",
        Role::Other => "other",
    }
}
