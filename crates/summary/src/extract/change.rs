//! What has been replaced by something said later.
//!
//! A statement is taken as replaced only if a later one of the user says so and is about the same matter: it has a cue for a change
//! (`instead`, `verschoben`, `改成`), shares most of its subject with the earlier one, and names another value of the same kind. If
//! in doubt, both stay: the rendering says that the later of two holds. A correction that cannot stand alone (`Make it 45.`) is kept
//! together with what it corrects.

use std::collections::HashMap;

use super::cue::Cue;
use super::term::{Lexicon, TermId};
use super::unit::{Origin, Unit};
use crate::Section;

/// Of the statements with a common term, only this many of the latest are compared.
const MAX_COMPARED: usize = 48;
/// And no more than this many of the latest altogether, however many terms a statement has.
const MAX_RELATED: usize = 4 * MAX_COMPARED;
/// A bare correction is about one of this many statements of the user before it.
const REACH: usize = 4;
/// The share of the subject that two statements about one matter have in common.
const SAME_MATTER: f64 = 0.5;
/// The same in relation to the longer of the two.
const LEAST_COMMON: f64 = 0.2;
const SAME_STATEMENT: f64 = 0.6;
/// A longer statement says more than what is given up of it.
const MAX_REVOKED_WORDS: usize = 10;
/// Who settles something in passing does so in a few words.
const MAX_SETTLING_WORDS: usize = 10;
const MAX_SETTLING_TERMS: usize = 4;
/// What a matter is called is said where it is settled, where it is settled anew, and little more.
const MAX_OWN_TEXTS: u32 = 3;
/// In a longer statement, what is denied is one thing among many.
const MAX_DENIAL_WORDS: usize = 16;

/// Marks what is gone, and returns for each statement the latest one that says the same of another value.
pub(super) fn resolve(units: &mut [Unit], lexicon: &Lexicon) -> Vec<Option<usize>> {
    let mut newer = vec![None; units.len()];
    let mut with_term: HashMap<TermId, Vec<usize>> = HashMap::new();
    let mut assigned: HashMap<String, usize> = HashMap::new();
    for at in 0..units.len() {
        if units[at].origin == Origin::Tool || units[at].is_question {
            continue;
        }
        let related = related(units, at, &with_term);
        if units[at].is_by_user() {
            let is_correction = is_correction(&units[at]);
            let is_said_now = units[at].origin == Origin::User;
            let has_replaced = is_correction
                && is_said_now
                && (replace(units, &mut newer, at, &related, lexicon) || attach(units, at, lexicon));
            if units[at].section == Section::Decisions && !has_replaced {
                for before in touched(units, at, &related, lexicon) {
                    newer[before] = Some(at);
                    units[at].corrects |= is_correction || is_said_again(units, before, at, lexicon);
                }
            }
            if denies(&units[at]) && replace(units, &mut newer, at, &related, lexicon) {
                units[at].section = Section::Decisions;
            }
            if let Some(name) = assigned_name(&units[at].text)
                && let Some(before) = assigned.insert(name, at)
            {
                units[before].is_gone = true;
            }
        }
        for &before in &related {
            if units[before].is_by_user() && is_restated(units, before, at, lexicon) {
                newer[before] = Some(at);
            }
            if is_said_again(units, before, at, lexicon) {
                newer[before] = Some(at);
                units[at].corrects = true;
            }
        }
        if units[at].origin == Origin::Assistant && corrects(&units[at]) {
            for before in replaced_by(units, at, &related, lexicon) {
                newer[before] = Some(at);
            }
        }
        for id in &units[at].terms.content {
            let list = with_term.entry(*id).or_default();
            list.push(at);
        }
    }
    newer
}

fn is_correction(unit: &Unit) -> bool {
    unit.section == Section::Decisions
        && [Cue::Change, Cue::Revoke, Cue::Reject].iter().any(|cue| unit.terms.found.has(*cue))
}

/// Whether a statement corrects another one if it denies just that: `Teal then, not slate.`
fn denies(unit: &Unit) -> bool {
    unit.origin == Origin::User
        && !is_correction(unit)
        && unit.terms.found.has(Cue::Deny)
        && unit.terms.words <= MAX_DENIAL_WORDS
}

