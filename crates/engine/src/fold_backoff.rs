//! When a summary is tried again after one that failed or did not pay.

use crate::{Need, Timestamp, Tokens};

/// What a conversation's failed summaries mean for its next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldBackoff {
    cooling_until: Timestamp,
    /// The worth of the last summary that would not have shrunk the request.
    useless: Option<Tokens>,
}

/// How long a summarizer that failed is not asked again, in milliseconds.
const COOL_DOWN: u64 = 60_000;

impl FoldBackoff {
    /// Whether a summarizer failed a moment ago.
    #[must_use]
    pub fn is_cooling(&self, now: Timestamp) -> bool {
        now < self.cooling_until
    }

    /// Whether a summary is not worth trying: it would replace hardly more than the last one, which was useless.
    #[must_use]
    pub fn is_useless(&self, need: Need, worth: Tokens) -> bool {
        let is_near = |Tokens(tried)| (tried..tried.saturating_add(tried / 8)).contains(&worth.0);
        need == Need::Gain && self.useless.is_some_and(is_near)
    }

    /// After a summarizer failed.
    #[must_use]
    pub fn after_failure(self, now: Timestamp) -> FoldBackoff {
        FoldBackoff { cooling_until: Timestamp(now.0.saturating_add(COOL_DOWN)), ..self }
    }

    /// After a summary of messages that cost `worth` would not have shrunk the request.
    #[must_use]
    pub fn after_useless(self, worth: Tokens) -> FoldBackoff {
        FoldBackoff { useless: Some(worth), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_forgotten_after_a_minute() {
        let backoff = FoldBackoff::default().after_failure(Timestamp(5));
        assert!(!FoldBackoff::default().is_cooling(Timestamp(0)));
        assert!(backoff.is_cooling(Timestamp(60_004)) && !backoff.is_cooling(Timestamp(60_005)));
    }

    #[test]
    fn what_did_not_pay_is_tried_again_with_more_to_replace() {
        let backoff = FoldBackoff::default().after_useless(Tokens(800));
        let tries = |worth, need| !backoff.is_useless(need, Tokens(worth));
        assert_eq!([799, 800, 899, 900].map(|worth| tries(worth, Need::Gain)), [true, false, false, true]);
        assert!(tries(800, Need::Limit), "a limit is kept even if that saves nothing");
        assert!(!backoff.is_cooling(Timestamp(0)));
    }
}
