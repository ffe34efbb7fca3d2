//! Walks the members of objects and the elements of arrays, and cuts out their values without reading them.
//!
//! Brackets, colons, commas and keys are checked strictly. A value is only cut out: its user walks it, decodes it, or calls
//! [`Value::check`], so that in the end every byte has been checked.

use crate::scan::{self, NoEnd};
use crate::text::text;
use crate::{MAX_DEPTH, Span, Unreadable};
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// A value that has been cut out but not read. It ends where `bytes` does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    bytes: &'a [u8],
    start: usize,
    /// The nesting depth that is left for this value.
    max_depth: usize,
}

/// A member of an object. `key_at` is the index of its key's opening quote.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_at: usize,
    pub(crate) value: Value<'a>,
}

impl<'a> Value<'a> {
    /// Takes all of `bytes` as one value. There must be no white space around it.
    pub(crate) fn whole(bytes: &'a [u8], max_depth: usize) -> Value<'a> {
        Value { bytes, start: 0, max_depth }
    }

    /// Takes everything from `start` on as one value.
    pub(crate) fn at(bytes: &'a [u8], start: usize, max_depth: usize) -> Value<'a> {
        Value { bytes, start, max_depth }
    }

    pub(crate) fn span(self) -> Span {
        Span::new(self.start, self.bytes.len())
    }

    pub(crate) fn raw(self) -> &'a [u8] {
        &self.bytes[self.start..]
    }

    pub(crate) fn first(self) -> Option<u8> {
        self.raw().first().copied()
    }

    /// Checks that the value is valid JSON. The parser keeps nothing and does not recurse.
    pub(crate) fn check(self) -> Result<(), Unreadable> {
        match serde_json::from_slice::<IgnoredAny>(self.raw()) {
            Ok(IgnoredAny) => Ok(()),
            Err(_) => Err(Unreadable::NotJson { at: self.start }),
        }
    }

    /// Returns the text of a string. Anything else is checked and gives `None`.
    pub(crate) fn text(self) -> Result<Option<Cow<'a, str>>, Unreadable> {
        if self.first() != Some(b'"') {
            return self.check().map(|()| None);
        }
        text(self.raw()).map(Some).ok_or(Unreadable::NotJson { at: self.start })
    }

    /// Returns a non-negative integer. Anything else is checked and gives `None`.
    pub(crate) fn integer(self) -> Result<Option<u64>, Unreadable> {
        match serde_json::from_slice::<u64>(self.raw()) {
            Ok(number) => Ok(Some(number)),
            Err(_) => self.check().map(|()| None),
        }
    }

    /// Calls `each` with every member, in order. The value must begin with `{`.
    pub(crate) fn members(
        self,
        mut each: impl FnMut(Member<'a>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        let mut cursor = Cursor::enter(self.bytes, self.start, self.max_depth);
        while let Some((key, key_at)) = cursor.next_key()? {
            each(Member { key, key_at, value: cursor.value()? })?;
        }
        self.must_end_at(cursor.at)
    }

    /// Calls `each` with the key and value of every member if the value is an object, and does nothing otherwise.
    pub(crate) fn members_of_object(
        self,
        mut each: impl FnMut(&str, Value<'a>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        if self.first() != Some(b'{') {
            return Ok(());
        }
        self.members(|member| each(&member.key, member.value))
    }

    /// Calls `each` with every element, in order. The value must begin with `[`.
    pub(crate) fn elements(
        self,
        mut each: impl FnMut(Value<'a>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        let mut cursor = Cursor::enter(self.bytes, self.start, self.max_depth);
        while cursor.next_element()? {
            each(cursor.value()?)?;
        }
        self.must_end_at(cursor.at)
    }

    /// The scanner does not distinguish `[` from `{`, so it can end a value elsewhere than the grammar does.
    fn must_end_at(self, at: usize) -> Result<(), Unreadable> {
        if at == self.bytes.len() { Ok(()) } else { Err(Unreadable::NotJson { at }) }
    }
}

/// Checks the size, encoding and first byte of a message that was cut out of a body.
pub(crate) fn whole_message(raw: &[u8]) -> Result<Value<'_>, Unreadable> {
    check_text(raw)?;
    if raw.first() != Some(&b'{') {
        return Err(Unreadable::NotJson { at: 0 });
    }
    // The body and its array of messages enclose every message.
    Ok(Value::whole(raw, MAX_DEPTH - 2))
}

/// Checks the size and the encoding of what was cut out of a body.
pub(crate) fn check_text(raw: &[u8]) -> Result<(), Unreadable> {
    if u32::try_from(raw.len()).is_err() {
        return Err(Unreadable::TooLarge);
    }
    if simdutf8::basic::from_utf8(raw).is_err() {
        return Err(Unreadable::NotUtf8);
    }
    Ok(())
}

/// Calls `each` with every object of a run that was cut out of an array, with the commas between them.
pub(crate) fn run_of_objects<'a>(
    raw: &'a [u8],
    mut each: impl FnMut(Value<'a>) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let mut cursor = Cursor { bytes: raw, at: 0, max_depth: MAX_DEPTH - 2, begun: false };
    loop {
        if cursor.peek() != Some(b'{') {
            return Err(cursor.broken());
        }
        each(cursor.value()?)?;
        cursor.at = skip_whitespace(raw, cursor.at);
        match cursor.peek() {
            None => return Ok(()),
            Some(b',') => cursor.at = skip_whitespace(raw, cursor.at + 1),
            Some(_) => return Err(cursor.broken()),
        }
    }
}

/// A place inside one object or array.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
    max_depth: usize,
    begun: bool,
}

impl<'a> Cursor<'a> {
    /// Starts after the opening bracket at `start`, which the caller has checked.
    pub(crate) fn enter(bytes: &'a [u8], start: usize, max_depth: usize) -> Cursor<'a> {
        Cursor { bytes, at: start + 1, max_depth: max_depth.saturating_sub(1), begun: false }
    }

    /// Returns the key of the next member and moves to its value. After the last member, moves past the closing bracket and returns
    /// `None`.
    pub(crate) fn next_key(&mut self) -> Result<Option<(Cow<'a, str>, usize)>, Unreadable> {
        if !self.next(b'}')? {
            return Ok(None);
        }
        let key_at = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.broken());
        }
        let end = scan::string_end(self.bytes, key_at).map_err(|error| self.no_end(error))?;
        let key = text(&self.bytes[key_at..end]).ok_or_else(|| self.broken())?;
        self.at = skip_whitespace(self.bytes, end);
        if self.peek() != Some(b':') {
            return Err(self.broken());
        }
        self.at = skip_whitespace(self.bytes, self.at + 1);
        Ok(Some((key, key_at)))
    }

