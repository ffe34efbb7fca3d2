//! How many records the next attempt takes.
//!
//! A record that the database refuses is found by halves: of those that failed together, the first half is tried, then half of
//! what is left, until one alone fails. An attempt that takes too long is halved as well, and grows again when it goes well: a
//! slow database gets through with less at a time, where it would never finish with more.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stride {
    most: usize,
    next: usize,
    /// Of this many from the front, at least one is refused.
    suspects: usize,
}

impl Stride {
    pub(crate) fn new(most: usize) -> Stride {
        Stride { most, next: most, suspects: 0 }
    }

    /// Never none.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    pub(crate) fn went_well(&mut self, count: usize) {
        self.suspects = self.suspects.saturating_sub(count);
        self.next = if self.suspects > 0 {
            self.suspects.div_ceil(2)
        } else {
            self.next.saturating_mul(2).min(self.most)
        };
    }

    /// Whether the one that was tried is the one that is refused: it is to be left out.
    pub(crate) fn was_refused(&mut self, count: usize) -> bool {
        if count > 1 {
            self.suspects = count;
            self.next = count / 2;
            return false;
        }
        self.suspects = 0;
        self.next = self.most;
        true
    }

    pub(crate) fn took_too_long(&mut self, count: usize) {
        self.next = (count / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Attempts until all is written or left out, and what was left out.
    fn attempts(count: usize, refused: &[usize]) -> (usize, Vec<usize>) {
        let mut stride = Stride::new(512);
        let (mut front, mut attempts, mut left_out) = (0, 0, Vec::new());
        while front < count {
            let next = stride.next().min(count - front);
            attempts += 1;
            if refused.iter().any(|one| (front..front + next).contains(one)) {
                if stride.was_refused(next) {
                    left_out.push(front);
                    front += 1;
                }
            } else {
                stride.went_well(next);
                front += next;
            }
        }
        (attempts, left_out)
    }

    proptest! {
        #[test]
        fn those_that_are_refused_are_left_out_and_no_other(count in 1usize..2000, refused: Vec<prop::sample::Index>) {
            let mut refused: Vec<usize> = refused.iter().map(|one| one.index(count)).collect();
            refused.sort_unstable();
            refused.dedup();
            prop_assert_eq!(attempts(count, &refused).1, refused);
        }
    }

    #[test]
    fn one_in_many_is_found_by_halves() {
        for refused in [0, 1, 255, 256, 300, 511] {
            let (attempts, left_out) = attempts(512, &[refused]);
            assert_eq!(left_out, [refused]);
            assert!(attempts <= 22, "{attempts}");
        }
    }

    #[test]
    fn what_takes_too_long_is_halved_and_grows_again() {
        let mut stride = Stride::new(8);
        for expected in [4, 2, 1, 1] {
            stride.took_too_long(stride.next());
            assert_eq!(stride.next(), expected);
        }
        for expected in [2, 4, 8, 8] {
            stride.went_well(stride.next());
            assert_eq!(stride.next(), expected);
        }
    }
}
