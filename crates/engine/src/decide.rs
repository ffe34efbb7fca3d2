use crate::mask::{Masking, mask};
use crate::{
    Budget, Cause, Economy, Memory, Message, Plan, Policy, Strategy, Timestamp, Tokens, Verdict, Waypoint,
};

/// One request, as the engine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    pub messages: &'a [Message],
    /// What the request uses besides its messages: tool schemas, reply priming.
    pub fixed: Tokens,
    pub budget: Budget,
    pub economy: Economy,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub plan: Plan,
    /// What to remember once the request has been sent; nothing for a request that leaves no trace.
    pub waypoint: Option<Waypoint>,
}

/// Decides what to do with a request.
///
/// Earlier decisions are repeated before new ones are made, so that between two decisions a request is forwarded as the
/// one before it plus what is new, and the provider's cache keeps hitting.
#[must_use]
pub fn decide(conversation: &Conversation<'_>, memory: &Memory, policy: &Policy, now: Timestamp) -> Decision {
    match policy.strategy {
        Strategy::Passthrough => pass(conversation),
        // The strategies that fold or drop are refused by the configuration until they are built; masking is the part of
        // them that is.
        Strategy::Masking | Strategy::Summarization | Strategy::Hybrid | Strategy::Window => {
            decide_masks(conversation, memory, policy, now)
        }
    }
}

fn pass(conversation: &Conversation<'_>) -> Decision {
    let before = used(conversation, 0);
    let plan = Plan {
        masked: Vec::new(),
        before,
        after: before,
        budget: conversation.budget,
        verdict: Verdict::Fits,
        cause: None,
        postponed: 0,
        edge: 0,
    };
    Decision { plan, waypoint: None }
}

fn decide_masks(
    conversation: &Conversation<'_>,
    memory: &Memory,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    let Conversation { messages, budget, economy, .. } = *conversation;
    let mut masking = mask(messages, memory, policy.mask.keep, policy.mask.pace, &economy, now);
    let mut after = used(conversation, masking.frontier);
    if after > budget.input && masking.frontier < masking.edge {
        let cause = Some(Cause::Budget);
        masking = Masking { frontier: masking.edge, cause, tally: 0.0, edge: masking.edge };
        after = used(conversation, masking.frontier);
    }
    let fits = after <= budget.input && budget.input > Tokens::ZERO;
    let is_maskable = |index: &usize| messages[*index].saving() > Tokens::ZERO;
    let plan = Plan {
        masked: (0..masking.frontier).filter(is_maskable).collect(),
        before: used(conversation, 0),
        after,
        budget,
        verdict: if fits { Verdict::Fits } else { Verdict::OverBudget },
        cause: masking.cause,
        postponed: (masking.frontier..masking.edge).filter(is_maskable).count(),
        edge: masking.edge,
    };
    Decision { plan, waypoint: fits.then(|| waypoint(messages, &masking, now)).flatten() }
}

/// What the request uses if everything maskable before `frontier` is masked.
fn used(conversation: &Conversation<'_>, frontier: usize) -> Tokens {
    let messages = conversation.messages.iter().enumerate();
    let counted = messages.map(|(index, message)| {
        if index < frontier { message.tokens.saturating_sub(message.saving()) } else { message.tokens }
    });
    counted.sum::<Tokens>() + conversation.fixed
}

fn waypoint(messages: &[Message], masking: &Masking, now: Timestamp) -> Option<Waypoint> {
    let last = |messages: &[Message]| {
        messages.iter().rev().find(|message| !message.role.is_instruction()).map(|message| message.digest)
    };
    let frontier = last(&messages[..masking.frontier]);
    last(messages).map(|end| Waypoint { end, frontier, tally: masking.tally, at: now })
}
