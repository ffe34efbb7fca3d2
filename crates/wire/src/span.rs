use std::ops::Range;

/// A range of bytes. Two 32-bit indexes keep the outline of 100,000 messages below a megabyte.
///
/// [`split`](crate::split()) refuses bodies of 4 GiB and more, so 32 bits always suffice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The caller has checked that `end` fits 32 bits.
    pub(crate) fn new(start: usize, end: usize) -> Span {
        debug_assert!(start <= end && u32::try_from(end).is_ok());
        Span { start: start as u32, end: end as u32 }
    }

    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns the span of `bytes`, which must be the bytes that it was made from.
    #[must_use]
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.range()]
    }
}
