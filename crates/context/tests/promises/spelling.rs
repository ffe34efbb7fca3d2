//! JSON as clients write it: members in any order, white space anywhere, characters escaped or not.

use std::ops::Range;

/// A source of choices. The same seed makes the same choices, so that a message is spelled alike whenever it is resent.
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

/// Stands for half a surrogate pair, which JSON can spell and Rust cannot hold.
pub(crate) const LONE_SURROGATE: char = '\u{e000}';

/// What a member is to the promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Content,
    Tag,
    Other,
}

pub(crate) type Member = (Part, &'static str, String);

/// An object, with the places that an edit may touch.
#[derive(Clone, Debug)]
pub(crate) struct Spelled {
    pub(crate) text: String,
    /// The value of the content.
    pub(crate) content: Option<Range<usize>>,
    /// What goes if the tag goes: up to the next member, or from the end of the one before if none follows.
    pub(crate) cut: Option<Range<usize>>,
}

impl Spelled {
    /// The text with its tag gone, and with `instead` in place of its content.
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

/// Writes an object with its members in any order.
pub(crate) fn object(dice: &mut Dice, mut members: Vec<Member>) -> Spelled {
    for last in (1..members.len()).rev() {
        members.swap(last, dice.below(last + 1));
    }
    let mut text = String::from("{");
    let mut content = None;
    // Of each member, whether it is the tag, where its key begins and where its value ends.
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

/// Writes a string, with a character escaped here and there that need not be.
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
