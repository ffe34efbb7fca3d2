//! The action on each message of a request, and the reason for it.

use crate::Request;
use std::collections::HashMap;
use tidegate_context::Assessment;
use tidegate_engine::{Kind, Message, Role, Strategy, Tokens, unresolved_from};

/// What happens to one message of the request.
#[derive(Debug)]
pub struct Fate {
    pub role: &'static str,
    pub kind: Kind,
    /// The tool whose result this is, or the message's `name`.
    pub tool: Option<String>,
    /// The tools that the message calls.
    pub calls: Vec<String>,
    pub tokens: Tokens,
    /// The tokens of the message in the forwarded request.
    pub after: Tokens,
    pub action: Action,
    pub why: Why,
    /// The messages that excerpts in this one quote.
    pub quotes: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Keep,
    Mask,
    /// Its long texts become excerpts.
    Trim,
    /// Only our own tag is removed.
    Untag,
    MaskAndUntag,
    TrimAndUntag,
    /// The message is removed and the summary replaces it.
    Fold,
    /// The message is removed and a marker replaces it.
    Drop,
}

/// The reason for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Passthrough,
    /// The provider manages the context, as the request asks it to.
    Native,
    /// The provider has refused an edited request of the conversation.
    LeftAlone,
    /// Reasoning behind it is bound to what stands here.
    BoundThinking,
    /// The provider keeps the messages before these.
    UpstreamHistory,
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
    Answered,
    ObservedAnswered,
    Postponed,
    Covered,
    ObservedCovered,
    Dropped,
    LeftOut,
    HeadOrTail,
    LastRequest,
    Spared,
    PinnedTask,
    BehindSummary,
    NoSummary,
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Action::Keep => "keep",
            Action::Mask => "mask",
            Action::Untag => "untag",
            Action::MaskAndUntag => "mask+untag",
            Action::Trim => "trim",
            Action::TrimAndUntag => "trim+untag",
            Action::Fold => "fold",
            Action::Drop => "drop",
        }
    }

    pub fn masks(self) -> bool {
        matches!(self, Action::Mask | Action::MaskAndUntag)
    }

    pub fn trims(self) -> bool {
        matches!(self, Action::Trim | Action::TrimAndUntag)
    }

    /// Whether the message is removed from the request.
    pub fn removes(self) -> bool {
        matches!(self, Action::Fold | Action::Drop)
    }

    pub fn untags(self) -> bool {
        matches!(self, Action::Untag | Action::MaskAndUntag | Action::TrimAndUntag)
    }
}

impl Why {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Why::Passthrough => "passthrough",
            Why::Native => "native",
            Why::LeftAlone => "left_alone",
            Why::BoundThinking => "bound_thinking",
            Why::UpstreamHistory => "upstream_history",
            Why::Instruction => "instruction",
            Why::Speech => "not_an_observation",
            Why::OwnWords => "assistant",
            Why::NoContent => "no_content",
            Why::ExcludedTool => "excluded_tool",
            Why::NotShorter => "not_shorter",
            Why::UnresolvedEnd => "unresolved_end",
            Why::InsideWindow => "inside_window",
            Why::OutsideWindow => "outside_window",
            Why::Observed | Why::ObservedAnswered => "observe",
            Why::Answered => "answered",
            Why::Postponed => "postponed",
            Why::Covered => "covered",
            Why::ObservedCovered => "observe",
            Why::Dropped => "dropped",
            Why::LeftOut => "left_out",
            Why::HeadOrTail => "head_or_tail",
            Why::LastRequest => "last_request",
            Why::Spared => "spared",
            Why::PinnedTask => "pinned_task",
            Why::BehindSummary => "behind_summary",
            Why::NoSummary => "no_summary",
        }
    }
}

