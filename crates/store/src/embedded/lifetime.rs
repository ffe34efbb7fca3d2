//! The time to live of conversations.

use crate::Clock;
use std::time::Duration;

/// The time to live, in milliseconds, and the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    ttl: u64,
    clock: Clock,
}

/// One reading of the clock, so that a whole transaction agrees on what has expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: u64,
    ttl: u64,
}

impl Lifetime {
    pub(super) fn new(ttl: Duration, clock: Clock) -> Lifetime {
        Lifetime { ttl: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX), clock }
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { now: (self.clock)(), ttl: self.ttl }
    }
}

/// The time of the last write of a conversation that was evicted. It has expired for every time to live.
pub(super) const EXPIRED: u64 = 0;

impl Moment {
    pub(super) fn is_alive(self, touched: u64) -> bool {
        touched != EXPIRED && touched.saturating_add(self.ttl) > self.now
    }

    /// The earliest write time that has not expired.
    pub(super) fn first_alive(self) -> u64 {
        match self.now.checked_sub(self.ttl) {
            Some(last_expired) => last_expired.saturating_add(1),
            None => EXPIRED + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_alive_and_first_alive_agree_at_the_boundary() {
        let moment = Moment { now: 1_000, ttl: 100 };
        assert_eq!(moment.first_alive(), 901);
        assert!(moment.is_alive(901) && !moment.is_alive(900));
        let forever = Moment { now: 1_000, ttl: u64::MAX };
        assert!(forever.first_alive() == 1 && forever.is_alive(1) && !forever.is_alive(EXPIRED));
    }
}
