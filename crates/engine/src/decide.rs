use crate::fold::{Outlook, folded, folded_as_before, legal, wanted, wanted_by_blocks};
use crate::mask::{Masking, mask};
use crate::toll::{Toll, toll};
use crate::turns::request_at;
use crate::window::{Windowed, window};
use crate::{
    Budget, Cause, Economy, FoldJob, Folded, Memory, Message, Plan, Policy, Strategy, Timestamp, Tokens,
    Urgency, Verdict, Waypoint,
};

/// One request, as the engine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    pub messages: &'a [Message],
    /// What the request uses besides its messages: tool schemas, reply priming.
    pub fixed: Tokens,
    pub budget: Budget,
    pub economy: Economy,
    /// What the message costs that stands for dropped ones.
    pub marker: Tokens,
    /// What the message costs that holds what is pinned to the conversation.
    pub pinned: Tokens,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub plan: Plan,
    /// What to remember once the request has been sent; nothing for a request that leaves no trace.
    pub waypoint: Option<Waypoint>,
    /// What would be better to summarize: before this request goes out, or for the next one.
    pub wanted: Option<FoldJob>,
}

/// Decides what to do with a request.
///
/// Earlier decisions are repeated before new ones are made, so that between two decisions a request is forwarded as the
/// one before it plus what is new, and the provider's cache keeps hitting.
#[must_use]
pub fn decide(conversation: &Conversation<'_>, memory: &Memory, policy: &Policy, now: Timestamp) -> Decision {
    match policy.strategy {
        Strategy::Passthrough => pass(conversation),
        Strategy::Masking | Strategy::Summarization | Strategy::Hybrid => Edits::make(
            conversation,
            memory,
            policy,
            now,
        )
        .decision(conversation, memory, policy, now, Vec::new()),
        Strategy::Window => {
            let windowed = window(conversation, memory, &policy.window);
            let dropped = windowed.dropped.clone();
            Edits::of(windowed).decision(conversation, memory, policy, now, dropped)
        }
    }
}

/// Decides for a request that should have been summarized and could not be: what does not fit is dropped, the oldest first, and
/// never what must stay. If nothing has to go, nothing goes. A history that is longer than its block may be goes as far as it
/// would have been folded.
#[must_use]
pub fn truncate(
    conversation: &Conversation<'_>,
    memory: &Memory,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    let edits = Edits::make(conversation, memory, policy, now);
    let from = edits.folded.as_ref().map_or(0, |folded| folded.upto);
    let messages = conversation.messages;
    // The task and the instructions before it are not what is dropped first.
    let from = from.max(messages.iter().position(Message::is_user_turn).map_or(0, |task| task + 1));
    let request = request_at(messages);
    let goes = |index: &usize| {
        let is_sacred = messages[*index].role.is_instruction() || Some(*index) == request;
        !is_sacred && edits.stays(*index, &[])
    };
    let used = edits.used(conversation, &[]).0;
    let budget = conversation.budget.input.0;
    // In steps, so that what is dropped stays the same for some turns, and with it the prompt that the provider has cached.
    let step = (budget / 4).max(1);
    let roomy = used.saturating_sub(used.saturating_sub(budget).div_ceil(step) * step);
    let (mut left, mut cut, mut last_resort) = (used + conversation.marker.0, None, None);
    let block = policy.blocks.edge(messages, edits.folded.as_ref(), from).unwrap_or(from);
    for index in from..legal(messages, messages.len()) {
        if (used <= budget && index >= block) || cut.is_some() {
            break;
        }
        left -= if goes(&index) { edits.cost(index, &messages[index]).0 } else { 0 };
        let is_legal = !messages[index + 1].joined && index + 1 >= block;
        last_resort = last_resort.or((is_legal && left <= budget).then_some(index + 1));
        cut = (is_legal && left <= roomy).then_some(index + 1);
    }
    let dropped = cut.or(last_resort).map_or_else(Vec::new, |cut| (from..cut).filter(goes).collect());
    edits.decision(conversation, memory, policy, now, dropped)
}

