//! The number of records in the next attempt.
//!
//! A record that the database rejects is found by bisection: of a batch that failed, the first half is tried, then half of the
//! rest, until a single record fails. An attempt that times out is halved too, and grows again on success: a slow database may
//! finish small batches where it would never finish large ones.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchSize {
    max: usize,
    next: usize,
    /// At least one of this many records at the front is rejected.
    suspects: usize,
}

impl BatchSize {
    pub(crate) fn new(max: usize) -> BatchSize {
        BatchSize { max, next: max, suspects: 0 }
    }

    /// At least 1.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    pub(crate) fn succeeded(&mut self, count: usize) {
        self.suspects = self.suspects.saturating_sub(count);
        self.next = if self.suspects > 0 {
            self.suspects.div_ceil(2)
        } else {
            self.next.saturating_mul(2).min(self.max)
        };
    }

    /// Notes that the database rejected an attempt. Returns whether the attempt was a single record, which must be skipped.
    pub(crate) fn was_rejected(&mut self, count: usize) -> bool {
        if count > 1 {
            self.suspects = count;
            self.next = count / 2;
            return false;
        }
        self.suspects = 0;
        self.next = self.max;
        true
    }

    pub(crate) fn timed_out(&mut self, count: usize) {
        self.next = (count / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Simulates writing `count` records. Returns the number of attempts and the skipped records.
    fn attempts(count: usize, rejected: &[usize]) -> (usize, Vec<usize>) {
        let mut size = BatchSize::new(512);
        let (mut front, mut attempts, mut skipped) = (0, 0, Vec::new());
        while front < count {
            let next = size.next().min(count - front);
            attempts += 1;
            if rejected.iter().any(|record| (front..front + next).contains(record)) {
                if size.was_rejected(next) {
                    skipped.push(front);
                    front += 1;
                }
            } else {
                size.succeeded(next);
                front += next;
            }
        }
        (attempts, skipped)
    }

    proptest! {
        #[test]
        fn exactly_the_rejected_records_are_skipped(count in 1usize..2000, rejected: Vec<prop::sample::Index>) {
            let mut rejected: Vec<usize> = rejected.iter().map(|index| index.index(count)).collect();
            rejected.sort_unstable();
            rejected.dedup();
            prop_assert_eq!(attempts(count, &rejected).1, rejected);
        }
    }

    #[test]
    fn a_single_rejected_record_is_found_by_bisection() {
        for rejected in [0, 1, 255, 256, 300, 511] {
            let (attempts, skipped) = attempts(512, &[rejected]);
            assert_eq!(skipped, [rejected]);
            assert!(attempts <= 22, "{attempts}");
        }
    }

    #[test]
    fn a_timeout_halves_the_size_and_success_doubles_it() {
        let mut size = BatchSize::new(8);
        for expected in [4, 2, 1, 1] {
            size.timed_out(size.next());
            assert_eq!(size.next(), expected);
        }
        for expected in [2, 4, 8, 8] {
            size.succeeded(size.next());
            assert_eq!(size.next(), expected);
        }
    }
}
