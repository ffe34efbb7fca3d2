use crate::edits::{Edits, Inputs, last_digest, tokens_as_sent};
use crate::memory::Trail;
use crate::{
    Budget, CacheKey, CachePricing, FoldJob, Memory, Message, Plan, Policy, Strategy, Timestamp, Tokens,
    Verdict, Waypoint,
};

/// One request, as the engine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    pub messages: &'a [Message],
    /// Which of the provider's caches can have the messages.
    pub cache: CacheKey,
    /// The tokens that the request uses besides its messages: tool schemas, reply priming.
    pub fixed: Tokens,
    pub budget: Budget,
    pub economy: CachePricing,
    /// The cost of the marker that takes the place of dropped messages.
    pub marker: Tokens,
    /// The cost of the message that holds the conversation's pinned notes.
    pub pinned: Tokens,
}

/// What to do with a request, what to remember of it, and which summary to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub plan: Plan,
    /// The waypoint to store once the request has been sent. `None` if it is refused or its strategy decides nothing.
    pub waypoint: Option<Waypoint>,
    /// The summary that would improve this request or, if it is not urgent, the next one.
    pub wanted: Option<FoldJob>,
}

/// Decides what to do with a request.
///
/// Earlier decisions are repeated before new ones are made. So between two decisions the forwarded request is the previous one
/// plus new messages, and the provider's prompt cache keeps hitting.
#[must_use]
pub fn decide(conversation: &Conversation<'_>, memory: &Memory, policy: &Policy, now: Timestamp) -> Decision {
    let policy = &policy.within(conversation);
    let inputs = Inputs { conversation, memory, policy, now };
    if policy.leaves_alone && policy.strategy != Strategy::Passthrough {
        return leave_alone(conversation, now);
    }
    match policy.strategy {
        Strategy::Passthrough => pass_through(conversation),
        Strategy::Masking | Strategy::Summarization | Strategy::Hybrid => {
            Edits::plan(&inputs).into_decision(&inputs, Vec::new())
        }
        Strategy::Window => {
            let (edits, dropped) = Edits::window(&inputs);
            edits.into_decision(&inputs, dropped)
        }
    }
}

/// Forwards a request as it is, and remembers to do so with all that follow it.
fn leave_alone(conversation: &Conversation<'_>, now: Timestamp) -> Decision {
    let Decision { plan, .. } = pass_through(conversation);
    let waypoint = last_digest(conversation.messages).map(|end| Waypoint {
        end,
        trail: Trail::of(conversation.messages),
        cache: conversation.cache,
        at: now,
        is_left_alone: true,
        ..Waypoint::default()
    });
    Decision { plan: Plan { is_left_alone: true, ..plan }, waypoint, wanted: None }
}

fn pass_through(conversation: &Conversation<'_>) -> Decision {
    let tokens = tokens_as_sent(conversation);
    let plan = Plan {
        masked: Vec::new(),
        trimmed: Vec::new(),
        newly_trimmed: None,
        folded: None,
        dropped: Vec::new(),
        before: tokens,
        after: tokens,
        budget: conversation.budget,
        verdict: Verdict::Fits,
        cause: None,
        postponed: 0,
        edge: 0,
        trim_edge: 0,
        bound: 0,
        is_left_alone: false,
        window: None,
        blocks: None,
    };
    Decision { plan, waypoint: None, wanted: None }
}