fn pass(conversation: &Conversation<'_>) -> Decision {
    let before = before(conversation);
    let plan = Plan {
        masked: Vec::new(),
        folded: None,
        dropped: Vec::new(),
        before,
        after: before,
        budget: conversation.budget,
        verdict: Verdict::Fits,
        cause: None,
        postponed: 0,
        edge: 0,
        window: None,
        blocks: None,
    };
    Decision { plan, waypoint: None, wanted: None }
}

fn before(conversation: &Conversation<'_>) -> Tokens {
    conversation.messages.iter().map(|message| message.tokens).sum::<Tokens>() + conversation.fixed
}

/// What is done to the messages, but for what may have to be dropped.
struct Edits {
    folded: Option<Folded>,
    masking: Masking,
    is_retry: bool,
    toll: Toll,
    windowed: Option<Windowed>,
}

/// What a strategy that does not mask does.
const UNMASKED: Masking = Masking { frontier: 0, cause: None, tally: 0.0, edge: 0 };

impl Edits {
    fn make(conversation: &Conversation<'_>, memory: &Memory, policy: &Policy, now: Timestamp) -> Edits {
        let messages = conversation.messages;
        let earlier = memory.last_on(messages).filter(|(index, _)| ends_at(messages, *index));
        if let Some((_, waypoint)) = earlier {
            // The same request again: a retry gets what the first try got, if that keeps to every limit. It does not where the
            // first try had to go without a summary that is there now, or where this one has less room.
            let folded = folded_as_before(messages, memory, policy, waypoint.fold);
            let from = folded.as_ref().map_or(0, |folded| folded.upto);
            let over_blocks = policy.blocks.edge(messages, folded.as_ref(), from).is_some();
            let edits = Edits { is_retry: true, ..Edits::around(folded, conversation, memory, policy, now) };
            if !over_blocks && edits.used(conversation, &[]) <= conversation.budget.input {
                return edits;
            }
        }
        let folded = folded(messages, memory, policy);
        Edits { is_retry: earlier.is_some(), ..Edits::around(folded, conversation, memory, policy, now) }
    }

    /// The edits of a request with this summary in it, as if it came for the first time.
    fn around(
        folded: Option<Folded>,
        conversation: &Conversation<'_>,
        memory: &Memory,
        policy: &Policy,
        now: Timestamp,
    ) -> Edits {
        let Conversation { messages, budget, economy, .. } = *conversation;
        let folds = matches!(policy.strategy, Strategy::Summarization | Strategy::Hybrid);
        let folded = folded.filter(|_| folds);
        let toll = toll(messages, memory, folded.as_ref(), &policy.fold, &economy, now);
        if policy.strategy == Strategy::Summarization {
            return Edits { folded, masking: UNMASKED, is_retry: false, toll, windowed: None };
        }
        let masking =
            mask(messages, memory, policy.mask.keep, policy.mask.pace, &economy, now, folded.as_ref());
        let mut edits = Edits { folded, masking, is_retry: false, toll, windowed: None };
        let Masking { frontier, edge, .. } = edits.masking;
        if frontier < edge && edits.used(conversation, &[]) > budget.input {
            edits.masking = Masking { frontier: edge, cause: Some(Cause::Budget), tally: 0.0, edge };
        }
        edits
    }

    fn of(windowed: Windowed) -> Edits {
        let toll = Toll { is_paid: true, tally: 0.0 };
        Edits { folded: None, masking: UNMASKED, is_retry: false, toll, windowed: Some(windowed) }
    }