/// The earlier statements that a decision may be about. They are not told without it.
fn touched(units: &[Unit], at: usize, related: &[usize], lexicon: &Lexicon) -> Vec<usize> {
    let is_touched = |before: &usize| {
        units[*before].is_by_user()
            && (units[*before].place < units[at].place || units[at].place == 0)
            && overlap(&units[*before], &units[at], lexicon, units.len(), f64::min) >= SAME_MATTER
    };
    related.iter().copied().filter(is_touched).collect()
}

/// Returns the earlier statements that share a term, the latest first.
fn related(units: &[Unit], at: usize, with_term: &HashMap<TermId, Vec<usize>>) -> Vec<usize> {
    let mut related: Vec<usize> = Vec::new();
    for id in &units[at].terms.content {
        let list = with_term.get(id).map_or(&[][..], Vec::as_slice);
        related.extend(list.iter().rev().take(MAX_COMPARED));
    }
    related.sort_unstable_by(|one, other| other.cmp(one));
    related.dedup();
    related.retain(|&before| !units[before].is_gone);
    related.truncate(MAX_RELATED);
    related
}

fn corrects(unit: &Unit) -> bool {
    [Cue::Change, Cue::Revoke].iter().any(|cue| unit.terms.found.has(*cue))
}

/// The earlier statements that this one corrects. An assistant's correction stands beside them.
fn replaced_by(units: &[Unit], at: usize, related: &[usize], lexicon: &Lexicon) -> Vec<usize> {
    let later = &units[at];
    let is_replaced = |before: &usize| {
        let earlier = &units[*before];
        let is_same_matter = || {
            overlap(earlier, later, lexicon, units.len(), f64::min) >= SAME_MATTER
                && overlap(earlier, later, lexicon, units.len(), f64::max) >= least_common(earlier)
        };
        conflicts(earlier, later, lexicon) && (names_what_it_denies(earlier, later) || is_same_matter())
    };
    related.iter().copied().filter(is_replaced).collect()
}

/// The task is about the whole conversation, so that much of what is settled later shares words with it.
fn least_common(earlier: &Unit) -> f64 {
    if earlier.section == Section::Goals { SAME_MATTER } else { LEAST_COMMON }
}

/// Marks the statement that this one corrects, and what others have echoed of it. Returns whether there is one that it may correct.
///
/// Of several, it corrects the one that it has most in common with: `Room 4 has 130 seats now` leaves room 5 as it is. The others are not
/// told without it.
fn replace(
    units: &mut [Unit],
    newer: &mut [Option<usize>],
    at: usize,
    related: &[usize],
    lexicon: &Lexicon,
) -> bool {
    let texts = units.len();
    let mut alike = replaced_by(units, at, related, lexicon);
    alike.retain(|&before| units[before].is_by_user());
    alike.iter().for_each(|&before| newer[before] = Some(at));
    if let Some(before) = closest(units, at, &alike, lexicon) {
        for &echo in related {
            let is_echo = units[echo].origin == Origin::Assistant
                && overlap(&units[echo], &units[before], lexicon, texts, f64::min) > SAME_STATEMENT;
            let is_news =
                units[echo].terms.numbers.iter().any(|number| !units[before].terms.numbers.contains(number));
            units[echo].is_gone |= is_echo && !is_news;
        }
        units[before].is_gone = true;
    }
    units[at].corrects |= !alike.is_empty();
    !alike.is_empty()
}