    /// Moves to the next element. After the last one, moves past the closing bracket and returns `false`.
    pub(crate) fn next_element(&mut self) -> Result<bool, Unreadable> {
        self.next(b']')
    }

    /// Cuts out the value at the cursor and moves past it.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Unreadable> {
        let start = self.at;
        let end = match self.peek() {
            Some(b'{' | b'[') => {
                scan::container_end(self.bytes, start, self.max_depth).map_err(|error| self.no_end(error))?
            }
            Some(b'"') => scan::string_end(self.bytes, start).map_err(|error| self.no_end(error))?,
            _ => {
                let rest = &self.bytes[start..];
                let ends = |b: &u8| matches!(b, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
                start + rest.iter().position(ends).unwrap_or(rest.len())
            }
        };
        self.at = end;
        Ok(Value { bytes: &self.bytes[..end], start, max_depth: self.max_depth })
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self, close: u8) -> Result<bool, Unreadable> {
        self.at = skip_whitespace(self.bytes, self.at);
        let first = !std::mem::replace(&mut self.begun, true);
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at = skip_whitespace(self.bytes, self.at + 1);
                // The next call would accept a bracket after a comma as the end.
                if self.peek() == Some(close) { Err(self.broken()) } else { Ok(true) }
            }
            Some(_) if first => Ok(true),
            Some(_) | None => Err(self.broken()),
        }
    }

    pub(crate) fn broken(&self) -> Unreadable {
        Unreadable::NotJson { at: self.at }
    }

    fn no_end(&self, error: NoEnd) -> Unreadable {
        match error {
            NoEnd::Unfinished => self.broken(),
            NoEnd::TooDeep => Unreadable::TooDeep,
        }
    }
}

/// Returns the index of the next byte that is not JSON white space.
pub(crate) fn skip_whitespace(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r')).unwrap_or(rest.len())
}

/// Stores the value of a key, and fails if the key has occurred before.
pub(crate) fn once<T>(slot: &mut Option<T>, value: T, key: &'static str) -> Result<(), Unreadable> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Unreadable::Ambiguous(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(json: &str) -> Result<Vec<String>, Unreadable> {
        let mut keys = Vec::new();
        Value::whole(json.as_bytes(), 10).members(|member| {
            member.value.check()?;
            keys.push(member.key.into_owned());
            Ok(())
        })?;
        Ok(keys)
    }

    #[test]
    fn every_member_is_visited_in_order() {
        assert_eq!(keys("{}"), Ok(vec![]));
        assert_eq!(keys(" { }".trim()), Ok(vec![]));
        assert_eq!(
            keys("{\"a\" : 1 ,\n\"b\":[1,{}],\"\\u0063\":\"}\"\t}").unwrap(),
            ["a", "b", "c"].map(String::from)
        );
    }

    #[test]
    fn punctuation_is_checked_strictly() {
        for json in [
            "{",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1,,\"b\":2}",
            "{\"a\":1 \"b\":2}",
            "{\"a\"1}",
            "{\"a\":1]",
            "{\"a\":[1}}",
            "{\"a\":1}}",
            "{a:1}",
            "{\"a\n\":1}",
            "{\"a\":1}x",
            "{\"a\":01}",
            "{\"a\":tru}",
        ] {
            assert!(matches!(keys(json), Err(Unreadable::NotJson { .. })), "{json}");
        }
    }
}
