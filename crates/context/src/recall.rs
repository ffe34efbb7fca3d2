//! Brings back what has left the request: chooses the passages that bear on the newest user message.
//!
//! A summary cannot hold everything, but the client resends the messages that it stands for. Of those, the passages that share the
//! most distinctive words with the newest user message are put into it as excerpts. An excerpt is a decision like any other: the waypoint
//! holds it, and it is repeated with its message until that message leaves the request, too.

use crate::ranking::{Hit, rank};
use crate::{PlacedExcerpt, RecalledExcerpt, TurnInput};
use std::collections::{BTreeSet, HashSet};
use tidegate_engine::{
    Budget, Excerpt, MAX_EXCERPTS, Memory, Message, Passage, Plan, Strategy, Tokens, places,
};
use tidegate_wire::{ParsedRequest, Reader, Terms};

/// Excerpts take at most this share of the room that is left until the next summary is due, so that they never bring it about.
const FREE_SHARE: f64 = 0.5;

/// Where it is due anyway, they take at most this share of what the budget leaves.
const DUE_SHARE: f64 = 0.125;

/// Less room than this holds no excerpt that is worth its frame.
const MIN_ROOM: Tokens = Tokens(120);

/// The frame around the passages, and around each.
const FRAME: Tokens = Tokens(70);
const HEADING: Tokens = Tokens(12);

/// The most passages of one excerpt.
const MAX_PASSAGES: usize = 24;

/// The most passages that are looked at. To see whether the summary has one already costs its message and the summary a reading, so
/// without a bound it would cost the conversation times the summary.
const MAX_LOOKED_AT: usize = 4 * MAX_PASSAGES;

/// Why nothing was brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecalled {
    /// The route does not recall, or its strategy removes no message.
    Off,
    /// There is no new user message that takes an excerpt, or no message has left.
    NothingNew,
    /// The budget, or what the edits save, leaves less room than an excerpt takes.
    NoRoom,
    /// No passage of what has left shares distinctive words with the newest user message.
    NothingTelling,
    /// The passages that do are in the summary or in another excerpt.
    SaidAlready,
}

impl TurnInput {
    /// Whether messages that have left the request are brought back.
    pub(crate) fn recalls(&self) -> bool {
        let may_leave = match self.strategy {
            Strategy::Summarization | Strategy::Hybrid | Strategy::Window => true,
            Strategy::Passthrough | Strategy::Masking => false,
        };
        self.context.recall.auto && may_leave
    }

    /// The excerpts of earlier requests in messages of this one.
    pub(crate) fn earlier_excerpts(
        &self,
        memory: &Memory,
        chat: &ParsedRequest,
        reader: &Reader,
    ) -> Vec<PlacedExcerpt> {
        let earlier = memory.excerpts(&chat.messages, chat.cache);
        if earlier.is_empty() {
            return Vec::new();
        }
        let places = places(&chat.messages);
        let placed = |(message, excerpt)| self.placed_excerpt(message, excerpt, &places, reader);
        earlier.into_iter().filter(|(message, _)| takes_text(chat, *message)).filter_map(placed).collect()
    }

    /// The excerpts that a past request had.
    pub(crate) fn recorded_excerpts(
        &self,
        chat: &ParsedRequest,
        recorded: &[RecalledExcerpt],
        reader: &Reader,
    ) -> Vec<PlacedExcerpt> {
        let places = places(&chat.messages);
        let placed = |recalled: &RecalledExcerpt| {
            let message = *places.get(usize::try_from(recalled.into).ok()?)?;
            let placed = self.placed_excerpt(message, recalled.excerpt(), &places, reader)?;
            takes_text(chat, message).then_some(PlacedExcerpt { is_new: recalled.new, ..placed })
        };
        recorded.iter().filter_map(placed).collect()
    }

    /// Chooses what to bring back for the newest user message. `held` are the excerpts that the request has already, and `summary` is what
    /// it says of the messages that have left.
    pub(crate) fn new_excerpt(
        &self,
        memory: &Memory,
        chat: &ParsedRequest,
        plan: &Plan,
        held: &[PlacedExcerpt],
        summary: Option<&str>,
        reader: &Reader,
    ) -> Result<PlacedExcerpt, Unrecalled> {
        let message = memory.takes_excerpt(&chat.messages, chat.cache, plan).ok_or(Unrecalled::NothingNew)?;
        let is_taken = held.iter().any(|excerpt| excerpt.message == message);
        if is_taken || held.len() >= MAX_EXCERPTS || !takes_text(chat, message) {
            return Err(Unrecalled::NothingNew);
        }
        let room = self.room(plan);
        if room < MIN_ROOM {
            return Err(Unrecalled::NoRoom);
        }
        let mut view = self.view(message).ok_or(Unrecalled::NothingNew)?;
        // The results beside it are no question of the user's.
        view.results.clear();
        let query = Terms::words(&view.text());
        let places = places(&chat.messages);
        let search = Search { chat, plan, held, summary };
        let candidates = search.candidates(&places, message);
        let terms: Vec<&Terms> = candidates.iter().map(|(_, _, terms)| *terms).collect();
        let hits = rank(&terms, &query);
        if hits.is_empty() {
            return Err(Unrecalled::NothingTelling);
        }
        let mut chosen = Vec::new();
        let mut reason = Unrecalled::SaidAlready;
        let mut left = room.saturating_sub(FRAME);
        for Hit { text, passage, .. } in hits.into_iter().take(MAX_LOOKED_AT) {
            let (place, index, terms) = candidates[text];
            let Some(found) = terms.passages.get(passage) else { continue };
            let cost = HEADING + share(chat, index, terms, passage);
            let place = Passage { message: place, start: found.start, end: found.end };
            if !search.is_missing(self, index, &place) {
                continue;
            }
            if cost > left {
                reason = Unrecalled::NoRoom;
                continue;
            }
            left = left.saturating_sub(cost);
            chosen.push(place);
            if chosen.len() == MAX_PASSAGES {
                break;
            }
        }
        self.fitting(message, chosen, room, &places, reader).ok_or(reason)
    }

