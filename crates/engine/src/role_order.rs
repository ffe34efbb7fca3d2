//! Which messages stay so that the others can go without breaking the order of roles.
//!
//! Strict chat templates accept a user message only at the beginning or after an answer, and an answer only after a user message or
//! tool results. Where removing a run of messages would bring two together that must not follow each other, the end of the run stays:
//! the answer before a user message, or the question before an answer.

use crate::turns::{dialogue, with_calls};
use crate::{Message, Role};

/// Whether the order of roles is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoleOrder {
    /// Texts of our own are messages wherever they stand, which breaks the order anyway.
    #[default]
    Any,
    /// What is forwarded has the order that strict templates want, if the request has it.
    Strict,
    /// The same where instructions may stand among the messages, as Anthropic allows: behind the user, and before an answer or at the
    /// end.
    StrictWithInstructions,
}

/// Where a text of our own can be the user message between two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bridge {
    /// A summary: before everything else.
    Beginning,
    /// A marker: where the first messages are missing.
    FirstGap,
}

/// Why a message must not follow another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clash {
    SameRole,
    UserAfterResults,
    /// Instructions that stand behind an answer or other instructions, or before the user.
    Instructions,
}

impl RoleOrder {
    /// Returns those of the messages `removed` that can go if those in `gone` go, too. Both lists are in order.
    pub(crate) fn removable(
        self,
        messages: &[Message],
        mut removed: Vec<usize>,
        gone: &[usize],
        bridge: Bridge,
    ) -> Vec<usize> {
        loop {
            let staying = self.staying(messages, &removed, gone, bridge);
            removed.retain(|index| staying.binary_search(index).is_err());
            // Where no instructions stand between a call and its results, what stays is whole.
            if staying.is_empty() || self != RoleOrder::StrictWithInstructions {
                return removed;
            }
        }
    }

    /// Returns those of the messages `removed` that have to stay, with the calls and results that they cannot be separated from.
    fn staying(self, messages: &[Message], removed: &[usize], gone: &[usize], bridge: Bridge) -> Vec<usize> {
        if self == RoleOrder::Any || removed.is_empty() {
            return Vec::new();
        }
        let nodes = self.nodes(messages);
        let is_removed = |index: &usize| removed.binary_search(index).is_ok();
        let goes = |index: &usize| is_removed(index) || gone.binary_search(index).is_ok();
        let (mut before, mut has_gap, mut run, mut staying) = (None, false, Vec::new(), Vec::new());
        for index in nodes {
            if goes(&index) {
                run.push(index);
                continue;
            }
            let is_bridged = before.is_none() || (bridge == Bridge::FirstGap && !has_gap);
            let mut after = index;
            while let Some(last) = run.last().copied().filter(is_removed) {
                if !meets_badly(messages, before, last, after, is_bridged) {
                    break;
                }
                // A call goes or stays with its results.
                let unit = run.iter().rposition(|&index| !messages[index].joined).unwrap_or(0);
                after = run[unit];
                staying.extend(run.drain(unit..));
            }
            has_gap |= !run.is_empty();
            run.clear();
            before = Some(index);
        }
        let whole = staying.iter().flat_map(|&index| with_calls(messages, index)).filter(is_removed);
        let mut staying: Vec<usize> = whole.collect();
        staying.sort_unstable();
        staying.dedup();
        staying
    }

    /// The messages whose order matters.
    fn nodes(self, messages: &[Message]) -> Vec<usize> {
        let mut nodes: Vec<usize> = dialogue(messages).map(|(index, _)| index).collect();
        if let (RoleOrder::StrictWithInstructions, Some(&first)) = (self, nodes.first()) {
            nodes = (first..messages.len()).collect();
        }
        nodes
    }
}

/// Whether `before` and `after` clash once the messages between them are removed, the last of which is `last`. A clash that the request
/// has itself is none of ours.
fn meets_badly(
    messages: &[Message],
    before: Option<usize>,
    last: usize,
    after: usize,
    is_bridged: bool,
) -> bool {
    let Some(before) = before else { return false };
    let [before, last, after] = [before, last, after].map(|index| messages[index].role);
    let is_bridged = is_bridged && after == Role::Assistant;
    clash(before, after).is_some_and(|clash| {
        // Where instructions stand in another place, they say something else, or their answer ends with a result.
        let was_there = clash != Clash::Instructions && self::clash(last, after) == Some(clash);
        !is_bridged && !was_there
    })
}