    fn decision(
        self,
        conversation: &Conversation<'_>,
        memory: &Memory,
        policy: &Policy,
        now: Timestamp,
        dropped: Vec<usize>,
    ) -> Decision {
        let Conversation { messages, budget, .. } = *conversation;
        let after = self.used(conversation, &dropped);
        let fits = after <= budget.input && budget.input > Tokens::ZERO;
        let wanted = match policy.strategy {
            Strategy::Summarization | Strategy::Hybrid => {
                let after = self.used(conversation, &[]);
                let (folded, toll) = (self.folded.as_ref(), &self.toll);
                let outlook = Outlook { messages, folded, after, budget: &budget, toll };
                // What else a retry could want, the first try has wanted.
                let is_content = self.is_retry && fits;
                wanted_by_blocks(&outlook, memory, policy)
                    .or_else(|| (!is_content).then(|| wanted(&outlook, memory, policy)).flatten())
            }
            Strategy::Passthrough | Strategy::Masking | Strategy::Window => None,
        };
        let stays = |index: &usize| self.stays(*index, &dropped);
        let is_masked = |index: &usize| messages[*index].saving() > Tokens::ZERO && stays(index);
        let Masking { frontier, edge, cause, .. } = self.masking;
        let waypoint = fits.then(|| self.waypoint(messages, now)).flatten();
        let summary = self.folded.as_ref().map_or(Tokens::ZERO, |folded| folded.size);
        let windowed = self.windowed.as_ref();
        let window_cause = windowed.and_then(|windowed| windowed.figures.cut).map(|_| Cause::Budget);
        let plan = Plan {
            masked: (0..frontier).filter(is_masked).collect(),
            postponed: (frontier..edge).filter(is_masked).count(),
            before: before(conversation),
            after,
            budget,
            verdict: if fits { Verdict::Fits } else { Verdict::OverBudget },
            cause: wanted.as_ref().map(|job| job.cause).or(cause).or(window_cause),
            edge,
            window: windowed.map(|windowed| windowed.figures),
            blocks: policy.blocks.figures(messages, stays, summary),
            folded: self.folded,
            dropped,
        };
        Decision { plan, waypoint, wanted }
    }

    fn stays(&self, index: usize, dropped: &[usize]) -> bool {
        let is_folded =
            self.folded.as_ref().is_some_and(|folded| folded.removed.binary_search(&index).is_ok());
        !is_folded && dropped.binary_search(&index).is_err()
    }

    /// What a message costs as it would be sent.
    fn cost(&self, index: usize, message: &Message) -> Tokens {
        if index < self.masking.frontier {
            message.tokens.saturating_sub(message.saving())
        } else {
            message.tokens
        }
    }

    /// What the request uses with the summary, everything maskable before the frontier masked, and a marker for what is
    /// dropped.
    fn used(&self, conversation: &Conversation<'_>, dropped: &[usize]) -> Tokens {
        let messages = conversation.messages.iter().enumerate();
        let counted = messages.filter(|(index, _)| self.stays(*index, dropped));
        let counted = counted.map(|(index, message)| self.cost(index, message));
        let summary = self.folded.as_ref().map_or(Tokens::ZERO, |folded| folded.tokens);
        let marker = if dropped.is_empty() { Tokens::ZERO } else { conversation.marker };
        counted.sum::<Tokens>() + summary + marker + conversation.fixed + conversation.pinned
    }

    fn waypoint(&self, messages: &[Message], now: Timestamp) -> Option<Waypoint> {
        let last = |messages: &[Message]| {
            messages.iter().rev().find(|message| !message.role.is_instruction()).map(|message| message.digest)
        };
        let fold = self.folded.as_ref().map(|folded| folded.covers);
        let frontier = last(&messages[..self.masking.frontier]);
        last(messages).map(|end| Waypoint {
            end,
            frontier,
            tally: self.masking.tally,
            at: now,
            fold,
            fold_tally: self.toll.tally,
            gap: self.windowed.as_ref().and_then(|windowed| windowed.gap),
        })
    }
}

/// Whether nothing but instructions comes behind this message.
fn ends_at(messages: &[Message], index: usize) -> bool {
    messages[index + 1..].iter().all(|message| message.role.is_instruction())
}

impl FoldJob {
    /// Whether the request should wait for it.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.urgency == Urgency::Now
    }
}
