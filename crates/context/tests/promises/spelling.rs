//! Writes JSON in many spellings: members in any order, white space anywhere, characters escaped or not.

use std::ops::Range;

/// A seeded random generator, so that a resent message is spelled the same way.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn space(&mut self) -> &'static str {
        self.pick(&["", "", "", "", " ", "\n  ", "\t", "\r\n"])
    }
}

/// Stands for a lone surrogate, which JSON can express and a Rust string cannot.
pub(crate) const LONE_SURROGATE: char = '\u{e000}';

/// The role of a member in the properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Content,
    Tag,
    Other,
}

pub(crate) type Member = (Part, &'static str, String);

/// An object, with the ranges that an edit may change.
#[derive(Clone, Debug)]
pub(crate) struct Spelled {
    pub(crate) text: String,
    /// The range of the content's value.
    pub(crate) content: Option<Range<usize>>,
    /// The range that is removed with the tag: up to the next member, or from the end of the previous one if it is the last.
    pub(crate) cut: Option<Range<usize>>,
}

impl Spelled {
    /// Returns the text without its tag, and with `instead` in place of its content.
    pub(crate) fn edited(&self, instead: Option<&str>) -> String {
        let content = instead.map(|instead| (self.content.clone().unwrap(), instead));
        let mut changes: Vec<_> = content.into_iter().chain(self.cut.clone().map(|cut| (cut, ""))).collect();
        changes.sort_by_key(|(place, _)| place.start);
        let mut out = String::new();
        let mut from = 0;
        for (place, with) in changes {
            out.push_str(&self.text[from..place.start]);
            out.push_str(with);
            from = place.end;
        }
        out + &self.text[from..]
    }
}

/// Writes an object with its members in random order.
pub(crate) fn object(dice: &mut Dice, mut members: Vec<Member>) -> Spelled {
    for last in (1..members.len()).rev() {
        members.swap(last, dice.below(last + 1));
    }
    let mut text = String::from("{");
    let mut content = None;
    // The range of each member, from the start of its key to the end of its value.
    let mut places: Vec<(Part, Range<usize>)> = Vec::new();
    for (index, (part, key, value)) in members.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(dice.space());
        let start = text.len();
        text.push_str(&key_of(dice, key));
        text.push_str(dice.space());
        text.push(':');
        text.push_str(dice.space());
        let at = text.len();
        text.push_str(value);
        if *part == Part::Content {
            content = Some(at..text.len());
        }
        places.push((*part, start..text.len()));
        text.push_str(dice.space());
    }
    text.push('}');
    let cut = places.iter().position(|(part, _)| *part == Part::Tag).map(|at| {
        let own = places[at].1.clone();
        match (places.get(at + 1), at.checked_sub(1)) {
            (Some((_, next)), _) => own.start..next.start,
            (None, Some(before)) => places[before].1.end..own.end,
            (None, None) => own,
        }
    });
    Spelled { text, content, cut }
}

fn key_of(dice: &mut Dice, key: &str) -> String {
    if !dice.one_in(12) {
        return format!("\"{key}\"");
    }
    let at = dice.below(key.len());
    format!("\"{}\\u{:04x}{}\"", &key[..at], key.as_bytes()[at], &key[at + 1..])
}

/// Writes a string, with some characters escaped unnecessarily.
pub(crate) fn string(dice: &mut Dice, text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str(dice.pick(&["\\t", "\\u0009"])),
            '/' => out.push_str(dice.pick(&["/", "\\/"])),
            LONE_SURROGATE => out.push_str(dice.pick(&["\\ud800", "\\uDFFF"])),
            letter if letter < ' ' || dice.one_in(60) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            letter => out.push(letter),
        }
    }
    out + "\""
}