/// Determines the action on each message.
pub fn fates(request: &Request<'_>, assessment: &Assessment) -> Vec<Fate> {
    let mut tools = HashMap::new();
    let mut fates = Vec::with_capacity(assessment.chat.messages.len());
    for (index, (message, parsed)) in assessment.chat.messages.iter().zip(&assessment.chat.parsed).enumerate()
    {
        let facts = &parsed.facts;
        let calls: Vec<String> = facts.calls.iter().map(|call| call.tool.to_string()).collect();
        tools.extend(facts.calls.iter().map(|call| call.id).zip(calls.iter().cloned()));
        let answered = facts.answers.iter().find_map(|id| tools.get(id).cloned());
        let why = why(index, message, facts.maskable.is_empty(), request, assessment);
        let action = action(why, facts.tag.is_some());
        let held = || assessment.excerpts.iter().filter(|excerpt| excerpt.message == index);
        let added: Tokens = held().map(|excerpt| excerpt.tokens).sum();
        fates.push(Fate {
            role: role(message.role),
            kind: message.kind,
            tool: answered.or_else(|| facts.name.as_deref().map(str::to_owned)),
            calls,
            tokens: message.tokens,
            after: match action {
                Action::Keep | Action::Untag => message.tokens + added,
                Action::Mask | Action::MaskAndUntag => message.tokens.saturating_sub(message.saving()),
                Action::Trim | Action::TrimAndUntag => message.tokens.saturating_sub(message.trim_saving()),
                Action::Fold | Action::Drop => Tokens::ZERO,
            },
            action,
            why,
            quotes: held().flat_map(|excerpt| excerpt.sources.iter().copied()).collect(),
        });
    }
    fates
}

fn action(why: Why, is_tagged: bool) -> Action {
    match (why, is_tagged) {
        (Why::Covered, _) => Action::Fold,
        (Why::Dropped | Why::LeftOut, _) => Action::Drop,
        (Why::OutsideWindow, false) => Action::Mask,
        (Why::OutsideWindow, true) => Action::MaskAndUntag,
        (Why::Answered, false) => Action::Trim,
        (Why::Answered, true) => Action::TrimAndUntag,
        (_, false) => Action::Keep,
        (_, true) => Action::Untag,
    }
}

/// Returns the first reason that applies, in the order in which the reader and the engine check them.
fn why(
    index: usize,
    message: &Message,
    has_no_content: bool,
    request: &Request<'_>,
    assessment: &Assessment,
) -> Why {
    let plan = &assessment.decision.plan;
    if request.strategy == Strategy::Passthrough {
        Why::Passthrough
    } else if assessment.continues_upstream {
        Why::UpstreamHistory
    } else if assessment.is_native {
        Why::Native
    } else if plan.is_left_alone {
        Why::LeftAlone
    } else if message.role.is_instruction() {
        Why::Instruction
    } else if plan.folded.as_ref().is_some_and(|folded| folded.removed.binary_search(&index).is_ok()) {
        if request.route.context.observe { Why::ObservedCovered } else { Why::Covered }
    } else if plan.dropped.binary_search(&index).is_ok() {
        if request.strategy == Strategy::Window { Why::LeftOut } else { Why::Dropped }
    } else if request.strategy == Strategy::Window {
        Why::HeadOrTail
    } else if plan.trimmed.binary_search(&index).is_ok() {
        if request.route.context.observe { Why::ObservedAnswered } else { Why::Answered }
    } else if request.strategy.folds()
        && (request.strategy == Strategy::Summarization || message.kind == Kind::Speech)
    {
        why_unfolded(index, request, assessment)
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
        if request.route.context.observe { Why::Observed } else { Why::OutsideWindow }
    } else if index >= unresolved_from(&assessment.chat.messages) {
        Why::UnresolvedEnd
    } else if index >= plan.edge {
        Why::InsideWindow
    } else if index < plan.bound {
        Why::BoundThinking
    } else {
        Why::Postponed
    }
}

/// Returns why a message that cannot be masked is not folded.
fn why_unfolded(index: usize, request: &Request<'_>, assessment: &Assessment) -> Why {
    let messages = &assessment.chat.messages;
    let is_task = || messages.iter().position(Message::is_user_turn) == Some(index);
    match &assessment.decision.plan.folded {
        Some(folded) if index < folded.upto => {
            if request.route.context.fold.pin_task && is_task() {
                Why::PinnedTask
            } else if messages.iter().rposition(Message::is_user_turn) == Some(index) {
                Why::LastRequest
            } else {
                Why::Spared
            }
        }
        _ if index >= unresolved_from(messages) => Why::UnresolvedEnd,
        _ if index < assessment.decision.plan.bound => Why::BoundThinking,
        Some(_) => Why::BehindSummary,
        None => Why::NoSummary,
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
