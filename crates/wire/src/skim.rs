use memchr::memchr2;

/// Copies a JSON document that arrives in chunks, without the members that nobody reads and can be huge.
///
/// A document of which more than the cap remains is given up, except for its top-level `usage`. It does not check the grammar:
/// whoever reads the copy does.
#[derive(Clone, Debug)]
pub(crate) struct Skimmer {
    copy: Vec<u8>,
    cap: usize,
    usage: Vec<u8>,
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
    is_usage: bool,
    state: State,
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
    Whole(Vec<u8>),
    /// Only the value of its member `usage`, which may be absent.
    Usage(Vec<u8>),
}

/// The members that are left out: up to twenty alternatives for every token of the answer.
const SKIPPED: [&[u8]; 2] = [b"logprobs", b"top_logprobs"];
const USAGE: &[u8] = b"usage";
const KEY_CAP: usize = 16;
const USAGE_CAP: usize = 64 * 1024;
const MAX_DEPTH: u32 = u128::BITS;

impl Skimmer {
    pub(crate) fn new(cap: usize) -> Skimmer {
        Skimmer {
            copy: Vec::new(),
            cap,
            usage: Vec::new(),
            open: 0,
            depth: 0,
            at: At::Outside,
            key: Vec::new(),
            expects_key: false,
            skipped: None,
            is_usage: false,
            state: State::Copying,
        }
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
            State::Copying if is_complete => Some(Skimmed::Whole(self.copy.clone())),
            State::Searching if is_complete => Some(Skimmed::Usage(self.usage.clone())),
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
        self.emit(&chunk[..taken]);
        taken
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
        } else if self.depth == 1 && self.key == USAGE {
            self.usage.clear();
            self.is_usage = true;
        }
    }

    /// A value is over: a comma or a closing bracket follows.
    fn end_member(&mut self) {
        if self.skipped == Some(self.depth) {
            self.skipped = None;
        }
        if self.depth == 1 {
            self.is_usage = false;
        }
    }

    fn emit(&mut self, bytes: &[u8]) {
        if self.is_usage && self.usage.len() + bytes.len() <= USAGE_CAP {
            self.usage.extend_from_slice(bytes);
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn skim(cap: usize, chunks: &[&[u8]]) -> Option<Skimmed> {
        let mut skimmer = Skimmer::new(cap);
        chunks.iter().for_each(|chunk| skimmer.feed(chunk));
        skimmer.finish()
    }

    fn whole(text: &str) -> Option<Skimmed> {
        Some(Skimmed::Whole(text.as_bytes().to_vec()))
    }

    #[test]
    fn only_what_nobody_reads_is_left_out() {
        let document = r#"{"choices":[{"logprobs":{"content":[{"token":"\"}","top_logprobs":[1,[2]]}]},"index":0},{"logprobs":null}],
            "logprobs" : "a,b}" , "a":{"b":"logprobs","c":[{}]},"usage":{"prompt_tokens":1}}"#;
        let expected = r#"{"choices":[{"logprobs":null,"index":0},{"logprobs":null}],
            "logprobs" :null, "a":{"b":"logprobs","c":[{}]},"usage":{"prompt_tokens":1}}"#;
        assert_eq!(skim(1000, &[document.as_bytes()]), whole(expected));
    }

    #[test]
    fn the_usage_of_a_huge_document_is_found() {
        let document = format!(
            r#"{{"a":{{"usage":1}},"b":["usage"],"text":"{}","usage":{{"prompt_tokens":7}},"z":1}}"#,
            "x".repeat(5000)
        );
        let usage = Skimmed::Usage(br#"{"prompt_tokens":7}"#.to_vec());
        assert_eq!(skim(1000, &[document.as_bytes()]), Some(usage));
    }

    #[test]
    fn an_incomplete_document_is_nothing() {
        for document in [r#"{"a":1"#, r#"{"a":"b"#, "{}}", &"[".repeat(200)] {
            assert_eq!(skim(1000, &[document.as_bytes()]), None, "{document}");
        }
    }

    /// Any JSON, with the keys that matter among others.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            prop::sample::select(vec!["\"", "\\", "}\"", "usage", "logprobs"]).prop_map(Value::from),
        ];
        let key = prop::sample::select(vec!["usage", "logprobs", "top_logprobs", "a", "\"}", "b\\"]);
        leaf.prop_recursive(6, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..5).prop_map(|members| members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()),
            ]
        })
    }

    fn without_skipped(value: Value) -> Value {
        match value {
            Value::Object(members) => members
                .into_iter()
                .map(|(key, value)| {
                    let is_skipped = SKIPPED.contains(&key.as_bytes());
                    (key, if is_skipped { Value::Null } else { without_skipped(value) })
                })
                .collect(),
            Value::Array(elements) => elements.into_iter().map(without_skipped).collect(),
            other => other,
        }
    }

    proptest! {
        #[test]
        fn the_copy_is_the_document_without_skipped_members(value in json(), is_pretty: bool, cut in 0usize..200) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
            let skimmed = skim(1 << 20, &[first, second]);
            let Some(Skimmed::Whole(copy)) = skimmed else { panic!("{skimmed:?}") };
            prop_assert_eq!(serde_json::from_slice::<Value>(&copy).unwrap(), without_skipped(value));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(&b"{}[]:,\"\\ul"[..])], 0..400), cap in 0usize..200) {
            skim(cap, &[&bytes]);
        }
    }
}
