//! Duplicates merge, and the later of two conflicting statements wins.

use std::collections::{BTreeSet, HashMap};

use super::candidate::{Candidate, Origin, SETTLING, TASK_SCORE};
use super::claim::likeness;
use super::supersede::{UNSURE, supersedes};
use crate::Section;
use crate::pinned::normal;

/// How many earlier statements on a word are compared with a later one. Without a limit, a conversation that
/// says the same word a thousand times would take a million comparisons.
const MAX_COMPARED: usize = 24;

/// From this share of common words on, one statement is taken to repeat another.
const ECHO_PERCENT: usize = 65;

/// From this certainty on, everything that a statement can replace is replaced, and not only the likeliest.
const SURE: usize = 80;

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
        if !matters(&candidates[later]) {
            continue;
        }
        if echoes_user(later, &candidates, &index, &gone) {
            gone[later] = true;
            continue;
        }
        let compared: Vec<usize> =
            compared(&index, &candidates[later]).into_iter().filter(|&earlier| !gone[earlier]).collect();
        let is_rare = |stem: &str| {
            stem.len() >= RARE_LENGTH && index.get(stem).is_none_or(|places| places.len() <= RARE_PLACES)
        };
        let mut replaced = replaced_by(later, &compared, &candidates, &is_rare);
        if replaced.is_empty()
            && let Some(meant) = meant_by(later, &candidates, &gone)
        {
            replaced = vec![meant];
            replaced.extend(echoes_of(meant, later, &compared, &candidates));
        }
        if let Some(&meant) = replaced.first()
            && candidates[later].claim.is_bare()
        {
            let earlier = candidates[meant].claim.clone();
            candidates[later].tell_about(earlier);
        }
        if !replaced.is_empty() && candidates[later].section != Section::Decisions {
            // Whatever it sounded like, a statement that overrules another settles something.
            candidates[later].section = Section::Decisions;
            candidates[later].score += SETTLING;
        }
        replaced.sort_unstable();
        replaced.dedup();
        for earlier in replaced {
            gone[earlier] = true;
        }
        for stem in &candidates[later].claim.all {
            index.entry(stem.clone()).or_default().push(later);
        }
    }
    let mut gone = gone.into_iter();
    candidates.retain(|_| !gone.next().unwrap_or(false));
    candidates
}

/// Neither the task nor questions, artifacts and what tools said are statements that others replace.
fn matters(candidate: &Candidate) -> bool {
    match candidate.section {
        Section::Decisions | Section::KeyFacts | Section::ActionItems => !candidate.is_observed(),
        Section::Goals => candidate.score < TASK_SCORE,
        Section::OpenQuestions | Section::Artifacts => false,
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
    let mut found = BTreeSet::new();
    for places in candidate.claim.all.iter().filter_map(|stem| index.get(stem)) {
        found.extend(places.iter().rev().take(MAX_COMPARED).copied());
    }
    found.into_iter().collect()
}

/// The earlier candidates that the later one replaces: those that it is surely about, or else the one that it
/// is most likely about, together with those that only echo it.
fn replaced_by(
    later: usize,
    compared: &[usize],
    candidates: &[Candidate],
    is_rare: &dyn Fn(&str) -> bool,
) -> Vec<usize> {
    if !candidates[later].binds {
        return Vec::new();
    }
    let claim = &candidates[later].claim;
    // Inside one message only an announced change replaces anything.
    let place = candidates[later].place - usize::from(!claim.is_change && candidates[later].place > 0);
    let is_before = |&&earlier: &&usize| {
        let earlier = candidates[earlier].place;
        earlier <= place && (earlier > 0 || candidates[later].place > 0)
    };
    let certain: Vec<(usize, usize)> = compared
        .iter()
        .filter(is_before)
        .map(|&earlier| (supersedes(claim, &candidates[earlier].claim, is_rare), earlier))
        .filter(|&(certainty, _)| certainty > 0)
        .collect();
    let Some(&(best, latest)) = certain.iter().max() else { return Vec::new() };
    let mut replaced: Vec<usize> = certain
        .iter()
        .filter(|&&(certainty, _)| certainty == best && best >= SURE)
        .map(|&(_, at)| at)
        .collect();
    if replaced.is_empty() {
        // `The budget` can be any of three budgets. Then nobody knows which, and all of them stay.
        let matter = |at: usize| {
            let topics = candidates[at].claim.topics.iter();
            topics.flat_map(|topic| topic.words.iter()).collect::<BTreeSet<_>>()
        };
        let mut rivals = certain.iter().filter(|&&(certainty, at)| certainty == best && at != latest);
        if rivals.any(|&(_, at)| best <= UNSURE || matter(at) != matter(latest)) {
            return Vec::new();
        }
        replaced.push(latest);
    }
    for old in replaced.clone() {
        replaced.extend(echoes_of(old, later, compared, candidates));
    }
    replaced
}

/// Whether an assistant only says again what is known already.
fn echoes_user(
    later: usize,
    candidates: &[Candidate],
    index: &HashMap<String, Vec<usize>>,
    gone: &[bool],
) -> bool {
    let candidate = &candidates[later];
    let is_echo = |&at: &usize| !gone[at] && candidate.claim.all.is_subset(&candidates[at].claim.all);
    candidate.section == Section::KeyFacts
        && candidate.origin == Origin::Assistant
        && candidate.claim.all.len() > 1
        && compared(index, candidate).iter().any(is_echo)
}

/// What repeats a replaced statement in other words goes with it, unless it says what the later one says.
fn echoes_of(old: usize, later: usize, compared: &[usize], candidates: &[Candidate]) -> Vec<usize> {
    let (old, claim) = (&candidates[old].claim, &candidates[later].claim);
    let echoes = |&&at: &&usize| {
        let echo = &candidates[at].claim;
        // Who gives another value in the same words speaks of something else.
        let is_same = likeness(echo, old) >= ECHO_PERCENT
            && echo.all.len() > 1
            && echo.values.is_subset(&old.all)
            && !echo.is_rival_of(old)
            && (echo.topics.iter().flat_map(|topic| &topic.words).any(|stem| claim.all.contains(stem))
                || echo.gives_only(old));
        candidates[at].place < candidates[later].place && is_same && !claim.gives_only(echo)
    };
    compared.iter().filter(echoes).copied().collect()
}

/// What a change without a subject is about: the latest statement before it that gives the same sort of
/// value.
fn meant_by(later: usize, candidates: &[Candidate], gone: &[bool]) -> Option<usize> {
    let candidate = &candidates[later];
    let corrects = candidate.origin == Origin::User && candidate.binds;
    if !corrects || !candidate.claim.is_bare() {
        return None;
    }
    let reach = (0..later).rev().take_while(|&at| candidates[at].place + BARE_REACH >= candidate.place);
    let fitting = reach.filter(|&at| {
        let earlier = &candidates[at];
        let fits = matters(earlier) && !gone[at] && earlier.place < candidate.place;
        let fits = fits && (earlier.binds || earlier.origin == Origin::Earlier);
        fits && candidate.claim.can_mean(&earlier.claim)
    });
    fitting.max_by_key(|&at| {
        let earlier = &candidates[at].claim;
        let shared = candidate.claim.loose.intersection(&earlier.all).count();
        (shared, candidate.claim.has_shape_of(earlier), at)
    })
}
