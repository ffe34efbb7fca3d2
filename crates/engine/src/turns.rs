//! How a conversation divides into turns, and which end of it an edit leaves alone.

use crate::{Digest, Keep, Kind, Message, Role, Tokens};
use std::ops::Range;

/// Returns the index of the first message that `keep` protects.
///
/// The unresolved tail is protected whatever `keep` says: the last assistant message, the answers to its calls, and the
/// user messages after it.
pub(crate) fn kept_from(messages: &[Message], keep: Keep) -> usize {
    let wanted = match keep {
        Keep::Turns(count) => nth_last(&turn_starts(messages), count.get()),
        Keep::UserTurns(count) => nth_last(&indices(messages, Message::is_user_turn), count.get()),
        Keep::Messages(count) => {
            let history = &messages[..open_turn_from(messages)];
            nth_last(&indices(history, |message| !message.role.is_instruction()), count.get())
        }
        Keep::Tokens(limit) => token_tail(messages, limit),
        // `Policy::within` has resolved it. Alone it protects nothing but the unresolved tail.
        Keep::Ratio(_) => messages.len(),
    };
    wanted.min(unresolved_from(messages))
}

/// Returns the index at which the unresolved tail begins, which no pass edits: the last assistant message, or 0 if there is
/// none.
#[must_use]
pub fn unresolved_from(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0)
}

/// Returns the index at which the open turn begins: the user messages after the last assistant message or observation.
pub(crate) fn open_turn_from(messages: &[Message]) -> usize {
    let is_open = |message: &Message| message.is_user_turn() || message.role.is_instruction();
    messages.iter().rposition(|message| !is_open(message)).map_or(0, |last| last + 1)
}

/// Returns the index of the last user turn: the request that the model is to answer.
pub(crate) fn last_user_turn(messages: &[Message]) -> Option<usize> {
    messages.iter().rposition(Message::is_user_turn)
}

/// Returns the number of turns, not counting the open one.
#[must_use]
pub fn count_turns(messages: &[Message]) -> usize {
    turn_starts(messages).len()
}

/// Returns the messages that are not instructions, with their indices.
///
/// Only these take part in the digest chain, so positions that must survive a changed system prompt are counted in them.
pub(crate) fn dialogue(messages: &[Message]) -> impl DoubleEndedIterator<Item = (usize, &Message)> {
    messages.iter().enumerate().filter(|(_, message)| !message.role.is_instruction())
}

/// Returns the index of the message whose digest this is.
///
/// Instructions carry the digest of the message before them, so they never match.
pub(crate) fn position_of(messages: &[Message], digest: Digest) -> Option<usize> {
    dialogue(messages).rev().find(|(_, message)| message.digest == digest).map(|(index, _)| index)
}

/// Returns the last index at or before `at` where the conversation can be cut: outside the unresolved tail, and not
/// between a call and its results.
pub(crate) fn last_cut_before(messages: &[Message], at: usize) -> usize {
    let mut at = at.min(unresolved_from(messages));
    while at > 0 && messages[at].joined {
        at -= 1;
    }
    at
}

/// Returns the messages that must not be separated from this one: calls that it answers, and other answers to them. A user message of
/// some dialects answers calls and asks a question at once.
pub(crate) fn with_calls(messages: &[Message], index: usize) -> Range<usize> {
    let is_joined = |at: usize| messages.get(at).is_some_and(|message| message.joined);
    let start = (0..=index).rev().find(|&at| !is_joined(at)).unwrap_or(0);
    let end = (index + 1..).find(|&at| !is_joined(at)).unwrap_or(index + 1);
    start..end
}

/// Returns the `count`-th index from the end, or 0 if there are fewer.
fn nth_last(indices: &[usize], count: u32) -> usize {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    indices.len().checked_sub(count).map_or(0, |index| indices[index])
}

fn indices(messages: &[Message], matches: impl Fn(&Message) -> bool) -> Vec<usize> {
    messages.iter().enumerate().filter(|(_, message)| matches(message)).map(|(index, _)| index).collect()
}

