//! How long a client lets its history grow before it shortens it itself.
//!
//! Masking pays in the requests that follow it. A client that truncates or compacts its history whenever it reaches some length takes
//! the masked messages away, so a mask shortly before that is never paid back. The length at which a client has done so once is the
//! best guess for the next time.

use crate::Message;
use crate::turns::dialogue;

/// The length of a history, and the length at which its client shortens it. Lengths do not count instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    pub length: u32,
    /// The length that the history had when the client last shortened it; `None` if it has not, or has let it grow far beyond that.
    pub cut_at: Option<u32>,
}

impl Horizon {
    /// The horizon of a request, given that of the previous one.
    pub(crate) fn of(messages: &[Message], previous: Option<Horizon>) -> Horizon {
        let length = u32::try_from(dialogue(messages).count()).unwrap_or(u32::MAX);
        let Some(previous) = previous else { return Horizon { length, cut_at: None } };
        // Reminders and regenerated answers shorten a history by a few messages, which means nothing.
        let is_cut = length < previous.length / 4 * 3;
        let cut_at = if is_cut { Some(previous.length) } else { previous.cut_at };
        // It is never cut at exactly the same length.
        Horizon { length, cut_at: cut_at.filter(|&cut_at| length < cut_at + cut_at / 4) }
    }

    /// Whether the client has removed its last messages since an earlier request, and not only a reminder or two.
    pub(crate) fn is_rewound(&self, earlier: Horizon) -> bool {
        self.length.saturating_add(TRANSIENT) < earlier.length
    }

    /// How many more requests the messages of this one will be part of; `None` if that is unknown.
    pub(crate) fn requests_left(&self, previous: Option<Horizon>) -> Option<f64> {
        let left = self.cut_at?.saturating_sub(self.length);
        let growth = self.length.saturating_sub(previous.map_or(0, |previous| previous.length));
        Some(f64::from(left) / f64::from(growth.clamp(2, self.length.max(2))))
    }
}

/// The number of messages that clients add to the end of a request and do not repeat.
const TRANSIENT: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Digest, Kind, Role, Tokens};

    fn horizon(length: usize, previous: Option<Horizon>) -> Horizon {
        let message = Message {
            role: Role::User,
            kind: Kind::Speech,
            digest: Digest::default(),
            tokens: Tokens(1),
            size: Tokens(1),
            masked: None,
            trimmed: None,
            joined: false,
        };
        Horizon::of(&vec![message; length], previous)
    }

    #[test]
    fn a_client_is_expected_to_cut_where_it_did_before() {
        let long = horizon(60, None);
        assert_eq!(horizon(57, Some(long)).cut_at, None, "a few messages mean nothing");
        let cut = horizon(20, Some(long));
        assert_eq!((cut.length, cut.cut_at), (20, Some(60)));
        let later = horizon(22, Some(cut));
        assert_eq!((later.cut_at, later.requests_left(Some(cut))), (Some(60), Some(19.0)));
        assert_eq!(horizon(60, Some(later)).requests_left(Some(later)), Some(0.0), "any moment now");
        let beyond = horizon(75, Some(later));
        assert_eq!(
            (beyond.cut_at, beyond.requests_left(Some(later))),
            (None, None),
            "it does not, this time"
        );
    }
}
