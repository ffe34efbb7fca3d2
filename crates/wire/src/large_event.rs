use crate::dialect::StreamState;
use crate::skim::{Skimmed, Skimmer};
use crate::{Answer, Dialect};

/// An event that is too large to be kept as it came. Its usage, its kind and how it ends are read all the same; long texts are not.
#[derive(Clone, Debug)]
pub(crate) struct LargeEvent {
    skimmer: Skimmer,
    /// The beginning of the current line, until it is known whether it is data.
    line: Vec<u8>,
    field: Field,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// The line so far is too short to tell.
    Unknown,
    Data,
    Other,
}

/// The longest text that is kept. Kinds, names and reasons are shorter.
const LONGEST_TEXT: usize = 4 * 1024;

/// So much of a line tells where its data begins: a space after the colon is not part of it.
const DATA: &[u8] = b"data: ";

impl LargeEvent {
    /// An event of which these lines of data have arrived, and this part of the next line.
    pub(crate) fn new(cap: usize, data: &[u8], line: &[u8]) -> LargeEvent {
        let mut skimmer = Skimmer::new(cap, LONGEST_TEXT);
        skimmer.feed(data);
        let mut event = LargeEvent { skimmer, line: Vec::new(), field: Field::Unknown };
        event.extend_line(line);
        event
    }

    /// About how much memory it takes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.skimmer.bytes() + self.line.capacity()
    }

    pub(crate) fn extend_line(&mut self, mut bytes: &[u8]) {
        if self.field == Field::Unknown {
            let (start, rest) = bytes.split_at(bytes.len().min(DATA.len() - self.line.len()));
            self.line.extend_from_slice(start);
            if self.line.len() < DATA.len() {
                return;
            }
            self.begin_data();
            bytes = rest;
        }
        if self.field == Field::Data {
            self.skimmer.feed(bytes);
        }
    }

    pub(crate) fn end_line(&mut self) {
        if self.field == Field::Unknown {
            self.begin_data();
        }
        if self.field == Field::Data {
            self.skimmer.feed(b"\n");
        }
        self.line.clear();
        self.field = Field::Unknown;
    }

    fn begin_data(&mut self) {
        self.field = match data_of(&self.line) {
            Some(data) => {
                self.skimmer.feed(data);
                Field::Data
            }
            None => Field::Other,
        };
    }

    /// Adds what is left of the event to the answer, which is incomplete then.
    pub(crate) fn read(&self, dialect: Dialect, answer: &mut Answer) -> StreamState {
        let (document, is_whole) = match self.skimmer.finish() {
            Some(Skimmed::Whole { document, is_shortened }) => (document, !is_shortened),
            Some(Skimmed::Rest(rest)) => (rest.document(), false),
            None => (Vec::new(), false),
        };
        // Known before it is read: nothing may be added to texts that are incomplete.
        answer.truncated |= !is_whole;
        dialect.read_event(&document, answer)
    }
}

/// The data in a line; `None` if it is another field or a comment.
pub(crate) fn data_of(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}
