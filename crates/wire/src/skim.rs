use memchr::memchr2;

/// Copies a JSON document that arrives in chunks, without the members that nobody reads and can be huge.
///
/// A document of which more than the cap remains is given up, except for its `type` and its `usage`, at the top or in the response or
/// message that it holds. It does not check the grammar: whoever reads the copy does.
#[derive(Clone, Debug)]
pub(crate) struct Skimmer {
    copy: Vec<u8>,
    cap: usize,
    /// The longest text that is copied. Of a longer one only the quotes are.
    longest_text: usize,
    text: Text,
    is_shortened: bool,
    rest: Rest,
    /// The containers that are open: a bit each, the innermost last, set for an object.
    open: u128,
    depth: u32,
    at: At,
    /// The beginning of the last key.
    key: Vec<u8>,
    /// Whether the next string of an object is a key.
    expects_key: bool,
    /// The depth of the member whose value is being left out.
    skipped: Option<u32>,
    /// What the present value is copied to besides, and the depth of its member.
    captured: Option<(Captured, u32)>,
    /// The member at the top whose value this is, if usage may be in it.
    envelope: Option<&'static str>,
    state: State,
}

/// A text that is being copied.
#[derive(Clone, Copy, Debug, Default)]
struct Text {
    /// Where in the copy it begins.
    start: usize,
    length: usize,
    is_cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Captured {
    Kind,
    Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Outside,
    InString { is_key: bool, is_escaped: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Everything so far is in the copy.
    Copying,
    /// The copy was too large. Only the usage is looked for.
    Searching,
    /// Nested too deeply, or something follows the end.
    Unreadable,
}

/// What remains of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Skimmed {
    /// `is_shortened` if texts are missing.
    Whole {
        document: Vec<u8>,
        is_shortened: bool,
    },
    Rest(Rest),
}

/// What is kept of a document that is too large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The value of its member `type`.
    kind: Vec<u8>,
    /// The member that holds the usage; `None` if it stands at the top.
    envelope: Option<&'static str>,
    usage: Vec<u8>,
}