fn clash(before: Role, after: Role) -> Option<Clash> {
    match (before, after) {
        (Role::User, Role::User) | (Role::Assistant, Role::Assistant) => Some(Clash::SameRole),
        (Role::Tool | Role::Function, Role::User) => Some(Clash::UserAfterResults),
        (before, after) if before.is_instruction() => {
            (after != Role::Assistant).then_some(Clash::Instructions)
        }
        (before, after) if after.is_instruction() => (before != Role::User).then_some(Clash::Instructions),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Digest, Kind, Tokens};

    /// One letter per message: `s`ystem, `u`ser, `a`ssistant, `c`alling assistant, `t`ool. Capitals are to be removed. Returns the
    /// letters of what stays.
    fn stays(script: &str, bridge: Bridge) -> String {
        stays_in(RoleOrder::Strict, script, bridge)
    }

    fn stays_in(order: RoleOrder, script: &str, bridge: Bridge) -> String {
        let message = |letter: char| {
            let role = match letter.to_ascii_lowercase() {
                's' => Role::System,
                'u' => Role::User,
                't' => Role::Tool,
                _ => Role::Assistant,
            };
            let (tokens, joined) = (Tokens(10), role == Role::Tool);
            Message {
                role,
                kind: Kind::of(role),
                digest: Digest::default(),
                tokens,
                size: tokens,
                masked: None,
                trimmed: None,
                joined,
            }
        };
        let mut messages: Vec<Message> = script.chars().map(message).collect();
        for index in 1..messages.len() {
            messages[index - 1].joined |= messages[index].joined && messages[index - 1].role.is_instruction();
        }
        let capitals = script.char_indices().filter(|(_, letter)| letter.is_uppercase());
        let removed = capitals.map(|(index, _)| index).collect();
        let removed = order.removable(&messages, removed, &[], bridge);
        let letters = script.char_indices().filter(|(index, _)| removed.binary_search(index).is_err());
        letters.map(|(_, letter)| letter.to_ascii_lowercase()).collect()
    }

    #[test]
    fn the_answer_before_a_user_message_stays() {
        for bridge in [Bridge::Beginning, Bridge::FirstGap] {
            assert_eq!(stays("suAUAUAua", bridge), "suaua");
            assert_eq!(stays("suctCTAUAua", bridge), "suctaua");
            assert_eq!(stays("suaUAUAua", bridge), "suaua", "in order already");
            assert_eq!(
                stays("suACTua", bridge),
                "suctua",
                "the request has a user message after results itself"
            );
            assert_eq!(stays("sUACTAua", bridge), "sua");
            assert_eq!(
                stays("suuAUua", bridge),
                "suuua",
                "the request has two user messages in a row itself"
            );
        }
    }

    #[test]
    fn instructions_stay_between_the_user_and_an_answer() {
        let stays = |script| stays_in(RoleOrder::StrictWithInstructions, script, Bridge::Beginning);
        assert_eq!(stays("UsAUau"), "sau", "the summary stands before them");
        assert_eq!(stays("UAUsAUau"), "sau");
        assert_eq!(stays("UsAUAu"), "sau", "the last answer stays");
        assert_eq!(stays("uaUsaua"), "uausaua", "the question stays");
        assert_eq!(stays("uAUsAUau"), "usau");
        assert_eq!(stays("uAUAUsau"), "usau");
        assert_eq!(stays("uaUCsTAUaua"), "uaucstaua", "a call stays with its result");
        assert_eq!(stays("uasAUAu"), "uasau", "they stand behind an answer already");
        assert_eq!(stays("uaAUsAUau"), "uausau");
        // The same without them, and where they do not count.
        assert_eq!(stays("uAUAua"), "uaua");
        assert_eq!(stays_in(RoleOrder::Strict, "UsAUAu", Bridge::Beginning), "su");
    }

    #[test]
    fn a_marker_stands_between_two_answers_and_a_summary_only_before_the_first() {
        assert_eq!(stays("suaUAUact", Bridge::FirstGap), "suaact");
        assert_eq!(stays("suaUAUact", Bridge::Beginning), "suauact");
        assert_eq!(stays("suaUAUauAUAu", Bridge::FirstGap), "suaauau", "only the first gap has a marker");
        assert_eq!(stays("sUAUact", Bridge::Beginning), "sact");
    }
}