/// Returns the first index of each turn. A turn is the user messages that led to an assistant message, that message, and the
/// observations that answer it. User messages after the last assistant message start no turn.
fn turn_starts(messages: &[Message]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut led_by = None;
    for (index, message) in messages.iter().enumerate() {
        match (message.role, message.kind) {
            (Role::Assistant, _) => starts.push(led_by.take().unwrap_or(index)),
            (_, Kind::Observation) => {}
            (Role::User | Role::Other, Kind::Speech) => {
                led_by.get_or_insert(index);
            }
            (Role::System | Role::Developer | Role::Tool | Role::Function, Kind::Speech) => {}
        }
    }
    starts
}

/// Returns the start of the longest tail that uses at most `limit` tokens.
fn token_tail(messages: &[Message], limit: Tokens) -> usize {
    let mut sum = Tokens::ZERO;
    let mut start = messages.len();
    for (index, message) in dialogue(messages).rev() {
        sum += message.tokens;
        if sum > limit {
            break;
        }
        start = index;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter per message: `s`ystem, `u`ser, `a`ssistant, `t`ool, `o`bservation in a user message. Ten tokens each.
    fn messages(script: &str) -> Vec<Message> {
        let message = |letter| {
            let (role, kind) = match letter {
                's' => (Role::System, Kind::Speech),
                'u' => (Role::User, Kind::Speech),
                'a' => (Role::Assistant, Kind::Speech),
                't' => (Role::Tool, Kind::Observation),
                _ => (Role::User, Kind::Observation),
            };
            Message {
                role,
                kind,
                digest: Digest::default(),
                tokens: Tokens(10),
                size: Tokens(10),
                masked: None,
                trimmed: None,
                joined: false,
            }
        };
        script.chars().map(message).collect()
    }

    /// The part of the script that is kept.
    fn kept(script: &str, keep: Keep) -> &str {
        &script[kept_from(&messages(script), keep)..]
    }

    fn turns(count: u32) -> Keep {
        Keep::Turns(count.try_into().unwrap())
    }

    #[test]
    fn a_turn_is_an_assistant_message_with_its_user_messages_and_observations() {
        assert_eq!(kept("suatatat", turns(1)), "at");
        assert_eq!(kept("suatatat", turns(2)), "atat");
        assert_eq!(kept("suatatat", turns(3)), "uatatat");
        assert_eq!(kept("suatatat", turns(9)), "suatatat");
        assert_eq!(kept("suaoaoao", turns(2)), "aoao");
        assert_eq!(kept("suatttatt", turns(1)), "att");
        assert_eq!(kept("uauaua", turns(2)), "uaua");
    }

    #[test]
    fn the_open_turn_is_kept_in_addition_to_the_counted_turns() {
        assert_eq!(kept("uatuatu", turns(1)), "uatu");
        assert_eq!(kept("uatuatuu", turns(1)), "uatuu");
        assert_eq!(kept("u", turns(1)), "u");
    }

    #[test]
    fn keeps_by_user_turns_messages_and_tokens() {
        let two = 2.try_into().unwrap();
        assert_eq!(kept("suatuatu", Keep::UserTurns(two)), "uatu");
        assert_eq!(kept("uatatatu", Keep::Messages(two)), "atu");
        assert_eq!(kept("uauauaua", Keep::Messages(two)), "ua");
        assert_eq!(kept("uauauaua", Keep::Tokens(Tokens(39))), "aua");
        assert_eq!(kept("uauauaua", Keep::Tokens(Tokens(40))), "uaua");
    }

    #[test]
    fn the_unresolved_tail_is_always_kept() {
        assert_eq!(kept("uattt", Keep::Messages(1.try_into().unwrap())), "attt");
        assert_eq!(kept("uatuattt", Keep::Tokens(Tokens(1))), "attt");
        assert_eq!(kept("uatu", Keep::Tokens(Tokens(1))), "atu");
        assert_eq!(kept("ooo", Keep::Tokens(Tokens(1))), "ooo");
        assert_eq!(kept("", turns(1)), "");
    }
}