impl Rest {
    /// A document that has nothing else.
    pub(crate) fn document(&self) -> Vec<u8> {
        let [kind, usage] = [&self.kind, &self.usage].map(|value| match &**value {
            [] => &b"null"[..],
            value => value,
        });
        match self.envelope {
            // The last event of a response always has one.
            None => [br#"{"type":"#, kind, br#","usage":"#, usage, br#","response":{}}"#].concat(),
            Some(name) => {
                [br#"{"type":"#, kind, b",\"", name.as_bytes(), br#"":{"usage":"#, usage, b"}}"].concat()
            }
        }
    }
}

/// The members that are left out: up to twenty alternatives for every token of the answer.
const SKIPPED: [&[u8]; 2] = [b"logprobs", b"top_logprobs"];
const USAGE: &[u8] = b"usage";
const KIND: &[u8] = b"type";
/// The members at the top of an event in which its usage can be.
const ENVELOPES: [&str; 2] = ["response", "message"];
const KEY_CAP: usize = 16;
const KIND_CAP: usize = 128;
const USAGE_CAP: usize = 64 * 1024;
const MAX_DEPTH: u32 = u128::BITS;

impl Skimmer {
    pub(crate) fn new(cap: usize, longest_text: usize) -> Skimmer {
        Skimmer {
            copy: Vec::new(),
            cap,
            longest_text,
            text: Text::default(),
            is_shortened: false,
            rest: Rest::default(),
            open: 0,
            depth: 0,
            at: At::Outside,
            key: Vec::new(),
            expects_key: false,
            skipped: None,
            captured: None,
            envelope: None,
            state: State::Copying,
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.copy.capacity() + self.rest.usage.capacity()
    }

    /// Reads the next bytes of the document.
    pub(crate) fn feed(&mut self, mut chunk: &[u8]) {
        while let Some(&first) = chunk.first() {
            if self.state == State::Unreadable {
                return;
            }
            let taken = match self.at {
                At::InString { is_key, is_escaped } => self.string(chunk, is_key, is_escaped),
                At::Outside => self.structure(first),
            };
            chunk = &chunk[taken..];
        }
    }

    /// What is left of the document; `None` if it is not complete.
    pub(crate) fn finish(&self) -> Option<Skimmed> {
        let is_complete = self.depth == 0 && self.at == At::Outside;
        match self.state {
            State::Copying if is_complete => {
                Some(Skimmed::Whole { document: self.copy.clone(), is_shortened: self.is_shortened })
            }
            State::Searching if is_complete => Some(Skimmed::Rest(self.rest.clone())),
            State::Copying | State::Searching | State::Unreadable => None,
        }
    }

    /// Continues inside a string and returns the number of bytes that it took.
    fn string(&mut self, chunk: &[u8], is_key: bool, is_escaped: bool) -> usize {
        let (taken, at) = if is_escaped {
            (1, At::InString { is_key, is_escaped: false })
        } else {
            match memchr2(b'"', b'\\', chunk) {
                None => (chunk.len(), At::InString { is_key, is_escaped }),
                Some(end) if chunk[end] == b'"' => (end + 1, At::Outside),
                Some(end) => (end + 1, At::InString { is_key, is_escaped: true }),
            }
        };
        if is_key {
            let text = &chunk[..taken - usize::from(at == At::Outside)];
            let room = KEY_CAP.saturating_sub(self.key.len()).min(text.len());
            self.key.extend_from_slice(&text[..room]);
        }
        self.at = at;
        if is_key {
            self.emit(&chunk[..taken]);
        } else {
            self.emit_text(&chunk[..taken], at == At::Outside);
        }
        taken
    }

    /// Copies a part of a text, unless the text is too long. `is_last` if it ends with the closing quote.
    fn emit_text(&mut self, part: &[u8], is_last: bool) {
        self.text.length += part.len();
        if self.text.length <= self.longest_text {
            return self.emit(part);
        }
        if !self.text.is_cut {
            self.text.is_cut = true;
            if self.state == State::Copying && self.skipped.is_none() {
                self.copy.truncate(self.text.start);
                self.is_shortened = true;
            }
        }
        if is_last {
            self.emit(b"\"");
        }
    }

    /// Takes one byte outside of strings.
    fn structure(&mut self, byte: u8) -> usize {
        match byte {
            b'"' => {
                let is_key = std::mem::take(&mut self.expects_key);
                if is_key {
                    self.key.clear();
                }
                self.at = At::InString { is_key, is_escaped: false };
                self.emit(b"\"");
                self.text = Text { start: self.copy.len(), ..Text::default() };
                return 1;
            }
            b'{' | b'[' => return self.enter(byte),
            b'}' | b']' => return self.leave(byte),
            b',' => {
                self.end_member();
                self.expects_key = self.is_in_object();
            }
            b':' => {
                self.emit(b":");
                self.begin_member();
                return 1;
            }
            _ => {}
        }
        self.emit(&[byte]);
        1
    }

    fn enter(&mut self, byte: u8) -> usize {
        if self.depth == MAX_DEPTH {
            self.state = State::Unreadable;
            return 1;
        }
        self.emit(&[byte]);
        self.open = self.open << 1 | u128::from(byte == b'{');
        self.depth += 1;
        self.expects_key = byte == b'{';
        1
    }

    fn leave(&mut self, byte: u8) -> usize {
        self.end_member();
        self.emit(&[byte]);
        match self.depth.checked_sub(1) {
            Some(depth) => self.depth = depth,
            None => self.state = State::Unreadable,
        }
        self.open >>= 1;
        self.expects_key = false;
        1
    }

    fn is_in_object(&self) -> bool {
        self.open & 1 == 1
    }

    /// The value of the last key follows.
    fn begin_member(&mut self) {
        if self.skipped.is_some() || !self.is_in_object() {
            return;
        }
        if SKIPPED.contains(&&*self.key) {
            self.emit(b"null");
            self.skipped = Some(self.depth);
            return;
        }
        match self.depth {
            1 if self.key == KIND => self.capture(Captured::Kind),
            1 if self.key == USAGE => {
                self.rest.envelope = None;
                self.capture(Captured::Usage);
            }
            1 => self.envelope = ENVELOPES.into_iter().find(|name| name.as_bytes() == self.key),
            2 if self.key == USAGE && self.envelope.is_some() => {
                self.rest.envelope = self.envelope;
                self.capture(Captured::Usage);
            }
            _ => {}
        }
    }

    fn capture(&mut self, captured: Captured) {
        match captured {
            Captured::Kind => self.rest.kind.clear(),
            Captured::Usage => self.rest.usage.clear(),
        }
        self.captured = Some((captured, self.depth));
    }

    /// A value is over: a comma or a closing bracket follows.
    fn end_member(&mut self) {
        if self.skipped == Some(self.depth) {
            self.skipped = None;
        }
        self.captured = self.captured.filter(|(_, depth)| *depth != self.depth);
        if self.depth == 1 {
            self.envelope = None;
        }
    }

    fn emit(&mut self, bytes: &[u8]) {
        let captured = match self.captured {
            Some((Captured::Kind, _)) => Some((&mut self.rest.kind, KIND_CAP)),
            Some((Captured::Usage, _)) => Some((&mut self.rest.usage, USAGE_CAP)),
            None => None,
        };
        if let Some((value, cap)) = captured
            && value.len() + bytes.len() <= cap
        {
            value.extend_from_slice(bytes);
        }
        if self.skipped.is_some() || self.state != State::Copying {
            return;
        }
        if self.copy.len() + bytes.len() > self.cap {
            self.state = State::Searching;
            self.copy = Vec::new();
        } else {
            self.copy.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
