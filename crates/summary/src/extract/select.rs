//! Selects the statements that tell the most for their length.
//!
//! A statement is worth the terms that nothing selected before it has told yet, per token. So what is said twice is kept once, and
//! everything that is talked about gets its place.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::cue::Cue;
use super::term::Lexicon;
use super::unit::{Origin, Unit};
use crate::Section;

/// What is left of a term's worth each time that it has been told.
const TOLD: f64 = 0.4;
/// A statement of which less is new repeats what is there.
const NEWS: f64 = 0.2;
/// How much more than the earliest statement the latest one counts. More would lose too many of the facts that are said once.
const RECENT: f64 = 0.1;
/// A longer correction tells other things, too, or is none.
const MAX_PLAIN_WORDS: usize = 12;
/// Added to every length, because a bullet costs something, too.
const BULLET: f64 = 2.0;

struct Rated {
    value: f64,
    unit: usize,
}

/// Returns the selected statements in order. `newer` names the later version of a statement, which is selected before it.
pub(super) fn select(units: &[Unit], newer: &[Option<usize>], lexicon: &Lexicon, room: f64) -> Vec<usize> {
    let weights: Vec<f64> = (0..lexicon.len()).map(|id| lexicon.weight(id, units.len())).collect();
    let last = units.last().map_or(1, |unit| unit.place).max(1) as f64;
    let mut told = vec![0_i32; lexicon.len()];
    let worth = |unit: &Unit, told: &[i32]| -> f64 {
        let content = unit.terms.content.iter().map(|&id| weights[id] * TOLD.powi(told[id]));
        content.sum::<f64>() * importance(unit) * (1.0 + RECENT * unit.place as f64 / last)
    };
    let rate = |at: usize, told: &[i32]| worth(&units[at], told) / (tokens(&units[at].text) + BULLET);
    let nothing = vec![0; lexicon.len()];
    let mut heap: BinaryHeap<Rated> = (0..units.len())
        .filter(|&at| !units[at].is_gone)
        .map(|unit| Rated { value: rate(unit, &nothing), unit })
        .collect();
    let mut chosen = vec![false; units.len()];
    let mut room = room;
    // The task comes first, even where nothing else has room, and what has become of it before it.
    let is_task = |at: &usize| units[*at].section == Section::Goals && !units[*at].is_gone;
    if let Some(task) = (0..units.len()).find(is_task) {
        let later = newer[task].filter(|&later| !units[later].is_gone);
        for at in later.into_iter().chain([task]) {
            take(at, units, &mut chosen, &mut told, &mut room);
        }
    }
    // Each statement is rated anew when its turn comes. The bound is never reached but by texts made for it.
    let mut steps = units.len() * 12;
    while let Some(Rated { value, unit: at }) = heap.pop() {
        let length = tokens(&units[at].text) + BULLET;
        if chosen[at] || length > room {
            continue;
        }
        let now = rate(at, &told);
        let is_behind = heap.peek().is_some_and(|next| now < next.value);
        if is_behind && now < value && steps > 0 {
            steps -= 1;
            heap.push(Rated { value: now, unit: at });
            continue;
        }
        if now < NEWS * rate(at, &nothing) {
            continue;
        }
        let later = newer[at].filter(|&later| !chosen[later] && !units[later].is_gone);
        if let Some(later) = later {
            // The earlier one does not stand alone.
            if tokens(&units[later].text) + BULLET <= room {
                take(later, units, &mut chosen, &mut told, &mut room);
                heap.push(Rated { value: rate(at, &told), unit: at });
            }
            continue;
        }
        take(at, units, &mut chosen, &mut told, &mut room);
    }
    (0..units.len()).filter(|&at| chosen[at]).collect()
}

fn take(at: usize, units: &[Unit], chosen: &mut [bool], told: &mut [i32], room: &mut f64) {
    chosen[at] = true;
    *room -= tokens(&units[at].text) + BULLET;
    units[at].terms.content.iter().for_each(|&id| told[id] += 1);
}

/// How much a statement counts for what it is and for who makes it.
fn importance(unit: &Unit) -> f64 {
    let speaker = match unit.origin {
        Origin::User => 1.0,
        // It may have been an assistant's.
        Origin::Earlier => 0.9,
        Origin::Assistant => 0.5,
        Origin::Tool => 0.3,
    };
    let has_cue = [Cue::Change, Cue::Revoke, Cue::Reject].iter().any(|cue| unit.terms.found.has(*cue));
    let kind = match unit.section {
        Section::Goals => 3.0,
        // Without it, what it corrects would be believed.
        _ if unit.corrects && unit.terms.words <= MAX_PLAIN_WORDS => 5.0,
        _ if unit.corrects => 3.0,
        Section::Decisions if has_cue && unit.terms.words <= MAX_PLAIN_WORDS => 4.5,
        Section::Decisions if has_cue => 3.0,
        Section::Decisions | Section::ActionItems => 1.5,
        Section::KeyFacts | Section::Artifacts => 1.0,
        Section::OpenQuestions => 0.6,
    };
    speaker * kind
}

/// The approximate length of a text in tokens.
pub(super) fn tokens(text: &str) -> f64 {
    let length = |c: char| match c {
        'a'..='z' | 'A'..='Z' | ' ' => 0.21,
        '0'..='9' => 0.35,
        '\0'..='\u{7f}' => 0.4,
        '\u{80}'..='\u{2e7f}' => 0.45,
        _ => 0.8,
    };
    text.chars().map(length).sum()
}

impl PartialEq for Rated {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rated {}

impl PartialOrd for Rated {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rated {
    /// Of two that are worth the same, the later one comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(self.unit.cmp(&other.unit))
    }
}