    /// The excerpt with as many of the passages as there is room for. What a passage costs was estimated; the least relevant go first.
    fn fitting(
        &self,
        message: usize,
        mut chosen: Vec<Passage>,
        room: Tokens,
        places: &[usize],
        reader: &Reader,
    ) -> Option<PlacedExcerpt> {
        let at = u32::try_from(places.binary_search(&message).ok()?).ok()?;
        while !chosen.is_empty() {
            let passages: BTreeSet<Passage> = chosen.iter().copied().collect();
            let excerpt = Excerpt { message: at, passages: passages.into_iter().collect() };
            let placed = self.placed_excerpt(message, excerpt, places, reader)?;
            if placed.tokens <= room {
                return Some(PlacedExcerpt { is_new: true, ..placed });
            }
            chosen.pop();
        }
        None
    }

    /// The number of tokens at which messages are summarized.
    fn fold_threshold(&self, budget: &Budget) -> Option<Tokens> {
        let folds = matches!(self.strategy, Strategy::Summarization | Strategy::Hybrid);
        folds.then(|| self.context.fold.when.token_threshold(budget)).flatten()
    }

    /// The room for a new excerpt. With it, a request is never longer than what the client sent.
    fn room(&self, plan: &Plan) -> Tokens {
        let max = self.context.recall.max_tokens.min(plan.before.saturating_sub(plan.after));
        let Some(input) = plan.budget.input else { return max };
        let due = self.fold_threshold(&plan.budget).map_or(input, |due| due.min(input));
        let (limit, share) = if plan.after < due { (due, FREE_SHARE) } else { (input, DUE_SHARE) };
        limit.saturating_sub(plan.after).share(share).min(max)
    }
}

/// The messages of a request whose passages can be brought back.
struct Search<'a> {
    chat: &'a ParsedRequest,
    plan: &'a Plan,
    held: &'a [PlacedExcerpt],
    summary: Option<&'a str>,
}

impl<'a> Search<'a> {
    /// The messages before `until` that have left the request and say nothing that a message in it says: the place of each among those
    /// that are not instructions, its index and its words.
    fn candidates(&self, places: &[usize], until: usize) -> Vec<(u32, usize, &'a Terms)> {
        let parsed = &self.chat.parsed;
        let has_left = |index: usize| is_gone(self.plan, index);
        let staying: HashSet<[u8; 32]> = (0..parsed.len())
            .filter(|index| !has_left(*index))
            .map(|index| parsed[index].facts.canonical)
            .collect();
        let candidate = |(place, &index): (usize, &usize)| {
            let message = &parsed[index];
            let is_new = has_left(index) && !staying.contains(&message.facts.canonical);
            let terms = message.terms.as_ref().filter(|_| is_new)?;
            Some((u32::try_from(place).ok()?, index, terms))
        };
        places.iter().take_while(|index| **index < until).enumerate().filter_map(candidate).collect()
    }

    /// Whether neither an excerpt nor the summary has the passage already.
    fn is_missing(&self, input: &TurnInput, index: usize, passage: &Passage) -> bool {
        let is_held = |held: &PlacedExcerpt| held.excerpt.passages.contains(passage);
        if self.held.iter().any(is_held) {
            return false;
        }
        let Some(summary) = self.summary else { return true };
        let Some(view) = input.view(index) else { return false };
        let text = view.text();
        let quoted = usize::try_from(passage.start).ok().zip(usize::try_from(passage.end).ok());
        quoted
            .and_then(|(start, end)| text.get(start..end))
            .is_some_and(|quoted| !summary.contains(quoted.trim()))
    }
}

/// Whether a message is not in the request as planned.
pub(crate) fn is_gone(plan: &Plan, index: usize) -> bool {
    plan.folded.as_ref().is_some_and(|folded| folded.removed.binary_search(&index).is_ok())
        || plan.dropped.binary_search(&index).is_ok()
}

/// What a passage costs, by its share of its message.
fn share(chat: &ParsedRequest, index: usize, terms: &Terms, passage: usize) -> Tokens {
    let Message { tokens, .. } = chat.messages[index];
    let length = |passage: &tidegate_wire::TermCount| u64::from(passage.end - passage.start);
    let whole: u64 = terms.passages.iter().map(length).sum();
    Tokens((tokens.0 * length(&terms.passages[passage])).div_ceil(whole.max(1)))
}

/// Whether a text of our own can be put into the message.
fn takes_text(chat: &ParsedRequest, message: usize) -> bool {
    chat.parsed.get(message).is_some_and(|parsed| parsed.facts.extendable.is_some())
}
