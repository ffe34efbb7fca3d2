mod artifact;
mod candidate;
mod claim;
mod conflict;
mod cue;
mod observation;
mod question;
mod reading;
mod setting;
mod worth;

use self::candidate::Candidate;
use self::reading::{REPORT_PREFIX, Reading};
use self::worth::WORTH_KEEPING;
use crate::parse::bounded;
use crate::{Entry, Section, Source, Summary};

/// Summarizes without a model: picks the sentences that carry the task, decisions, facts, questions and
/// things to do, and the names of files, links and commands; a later decision replaces an earlier one about
/// the same subject.
///
/// The same input gives the same summary, in time that grows with the length of the text. The rules are for
/// English; in other languages names, numbers, paths and the user's own statements are still kept.
/// `max_tokens` is about how long the rendering may get: with less room the best of everything is kept rather
/// than everything of the newest. What remains over it is for [`cap`](crate::cap).
pub fn extract(previous: Option<&Summary>, sources: &[Source<'_>], max_tokens: u32) -> Summary {
    let mut reading = Reading::default();
    if let Some(previous) = previous {
        reading.earlier(previous);
    }
    for (place, source) in sources.iter().enumerate() {
        reading.message(place + 1, source, sources.len() - place);
    }
    reading.close_questions();
    let summary = chosen(reading, max_tokens as usize * CHARS_PER_TOKEN);
    bounded(summary, |_| true)
}

const CHARS_PER_TOKEN: usize = 4;
/// What the frame around the entries takes.
const FRAME_CHARS: usize = 400;
const MAX_ERRORS: usize = 6;
const MAX_RESULTS: usize = 8;

/// What of it all fits, the best of each sort.
fn chosen(mut reading: Reading<'_>, room: usize) -> Summary {
    let mut candidates = std::mem::take(&mut reading.candidates);
    for (list, most) in [
        (std::mem::take(&mut reading.errors), MAX_ERRORS),
        (std::mem::take(&mut reading.results), MAX_RESULTS),
    ] {
        let fresh: Vec<Candidate> =
            list.into_iter().filter(|found| !reading.is_stale_routine(found)).collect();
        candidates.extend(latest(fresh, most));
    }
    candidates.retain(|candidate| !reading.is_stale_routine(candidate));
    candidates.sort_by_key(|candidate| candidate.place);
    let candidates = conflict::resolved(candidates);
    let mut room = room.saturating_sub(FRAME_CHARS).max(room / 4);
    let mut summary = Summary::default();
    if let Some(report) = reading.last_report {
        summary.summary_text = format!("{REPORT_PREFIX}{report}");
        room = room.saturating_sub(summary.summary_text.chars().count());
    }
    // Shares in percent of what is left when their turn comes: facts, the last, get whatever the others did
    // not need.
    for (section, share, most) in [
        (Section::Goals, 15, 5),
        (Section::Decisions, 40, 24),
        (Section::OpenQuestions, 12, 8),
        (Section::ActionItems, 14, 10),
    ] {
        let chosen = best(&candidates, section, most, room * share / 100);
        room = room.saturating_sub(length(&chosen));
        *summary.list_mut(section) = chosen;
    }
    summary.artifacts = reading.artifacts.best(16, room / 5);
    room = room.saturating_sub(length(&summary.artifacts));
    summary.key_facts = best(&candidates, Section::KeyFacts, 40, room);
    summary
}

fn latest(list: Vec<Candidate>, most: usize) -> impl Iterator<Item = Candidate> {
    let surplus = list.len().saturating_sub(most);
    list.into_iter().skip(surplus)
}

/// The best candidates of a section that fit, in the order in which they were said.
fn best(candidates: &[Candidate], section: Section, most: usize, room: usize) -> Vec<Entry> {
    let least = if section == Section::KeyFacts { WORTH_KEEPING } else { 1 };
    let mut ranked: Vec<(usize, &Candidate)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.section == section && candidate.score >= least)
        .collect();
    ranked.sort_by_key(|(place, candidate)| std::cmp::Reverse((candidate.score, *place)));
    let mut room = room;
    let mut kept: Vec<(usize, &Candidate)> = Vec::new();
    for (place, candidate) in ranked {
        let cost = candidate.text.chars().count() + 3;
        // The task stays even where nothing else has room: what still does not fit is cut when the summary is
        // capped.
        let is_task = section == Section::Goals && kept.is_empty();
        if (cost <= room || is_task) && kept.len() < most {
            room = room.saturating_sub(cost);
            kept.push((place, candidate));
        }
    }
    kept.sort_by_key(|(place, _)| *place);
    kept.into_iter()
        .map(|(_, candidate)| Entry::new(candidate.text.clone(), candidate.rests_on.clone()))
        .collect()
}

fn length(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.text.chars().count() + 3).sum()
}