/// Of the statements that one may correct, the one that it has most in common with, numbers and names included. `None` if several things
/// have as much. Of one thing said several times, the latest.
fn closest(units: &[Unit], at: usize, alike: &[usize], lexicon: &Lexicon) -> Option<usize> {
    let later = &units[at].terms.content;
    let weigh = |ids: &mut dyn Iterator<Item = TermId>| -> f64 {
        ids.map(|id| lexicon.distinction(id, units.len())).sum()
    };
    let likeness = |before: usize| {
        let earlier = &units[before].terms.content;
        let common = weigh(&mut earlier.iter().copied().filter(|id| later.contains(id)));
        let whole = weigh(&mut earlier.iter().copied()).max(weigh(&mut later.iter().copied()));
        let is_named = names_what_it_denies(&units[before], &units[at]);
        f64::from(u8::from(is_named)) + common / whole.max(f64::MIN_POSITIVE)
    };
    let rated: Vec<(usize, f64)> = alike.iter().map(|&before| (before, likeness(before))).collect();
    let best = rated.iter().map(|(_, likeness)| *likeness).fold(0.0, f64::max);
    let mut closest = rated.iter().filter(|(_, likeness)| *likeness >= best).map(|(before, _)| *before);
    let latest = closest.next()?;
    let subject = |unit: &Unit| -> Vec<TermId> {
        unit.terms.content.iter().copied().filter(|id| !lexicon.is_number(*id)).collect()
    };
    let is_same = |other: usize| {
        subject(&units[other]) == subject(&units[latest]) && units[other].terms.numbers.len() <= 1
    };
    closest.all(is_same).then_some(latest)
}

/// Keeps a correction that says nothing of its subject together with what it corrects. Returns whether there is such a thing.
fn attach(units: &mut [Unit], at: usize, lexicon: &Lexicon) -> bool {
    let later = &units[at];
    let is_bare = later.terms.content.len() <= later.terms.numbers.len() + 1
        || (later.terms.found.has(Cue::Reject) && later.terms.words <= 6 && later.terms.content.len() <= 3);
    if !is_bare {
        return false;
    }
    let by_user: Vec<usize> = (at.saturating_sub(MAX_COMPARED)..at)
        .rev()
        .filter(|&one| units[one].origin == Origin::User)
        .take(REACH)
        .collect();
    let is_target = |unit: &&usize| {
        let earlier = &units[**unit];
        let is_latest = || by_user.first() == Some(unit) && earlier.terms.words <= MAX_SETTLING_WORDS;
        let names = || earlier.terms.content.iter().any(|id| lexicon.is_name(*id));
        let settles = earlier.section == Section::Decisions
            || !earlier.terms.numbers.is_empty()
            || (later.terms.content.len() <= 2 && names())
            || is_latest();
        earlier.origin == Origin::User
            && !earlier.is_gone
            && !earlier.is_question
            && settles
            && earlier.place < later.place
    };
    let Some(&before) = by_user.iter().find(is_target) else { return false };
    let shares_cue = units[before].terms.cues.iter().any(|cue| later.terms.cues.contains(cue));
    let (text, rests_on) = (units[before].text.clone(), units[before].rests_on.clone());
    // `Use tabs.`, then `No, use spaces.`: it stands alone.
    let stands_alone = later.terms.found.has(Cue::Reject) && shares_cue && !later.terms.content.is_empty();
    units[before].is_gone = true;
    units[at].corrects = true;
    if stands_alone {
        return true;
    }
    let content = units[before].terms.content.clone();
    let later = &mut units[at];
    later.text = format!("{} (before: {})", later.text, text.trim_end_matches(['.', '。']));
    later.rests_on.extend(rests_on);
    later.terms.content.extend(content);
    later.terms.content.sort_unstable();
    later.terms.content.dedup();
    true
}

/// The share of the subject that two statements have in common, in relation to the lesser or the greater of the two.
fn overlap(one: &Unit, other: &Unit, lexicon: &Lexicon, texts: usize, of: fn(f64, f64) -> f64) -> f64 {
    let subject = |unit: &Unit| -> Vec<TermId> {
        unit.terms.content.iter().copied().filter(|id| !lexicon.is_number(*id)).collect()
    };
    let weigh = |ids: &[TermId]| -> f64 { ids.iter().map(|id| lexicon.distinction(*id, texts)).sum() };
    let (one, other) = (subject(one), subject(other));
    let common: Vec<TermId> = one.iter().copied().filter(|id| other.contains(id)).collect();
    let whole = of(weigh(&one), weigh(&other));
    if whole > 0.0 { weigh(&common) / whole } else { 0.0 }
}

