//! Where the part of a conversation begins that an edit leaves alone.

use crate::{Keep, Kind, Message, Role, Tokens};

/// The index of the first message that `keep` protects. The unresolved end of the conversation is protected whatever it
/// says: the last assistant message with the answers to its calls, and what the user said after it.
pub(crate) fn kept_from(messages: &[Message], keep: Keep) -> usize {
    let wanted = match keep {
        Keep::Turns(count) => nth_last(turn_starts(messages), count.get()),
        Keep::UserTurns(count) => nth_last(indices(messages, Message::is_user_turn), count.get()),
        Keep::Messages(count) => {
            let history = &messages[..open_from(messages)];
            nth_last(indices(history, |message| !message.role.is_instruction()), count.get())
        }
        Keep::Tokens(most) => token_tail(messages, most),
    };
    wanted.min(unresolved_from(messages))
}

/// Where the unresolved end begins, which nothing edits: at the last assistant message, or at the very start if there is
/// none.
#[must_use]
pub fn unresolved_from(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0)
}

/// Where the open turn begins: what the user has said since the assistant last spoke or acted.
pub(crate) fn open_from(messages: &[Message]) -> usize {
    let is_open = |message: &Message| message.is_user_turn() || message.role.is_instruction();
    messages.iter().rposition(|message| !is_open(message)).map_or(0, |last| last + 1)
}

/// The last thing that the user said.
pub(crate) fn request_at(messages: &[Message]) -> Option<usize> {
    messages.iter().rposition(Message::is_user_turn)
}

/// How many turns there are, the open one not counted.
#[must_use]
pub fn turns_in(messages: &[Message]) -> usize {
    turn_starts(messages).len()
}

/// The index of the `count`-th element from the end, or the start of everything if there are not so many.
fn nth_last(indices: Vec<usize>, count: u32) -> usize {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    indices.len().checked_sub(count).map_or(0, |index| indices[index])
}

fn indices(messages: &[Message], which: impl Fn(&Message) -> bool) -> Vec<usize> {
    messages.iter().enumerate().filter(|(_, message)| which(message)).map(|(index, _)| index).collect()
}

/// Where each turn begins: the user messages that led to an assistant message, that message, and the observations that
/// answer it. What a user said after the last assistant message is the open turn and counts for none.
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

/// The longest end of the conversation within `most` tokens.
fn token_tail(messages: &[Message], most: Tokens) -> usize {
    let mut sum = Tokens::ZERO;
    let mut start = messages.len();
    for (index, message) in
        messages.iter().enumerate().rev().filter(|(_, message)| !message.role.is_instruction())
    {
        sum += message.tokens;
        if sum > most {
            break;
        }
        start = index;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    /// One letter a message: `s`ystem, `u`ser, `a`ssistant, `t`ool, `o`bservation in a user message. Ten tokens each.
    fn messages(script: &str) -> Vec<Message> {
        let one = |letter| {
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
                joined: false,
            }
        };
        script.chars().map(one).collect()
    }

    /// The messages that are kept.
    fn kept(script: &str, keep: Keep) -> &str {
        &script[kept_from(&messages(script), keep)..]
    }

    fn turns(count: u32) -> Keep {
        Keep::Turns(count.try_into().unwrap())
    }

    #[test]
    fn a_turn_is_an_assistant_message_with_what_led_to_it_and_what_answered_it() {
        assert_eq!(kept("suatatat", turns(1)), "at");
        assert_eq!(kept("suatatat", turns(2)), "atat");
        assert_eq!(kept("suatatat", turns(3)), "uatatat");
        assert_eq!(kept("suatatat", turns(9)), "suatatat");
        assert_eq!(kept("suaoaoao", turns(2)), "aoao");
        assert_eq!(kept("suatttatt", turns(1)), "att");
        assert_eq!(kept("uauaua", turns(2)), "uaua");
    }

    #[test]
    fn the_open_turn_is_kept_beside_the_turns_asked_for() {
        assert_eq!(kept("uatuatu", turns(1)), "uatu");
        assert_eq!(kept("uatuatuu", turns(1)), "uatuu");
        assert_eq!(kept("u", turns(1)), "u");
    }

    #[test]
    fn other_units() {
        let two = 2.try_into().unwrap();
        assert_eq!(kept("suatuatu", Keep::UserTurns(two)), "uatu");
        assert_eq!(kept("uatatatu", Keep::Messages(two)), "atu");
        assert_eq!(kept("uauauaua", Keep::Messages(two)), "ua");
        assert_eq!(kept("uauauaua", Keep::Tokens(Tokens(39))), "aua");
        assert_eq!(kept("uauauaua", Keep::Tokens(Tokens(40))), "uaua");
    }

    #[test]
    fn the_unresolved_end_is_kept_whatever_the_window_says() {
        assert_eq!(kept("uattt", Keep::Messages(1.try_into().unwrap())), "attt");
        assert_eq!(kept("uatuattt", Keep::Tokens(Tokens(1))), "attt");
        assert_eq!(kept("uatu", Keep::Tokens(Tokens(1))), "atu");
        assert_eq!(kept("ooo", Keep::Tokens(Tokens(1))), "ooo");
        assert_eq!(kept("", turns(1)), "");
    }
}
