//! Duplicates merge, and the later of two conflicting statements wins.

use std::collections::{BTreeSet, HashMap};

use super::candidate::{Candidate, SETTLING};
use super::claim::likeness;
use crate::Section;
use crate::pinned::normal;

/// How many earlier statements on a word are compared with a later one. Without a limit, a conversation that
/// says the same word a thousand times would take a million comparisons.
const MAX_COMPARED: usize = 24;

/// From this share of common words on, one statement is taken to repeat another.
const ECHO_PERCENT: usize = 65;

/// How far back, in messages, a bare `make it 40` can refer.
const BARE_REACH: usize = 8;

/// A word of at least this many bytes that came up in at most this many statements is rare.
const RARE_LENGTH: usize = 4;
const RARE_PLACES: usize = 4;

/// The candidates, in the order in which they were said, without those that a later one repeats or replaces.
pub(super) fn resolved(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut candidates = merged(candidates);
    let mut index: HashMap<String, Vec<usize>> = HashMap::new();
    let mut gone = vec![false; candidates.len()];
    for later in 0..candidates.len() {
        if !matters(candidates[later].section) {
            continue;
        }
        let compared = compared(&index, &candidates[later]);
        let is_rare = |stem: &str| {
            stem.len() >= RARE_LENGTH && index.get(stem).is_none_or(|places| places.len() <= RARE_PLACES)
        };
        let replaced = replaced_by(later, &compared, &candidates, &is_rare);
        if !replaced.is_empty() && candidates[later].section == Section::KeyFacts {
            // Whatever it sounded like, a statement that overrules another settles something.
            candidates[later].section = Section::Decisions;
            candidates[later].score += SETTLING;
        }
        for earlier in replaced {
            gone[earlier] = true;
        }
        if let Some(meant) = meant_by(later, &candidates, &gone) {
            gone[meant] = true;
            let about = candidates[meant].claim.about.join(" ");
            candidates[later].text.push_str(&format!(" (about: {about})"));
            let subject = candidates[meant].claim.subject.clone();
            candidates[later].claim.subject = subject;
        }
        let claim = &candidates[later].claim;
        for stem in claim.subject.iter().chain(&claim.values) {
            index.entry(stem.clone()).or_default().push(later);
        }
    }
    let mut gone = gone.into_iter();
    candidates.retain(|_| !gone.next().unwrap_or(false));
    candidates
}

/// Goals and artifacts are not statements that others replace.
fn matters(section: Section) -> bool {
    match section {
        Section::Decisions | Section::KeyFacts | Section::ActionItems => true,
        Section::Goals | Section::OpenQuestions | Section::Artifacts => false,
    }
}

/// Joins candidates that say the same. The last one stands, because it was the last word on the matter.
fn merged(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<Option<Candidate>> = Vec::with_capacity(candidates.len());
    for mut candidate in candidates {
        if let Some(place) = places.insert(normal(&candidate.text), kept.len())
            && let Some(earlier) = kept[place].take()
        {
            candidate.absorb(&earlier);
        }
        kept.push(Some(candidate));
    }
    kept.into_iter().flatten().collect()
}

fn compared(index: &HashMap<String, Vec<usize>>, candidate: &Candidate) -> Vec<usize> {
    let claim = &candidate.claim;
    let stems = claim.subject.iter().chain(&claim.replaced).chain(&claim.values);
    let mut found = BTreeSet::new();
    for places in stems.filter_map(|stem| index.get(stem)) {
        found.extend(places.iter().rev().take(MAX_COMPARED).copied());
    }
    found.into_iter().collect()
}

/// The earlier candidates that the later one replaces: those it names, and the one that is most about the
/// same thing together with those that only echo it.
fn replaced_by(
    later: usize,
    compared: &[usize],
    candidates: &[Candidate],
    is_rare: &dyn Fn(&str) -> bool,
) -> Vec<usize> {
    let claim = &candidates[later].claim;
    if !candidates[later].binds {
        return Vec::new();
    }
    let is_before = |&&earlier: &&usize| candidates[earlier].place < candidates[later].place;
    let mut replaced: Vec<usize> = Vec::new();
    let mut best = (0, None);
    for &earlier in compared.iter().filter(is_before) {
        if claim.takes_back(&candidates[earlier].claim) {
            replaced.push(earlier);
        }
        let overlap = claim.overlap(&candidates[earlier].claim, is_rare);
        if overlap > 0 && overlap >= best.0 {
            best = (overlap, Some(earlier));
        }
    }
    replaced.extend(best.1);
    // What repeats a replaced statement in other words goes with it, unless it says what the later one says.
    for &earlier in compared.iter().filter(is_before) {
        let echo = &candidates[earlier].claim;
        let echoes = |&old: &usize| likeness(echo, &candidates[old].claim) >= ECHO_PERCENT;
        let agrees = claim.gives_only(echo);
        if replaced.iter().any(echoes)
            && !agrees
            && claim.subject.iter().any(|stem| echo.subject.contains(stem))
        {
            replaced.push(earlier);
        }
    }
    replaced
}

/// What a change without a subject is about: the latest statement before it that gives the same sort of
/// value.
fn meant_by(later: usize, candidates: &[Candidate], gone: &[bool]) -> Option<usize> {
    let candidate = &candidates[later];
    if !candidate.binds || !candidate.claim.is_bare() {
        return None;
    }
    (0..later).rev().take_while(|&at| candidates[at].place + BARE_REACH >= candidate.place).find(|&at| {
        let earlier = &candidates[at];
        let fits = matters(earlier.section) && !gone[at] && earlier.place < candidate.place;
        fits && !earlier.claim.subject.is_empty() && candidate.claim.is_like(&earlier.claim)
    })
}