/// Whether the later statement names another value of the same kind: a number for a number, a choice for a choice.
fn conflicts(earlier: &Unit, later: &Unit, lexicon: &Lexicon) -> bool {
    let (old, new) = (&earlier.terms.numbers, &later.terms.numbers);
    let gives_up = later.terms.found.has(Cue::Revoke) || later.terms.found.has(Cue::Deny);
    if !old.is_empty() {
        let revokes = gives_up && old.iter().all(|number| new.contains(number));
        return revokes || new.iter().any(|number| !old.contains(number));
    }
    let is_value = |id: &TermId| lexicon.is_name(*id) || lexicon.is_identifier(*id);
    let common = |id: &&TermId| later.terms.content.contains(id);
    // What is given up is named, or the subject is, with another choice.
    if gives_up && earlier.terms.words <= MAX_REVOKED_WORDS {
        let named = earlier.terms.content.iter().filter(common).count();
        return named * 2 >= earlier.terms.content.len() || names_what_it_denies(earlier, later);
    }
    let shares_subject = earlier.terms.content.iter().filter(common).any(|id| !is_value(id));
    let is_news = later.terms.content.iter().any(|id| !earlier.terms.content.contains(id));
    let chooses = earlier.section == Section::Decisions || earlier.terms.content.iter().any(is_value);
    new.is_empty() && shares_subject && is_news && chooses
}

/// Whether the earlier statement says all that the later one gives up by name: `Put slate down for the header.`, `Teal, not slate.`
fn names_what_it_denies(earlier: &Unit, later: &Unit) -> bool {
    let denied = &later.terms.denied;
    !denied.is_empty() && denied.iter().all(|id| earlier.terms.content.contains(id))
}

/// Whether two statements differ in little more than a value.
fn is_restated(units: &[Unit], before: usize, at: usize, lexicon: &Lexicon) -> bool {
    let (earlier, later) = (&units[before], &units[at]);
    earlier.place < later.place
        && later.is_by_user()
        && earlier.terms.content != later.terms.content
        && overlap(earlier, later, lexicon, units.len(), f64::max) >= SAME_STATEMENT
}

/// Whether a short statement says something else of a matter that a short one has settled, and that hardly any other is about: `The flyer
/// is pink.`, `Lime would be nice for the flyer.`
fn is_said_again(units: &[Unit], before: usize, at: usize, lexicon: &Lexicon) -> bool {
    let (earlier, later) = (&units[before], &units[at]);
    let is_short = |unit: &Unit| {
        unit.terms.words <= MAX_SETTLING_WORDS && unit.terms.content.len() <= MAX_SETTLING_TERMS
    };
    let is_told =
        |one: &Unit, other: &Unit| one.terms.content.iter().any(|id| !other.terms.content.contains(id));
    let is_own = |id: &TermId| {
        !lexicon.is_number(*id) && earlier.terms.content.contains(id) && lexicon.texts(*id) <= MAX_OWN_TEXTS
    };
    is_short(earlier)
        && is_short(later)
        && earlier.is_by_user()
        && earlier.section != Section::Goals
        && later.origin == Origin::User
        && earlier.place < later.place
        && is_told(earlier, later)
        && is_told(later, earlier)
        && later.terms.content.iter().any(is_own)
        && overlap(earlier, later, lexicon, units.len(), f64::min) >= SAME_MATTER
}

/// The name in an assignment such as `timeout = 45s`, which a later one replaces without a word.
fn assigned_name(text: &str) -> Option<String> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '`'));
    (is_name && !value.trim().is_empty()).then(|| name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_of_many_words_is_compared_with_the_latest_few() {
        let mut lexicon = Lexicon::default();
        let mut unit = |text: &str, place: usize| Unit::read(&mut lexicon, text, Origin::User, place, &[]);
        let names: Vec<String> = (0..60).map(|name| format!("Barge{name}")).collect();
        let mut units: Vec<Unit> = Vec::new();
        for place in 0..1_200 {
            units.extend(unit(&format!("{} carries {place} planks of larch.", names[place % 60]), place + 1));
        }
        let at = units.len();
        units.extend(unit(&format!("Correction: {} carry nothing.", names.join(", ")), 2_000));
        let mut with_term: HashMap<TermId, Vec<usize>> = HashMap::new();
        for (index, unit) in units[..at].iter().enumerate() {
            unit.terms.content.iter().for_each(|id| with_term.entry(*id).or_default().push(index));
        }
        let related = related(&units, at, &with_term);
        assert_eq!(related, (at - MAX_RELATED..at).rev().collect::<Vec<_>>());
    }
}
